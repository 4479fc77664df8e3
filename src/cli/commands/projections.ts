import { type Command, Option } from 'commander'
import { checkKey } from '../../log/admit.ts'
import type { Projection } from '../../projection/projection.ts'
import { read } from '../../projection/read.ts'
import { shapeOf } from '../../dead-letter/shape.ts'
import type { StateMoment, StateRow, StateStep } from '../../operator/state-at.ts'
import { type ActFlags, confirm, expectHint, heldDigest, reasonOf } from '../act.ts'
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
import { count, many, shellWord } from '../output/words.ts'
import { reportOf } from '../report.ts'
import { prepareReveal, type RevealFlags, revealHint, shapeText } from '../reveal.ts'
import { addRebuilds } from './rebuilds.ts'
import { stateText } from './status.ts'

export function addProjections(program: Command, perform: Perform): void {
  const group = program.command('projections').description('read models: their state, rows and versions')
  addList(group, perform)
  addGet(group, perform)
  addHistory(group, perform)
  addReset(group, perform)
  addRebuilds(group, perform)
}

function addList(group: Command, perform: Perform): void {
  action(
    group.command('list').alias('ls').description('list the projections of the configuration'),
    perform,
    async (ctx) => {
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
    },
  )
}

interface GetFlags extends RevealFlags {
  readonly atVersion?: number
  readonly before?: number
}

function withMoment(command: Command): Command {
  return command
    .addOption(
      new Option('--at-version <n>', 'the row as it was at this version of the key')
        .argParser(positiveNumber)
        .conflicts('before'),
    )
    .option('--before <position>', 'the row as it was before this position of the log', wholeNumber)
}

function addGet(group: Command, perform: Perform): void {
  const command = group
    .command('get')
    .argument('<projection>')
    .argument('<key>')
    .description('show the row of a key; its shape instead of values without --reveal')
    .option('--reveal', 'show the values; recorded in the audit')
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
        `${name} has no row for the key ${JSON.stringify(key)}${at ? ' at that point' : ''}.`,
        `holdfast events history ${shellWord(key)}`,
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
          out.next(`holdfast dlq show ${name} ${held.headPosition}`)
        }
        if (!flags.reveal)
          out.talk(revealHint(out, `holdfast projections get ${name} ${shellWord(key)}${momentFlag(flags)}`))
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
    .description('replay the row of a key, event by event')
    .option('--limit <n>', 'the number of most recent steps; default: 100', limitNumber)
    .option('--reveal', 'show the values; recorded in the audit')
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
        `The log has no event with the key ${JSON.stringify(key)} up to that point.`,
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
    .description('delete all rows and apply all events again; readers see partial data until it has caught up')
  action<ActFlags>(withConfirmation(withReason(command)), perform, async (ctx, [name = ''], flags) => {
    const { consumer } = await ctx.subscription(name)
    if (consumer.kind === 'handler') {
      throw new CommandError(
        'USAGE',
        `${name} is a handler: a reset would repeat all its side effects.`,
        'To process all events again, define it under another name.',
      )
    }
    await ctx.storedSubscription(name)
    const store = await ctx.store()
    const digest = () => heldDigest(ctx, name)
    const passed = (await ctx.storedSubscription(name)).partitions.reduce(
      (sum, part) => sum + part.checkpoint.counts.applied,
      0,
    )
    const { letters } = await store.letters.summary(name, 0)
    const what = [
      `All rows of ${name} will be deleted.`,
      `${many(passed, 'event')} will be applied again. ${many(letters, 'held letter')} will be removed; their events are processed like all others.`,
      'Readers see partial data until it has caught up.',
    ]
    if (flags.dryRun) {
      const seen = await digest()
      return {
        json: { projection: name, dryRun: true, applied: passed, letters, digest: seen },
        show: (out) => {
          what.forEach((line) => out.data(line))
          expectHint(ctx, seen)
        },
      }
    }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name, digest })
    const report = await (await ctx.operator()).reset(name, reason)
    return {
      json: { projection: name, dryRun: false, ...report },
      show: (out) => {
        out.data(
          `${name} is empty and starts from the beginning. ${many(report.letters, 'held letter')} of ${many(report.lanes, 'lane')} removed.`,
        )
        out.next('holdfast status --watch')
      },
    }
  })
}

async function foldOf(ctx: Context, name: string): Promise<Projection> {
  const { consumer } = await ctx.subscription(name)
  if (consumer.kind === 'fold') return consumer
  throw new CommandError(
    'USAGE',
    `${name} is ${consumer.kind === 'sql' ? 'a SQL projection' : 'a handler'}: Holdfast stores no rows for it.`,
    'holdfast projections list',
  )
}

function momentFlag({ atVersion, before }: GetFlags): string {
  if (atVersion !== undefined) return ` --at-version ${atVersion}`
  return before === undefined ? '' : ` --before ${before}`
}

function momentOf({ atVersion: version, before }: GetFlags): StateMoment | undefined {
  return version !== undefined ? { version } : before !== undefined ? { before } : undefined
}
