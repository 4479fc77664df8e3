import { type Command, Option } from 'commander'
import { checkKey } from '../../log/admit.ts'
import type { Projection } from '../../projection/projection.ts'
import { read } from '../../projection/read.ts'
import { shapeOf } from '../../dead-letter/shape.ts'
import type { StateMoment, StateRow, StateStep } from '../../operator/state-at.ts'
import { type ActFlags, confirm, reasonOf } from '../act.ts'
import {
  action,
  limitNumber,
  type Perform,
  positiveNumber,
  wholeNumber,
  withConfirmation,
  withReason,
} from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import { bold, dim, red } from '../output/style.ts'
import { count, many } from '../output/words.ts'
import { reportOf } from '../report.ts'
import { prepareReveal, type RevealFlags, shapeText } from '../reveal.ts'
import { addRebuilds } from './rebuilds.ts'
import { stateText } from './status.ts'

export function addProjections(program: Command, perform: Perform): void {
  const group = program.command('projections').description('read models: what they are, and what they have')
  addList(group, perform)
  addGet(group, perform)
  addHistory(group, perform)
  addReset(group, perform)
  addRebuilds(group, perform)
}

function addList(group: Command, perform: Perform): void {
  action(group.command('list').alias('ls').description('all of the configuration'), perform, async (ctx) => {
    const { subscriptions } = await reportOf(ctx)
    const declared = (await ctx.subscriptions()).filter(({ consumer }) => consumer.kind !== 'handler')
    const projections = declared.map(({ name, consumer }) => {
      const report = subscriptions.find((each) => each.name === name)
      return {
        name,
        kind: consumer.kind,
        table: consumer.table?.name ?? null,
        columns: consumer.table?.columns.map((column) => column.name) ?? [],
        state: report?.state ?? 'new',
        lag: report?.lag ?? null,
        heldLanes: report?.held?.lanes ?? 0,
      }
    })
    return {
      json: { projections },
      show: (out) =>
        out.table(
          [
            { title: 'name' },
            { title: 'kind' },
            { title: 'table' },
            { title: 'columns' },
            { title: 'state' },
            { title: 'lag', right: true },
            { title: 'held lanes', right: true },
          ],
          projections.map((each) => [
            each.name,
            each.kind,
            each.table ?? dim('your own'),
            each.columns.join(', ') || dim('-'),
            stateText(each.state),
            each.lag ? count(each.lag.events) : '-',
            each.heldLanes > 0 ? red(count(each.heldLanes)) : '0',
          ]),
        ),
    }
  })
}

interface GetFlags extends RevealFlags {
  readonly atVersion?: number
  readonly before?: number
}

function withMoment(command: Command): Command {
  return command
    .addOption(
      new Option('--at-version <n>', 'as it was at this version of the key')
        .argParser(positiveNumber)
        .conflicts('before'),
    )
    .option('--before <position>', 'as it was just before this position of the log', wholeNumber)
}

function addGet(group: Command, perform: Perform): void {
  const command = group
    .command('get')
    .argument('<projection>')
    .argument('<key>')
    .description('the row of a key; its shape, unless it is to be revealed')
    .option('--reveal', 'show the values; the audit keeps who and why')
  action<GetFlags>(withReason(withMoment(command)), perform, async (ctx, [name = '', key = ''], flags) => {
    checkKey(key)
    const projection = await foldOf(ctx, name)
    const at = momentOf(flags)
    const reveal = await prepareReveal(ctx, flags)
    const found = at
      ? (await (await ctx.operator()).stateAt(name, key, at)).row
      : await read(await ctx.store(), projection).get(key)
    if (!found) {
      throw new CommandError(
        'NOT_FOUND',
        `${name} has no row of ${JSON.stringify(key)}${at ? ' then' : ''}.`,
        `Is there an event of it? holdfast events history ${JSON.stringify(key)}`,
      )
    }
    await reveal(`${name}/${key}`)
    const held = at ? undefined : await (await ctx.store()).letters.lane(name, key)
    const shown = flags.reveal ? { data: found.data } : { shape: shapeOf(found.data) }
    return {
      json: { projection: name, key, version: found.version, ...shown, isHeld: held !== undefined },
      show: (out) => {
        out.data(bold(key), dim(` version ${found.version}`))
        out.data('data' in shown ? JSON.stringify(shown.data) : shapeText(shown.shape))
        if (held) {
          out.talk(red('held'), ` at position ${held.headPosition}: ${many(held.letters, 'letter')} not in this row.`)
          out.talk(dim('Next: '), `holdfast dlq show ${name} ${held.headPosition}`)
        }
        if (!flags.reveal) out.talk(dim('Values are private: --reveal shows them.'))
      },
    }
  })
}

interface HistoryFlags extends GetFlags {
  readonly limit?: number
}

const shownSteps = 100

function addHistory(group: Command, perform: Perform): void {
  const command = group
    .command('history')
    .argument('<projection>')
    .argument('<key>')
    .description('how the row of a key came to be, event by event, folded anew')
    .option('--limit <n>', 'the last so many; 100 unless you say', limitNumber)
    .option('--reveal', 'show the values; the audit keeps who and why')
  action<HistoryFlags>(withReason(withMoment(command)), perform, async (ctx, [name = '', key = ''], flags) => {
    checkKey(key)
    await foldOf(ctx, name)
    const moment = momentOf(flags)
    const reveal = await prepareReveal(ctx, flags)
    const operator = await ctx.operator()
    const { limit = shownSteps } = flags
    const steps: ReturnType<typeof stepJson>[] = []
    for await (const step of operator.steps(name, key, moment)) {
      steps.push(stepJson(step, flags.reveal === true))
      if (steps.length > limit) steps.shift()
    }
    if (steps.length === 0)
      throw new CommandError(
        'NOT_FOUND',
        `The log has no event of ${JSON.stringify(key)} so far.`,
        'holdfast events tail',
      )
    await reveal(`${name}/${key}`)
    return {
      json: { projection: name, key, steps },
      show: (out) => {
        out.table(
          [
            { title: 'position', right: true },
            { title: 'version', right: true },
            { title: 'type' },
            { title: 'outcome' },
            { title: 'row after' },
          ],
          steps.map(({ position, version, type, outcome, after }) => [
            position,
            version ?? '-',
            type,
            outcome === 'folded' ? outcome : red(outcome),
            after === null ? dim('none') : 'data' in after ? JSON.stringify(after.data) : shapeText(after.shape),
          ]),
        )
      },
    }
  })
}

function stepJson(
  { position, version, eventId, type, outcome, revision, before, after }: StateStep,
  isRevealed: boolean,
) {
  const shown = (row: StateRow | undefined) =>
    row === undefined ? null : isRevealed ? row : { version: row.version, shape: shapeOf(row.data) }
  return { position, version, eventId, type, outcome, revision, before: shown(before), after: shown(after) }
}

function addReset(group: Command, perform: Perform): void {
  const command = group
    .command('reset')
    .argument('<projection>')
    .description('empty it and apply everything again; readers see it half-built meanwhile')
  action<ActFlags>(withConfirmation(withReason(command)), perform, async (ctx, [name = ''], flags) => {
    const { consumer } = await ctx.subscription(name)
    if (consumer.kind === 'handler') {
      throw new CommandError(
        'USAGE',
        `${name} is a handler: to begin anew would do everything again.`,
        'For that, define it under another name.',
      )
    }
    await ctx.storedSubscription(name)
    const store = await ctx.store()
    const counted = async () => (await store.letters.summary(name, 0)).letters
    const passed = (await ctx.storedSubscription(name)).partitions.reduce(
      (sum, part) => sum + part.checkpoint.counts.applied,
      0,
    )
    const letters = await counted()
    const what = [
      `${name} will be emptied, and begin anew.`,
      `${many(passed, 'event')} will be applied again; ${many(letters, 'held letter')} will be gone, and tried like all others.`,
      'Readers see it half-built until it has caught up.',
    ]
    if (flags.dryRun) {
      return {
        json: { projection: name, dryRun: true, applied: passed, letters },
        show: (out) => what.forEach((line) => out.data(line)),
      }
    }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name, count: counted })
    const report = await (await ctx.operator()).reset(name, reason)
    return {
      json: { projection: name, dryRun: false, ...report },
      show: (out) => {
        out.data(
          `${name} is empty and begins anew. ${many(report.letters, 'held letter')} of ${many(report.lanes, 'lane')} went with it.`,
        )
        out.talk(dim('Next: '), 'holdfast status --watch')
      },
    }
  })
}

async function foldOf(ctx: Context, name: string): Promise<Projection> {
  const { consumer } = await ctx.subscription(name)
  if (consumer.kind === 'fold') return consumer
  throw new CommandError(
    'USAGE',
    `${name} is ${consumer.kind === 'sql' ? 'SQL of your own' : 'a handler'}: it has no rows that we keep.`,
    'See which have: holdfast projections list',
  )
}

function momentOf({ atVersion: version, before }: GetFlags): StateMoment | undefined {
  return version !== undefined ? { version } : before !== undefined ? { before } : undefined
}
