import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DryLane, DryOutcome, DryRun } from '../../operator/dry-run.ts'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import { redact } from '../../dead-letter/redact.ts'
import { shapeOf } from '../../dead-letter/shape.ts'
import type { ActOptions, Selection } from '../../operator/selection.ts'
import type { RedriveAct } from '../../redrive/redrive.ts'
import { type ActFlags, confirm, reasonOf } from '../act.ts'
import {
  action,
  limitNumber,
  type Perform,
  positiveNumber,
  type Result,
  wholeNumber,
  withConfirmation,
  withReason,
} from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import {
  type FilterFlags,
  failureJson,
  failureLine,
  filterOf,
  payloadOf,
  withFilter,
  withoutPayload,
} from '../letters.ts'
import type { Output } from '../output/output.ts'
import { bold, dim, green, red, type Text, yellow } from '../output/style.ts'
import { count, laneName, many } from '../output/words.ts'
import { followRedrive } from '../redriving.ts'
import { prepareReveal, type RevealFlags } from '../reveal.ts'
import { positionOf } from './dlq-show.ts'

interface Flags extends ActFlags, FilterFlags, RevealFlags {
  readonly letter?: number
  readonly incident?: string
  readonly all?: boolean
  readonly rate?: number
  readonly canary?: true | readonly number[]
  readonly maxFailures?: number
  readonly wait?: boolean
  readonly limit?: number
}

const words: Readonly<
  Record<RedriveAct, { readonly about: string; readonly will: (lanes: string) => string; readonly isFinal: boolean }>
> = {
  redrive: {
    about: 'try letters again, in the order of their lanes',
    will: (lanes) => `${lanes} will be tried again`,
    isFinal: false,
  },
  discard: {
    about: 'leave heads of lanes out for good; the lanes go on behind them',
    will: (lanes) => `The heads of ${lanes} will be left out for good; what stands behind them goes on`,
    isFinal: true,
  },
  resolve: {
    about: 'the same, but says that they were seen to elsewhere',
    will: (lanes) => `The heads of ${lanes} will count as seen to elsewhere; what stands behind them goes on`,
    isFinal: true,
  },
  skip: {
    about: 'go on without the version that lanes wait for',
    will: (lanes) => `${lanes} will go on without the version they wait for`,
    isFinal: true,
  },
}

export function addActs(group: Command, perform: Perform): void {
  for (const act of ['redrive', 'resolve', 'discard', 'skip'] as const) {
    const command = group.command(act).argument('<subscription>').description(words[act].about)
    const chosen = withOptions(withSelection(command), act)
    action<Flags>(chosen, perform, (ctx, [name = ''], flags) => run(ctx, act, name, selectionOf(flags), flags))
  }
  // As the systems before this one called it.
  const replay = group
    .command('replay')
    .argument('<subscription>')
    .argument('<position>')
    .description('redrive one letter')
  action<Flags>(withOptions(replay, 'redrive'), perform, (ctx, [name = '', text = ''], flags) =>
    run(
      ctx,
      'redrive',
      name,
      { letter: positionOf(text), ...(flags.partition !== undefined && { partition: flags.partition }) },
      flags,
    ),
  )
  const all = group.command('replay-all').argument('<subscription>').description('redrive everything that is held')
  action<Flags>(withOptions(all, 'redrive'), perform, (ctx, [name = ''], flags) =>
    run(ctx, 'redrive', name, { all: true }, flags),
  )
}

/** One way to name letters leaves no room for another; a lane can be narrowed down by a filter, and a letter by its partition. */
function withSelection(command: Command): Command {
  const filters = ['type', 'class', 'since', 'until', 'text']
  const letter = new Option('--letter <position>', 'this one, which must be the head of its lane')
  const incident = new Option('--incident <fingerprint>', 'all that failed alike')
  const all = new Option('--all', 'everything that is held')
  return withFilter(
    command
      .addOption(letter.argParser(wholeNumber).conflicts(['lane', 'incident', 'all', ...filters]))
      .option('--lane <lane>', 'this lane')
      .addOption(incident.conflicts(['lane', 'all', 'partition', ...filters]))
      .addOption(all.conflicts(['lane', 'partition', ...filters])),
  )
}

function withOptions(command: Command, act: RedriveAct): Command {
  const withAct = withConfirmation(withReason(command))
    .option('--rate <n>', 'so many letters a second at the most', positiveNumber)
    .option('--no-wait', 'ask for it, and leave it to the engines')
  if (act === 'skip') return withAct
  return withAct
    .option(
      '--canary [stages]',
      'a few lanes first, then more: 1,2,5,20,… unless you say; stops at the first failure',
      stagesOf,
    )
    .option('--max-failures <n>', 'stop when more lanes than this have failed', wholeNumber)
    .option('--limit <n>', 'with --dry-run: so many letters; 100 unless you say', limitNumber)
    .option('--reveal', 'with --dry-run: show the values; the audit keeps who and why')
}

function stagesOf(text: string): readonly number[] {
  const stages = text.split(',').map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : 0))
  if (stages.length <= 100 && stages.every((size) => size > 0)) return stages
  throw new InvalidArgumentError('Give the sizes of the stages, such as 1,2,5,20.')
}

/** Nothing is ever meant to be everything: who wants that says it. */
function selectionOf(flags: Flags): Selection {
  const filter = filterOf(flags)
  const { lane, partition, ...others } = filter
  const kinds: Selection[] = []
  if (flags.letter !== undefined) kinds.push({ letter: flags.letter, ...(partition !== undefined && { partition }) })
  if (flags.incident !== undefined) kinds.push({ incident: flags.incident })
  if (flags.all) kinds.push({ all: true })
  const isFiltered = Object.keys(others).length > 0 || (partition !== undefined && flags.letter === undefined)
  if (isFiltered) kinds.push({ filter })
  else if (lane !== undefined) kinds.push({ lane })
  const [selection] = kinds
  if (selection) return selection
  throw new CommandError(
    'USAGE',
    'It is not said which letters.',
    'Give one of --letter, --lane, --incident, --all, or a filter such as --type and --since.',
  )
}

async function run(ctx: Context, act: RedriveAct, name: string, selection: Selection, flags: Flags): Promise<Result> {
  await ctx.subscription(name)
  await ctx.storedSubscription(name)
  const operator = await ctx.operator()
  const selected = () => operator.select(name, act, selection)
  if (flags.dryRun) return dryRun(ctx, act, name, selection, flags, (await selected()).lanes)
  const { will, isFinal } = words[act]
  const reason = await reasonOf(ctx, flags)
  const { lanes, digest } = await selected()
  const what = lanes === 0 ? [] : [`${will(`${many(lanes, 'lane')} of ${name}`)}.`]
  // To try again takes nothing away: what fails is held as before.
  const mayGo = !isFinal || lanes === 0
  const counted = async () => (await selected()).lanes
  await confirm(ctx, mayGo ? { ...flags, yes: true } : flags, { what, name, count: counted })
  const { rate, canary, maxFailures } = flags
  const options: ActOptions = {
    reason,
    // Of the lanes as they were shown: the answer may have taken a while.
    expected: digest,
    ...(rate !== undefined && { rate }),
    ...(canary !== undefined && { canary }),
    ...(maxFailures !== undefined && { maxFailures }),
  }
  const { redrive, busy } = await operator[act](name, selection, options)
  if (busy > 0) ctx.out.talk(yellow(many(busy, 'lane')), ' left out: another redrive has them already.')
  if (flags.wait === false) {
    return {
      json: { redrive, busy },
      show: (out) => {
        out.data('asked for: ', bold(redrive.id))
        out.talk(dim('Next: '), `holdfast redrives show ${redrive.id} --watch`)
      },
    }
  }
  return followRedrive(ctx, operator, redrive.id, { busy })
}

async function dryRun(
  ctx: Context,
  act: RedriveAct,
  name: string,
  selection: Selection,
  flags: Flags,
  lanes: number,
): Promise<Result> {
  if (act === 'skip') {
    return { json: { dryRun: true, lanes }, show: (out) => out.data(many(lanes, 'lane'), ' would go on.') }
  }
  const reveal = await prepareReveal(ctx, flags)
  const operator = await ctx.operator()
  const { limit } = flags
  const tried = await operator.dryRun(name, selection, {
    act,
    signal: ctx.signal,
    ...(limit !== undefined && { limit }),
  })
  await reveal(`${name}/dry run`)
  const isRevealed = flags.reveal === true
  const shown = tried.lanes.map((lane) => laneJson(lane, isRevealed))
  return {
    json: { dryRun: true, lanes, totals: tried.totals, isWhole: tried.isWhole, kind: tried.kind, tried: shown },
    show: (out) => showDryRun(out, tried, shown, lanes),
    exit: tried.totals.fail > 0 ? 3 : 0,
  }
}

/** Rows are made of payloads: without leave their shapes are shown, and which fields would change. */
function laneJson({ lane, verdict, letters, changes }: DryLane, isRevealed: boolean) {
  const row = (value: unknown) => (value === undefined ? null : isRevealed ? value : shapeOf(value))
  const shownChanges = (list: DryLane['changes']) =>
    list.map(({ table, before, after }) => ({
      table,
      changed: changedFields(before, after),
      before: row(before),
      after: row(after),
    }))
  return {
    lane,
    verdict,
    changes: shownChanges(changes),
    letters: letters.map(({ position, eventId, type, revision, outcome, letter }) => ({
      position,
      eventId,
      type,
      revision: revision ?? null,
      ...outcomeJson(outcome, letter, isRevealed, shownChanges),
    })),
  }
}

function outcomeJson(
  outcome: DryOutcome,
  letter: DeadLetter,
  isRevealed: boolean,
  shownChanges: (list: DryLane['changes']) => unknown,
) {
  const effectsOf = (effects: readonly string[]) =>
    isRevealed ? effects : effects.map((effect) => redact(effect, payloadOf(letter)))
  switch (outcome.outcome) {
    case 'applied':
      return { outcome: outcome.outcome, changes: outcome.changes === undefined ? null : shownChanges(outcome.changes) }
    case 'failed':
      return {
        outcome: outcome.outcome,
        failure: failureJson(isRevealed ? outcome.failure : withoutPayload(outcome.failure, letter)),
        effects: effectsOf(outcome.effects),
      }
    case 'handled':
      return { ...outcome, effects: effectsOf(outcome.effects) }
    default:
      return outcome
  }
}

function changedFields(before: object | undefined, after: object | undefined): string[] {
  const fields = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])
  const text = (row: object | undefined, field: string) =>
    JSON.stringify((row as Record<string, unknown> | undefined)?.[field], printable)
  return [...fields].filter((field) => text(before, field) !== text(after, field))
}

function printable(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

function showDryRun(
  out: Output,
  { totals, isWhole, kind }: DryRun,
  shown: readonly ReturnType<typeof laneJson>[],
  lanes: number,
): void {
  for (const { lane, verdict, letters, changes } of shown) {
    const paint = { pass: green, fail: red, unknown: yellow }[verdict]
    out.data(paint(verdict), ' ', bold(laneName(lane)))
    for (const letter of letters) out.data('  ', `${letter.position} ${letter.type}  `, outcomeText(letter))
    for (const { table, changed, before, after } of changes) {
      out.data('  ', dim(`${table}: `), changed.join(', ') || 'nothing', ' would change')
      out.data('    ', red('- '), before === null ? dim('none') : rowText(before))
      out.data('    ', green('+ '), after === null ? dim('none') : rowText(after))
    }
  }
  const parts = Object.entries(totals).map(([verdict, value]) => `${count(value)} ${verdict}`)
  out.data(`${many(lanes, 'lane')}; letters tried: ${parts.join(', ')}. Nothing was kept.`)
  if (!isWhole) out.talk('That was not all of them: --limit tries more.')
  if (kind === 'handler' && totals.unknown > 0) out.talk('A handler is only run if it says dryRun: true.')
}

function rowText(row: unknown): string {
  return JSON.stringify(row, printable)
}

function outcomeText(letter: ReturnType<typeof laneJson>['letters'][number]): Text {
  switch (letter.outcome) {
    case 'applied':
      return green('would be applied')
    case 'handled':
      return [green('would go through'), letter.effects.length > 0 ? `: ${letter.effects.join(', ')}` : '']
    case 'would be called':
      return yellow('would be called')
    case 'failed':
      return [red('would fail: '), failureLine(letter.failure)]
    case 'ignored':
      return dim(letter.why)
    case 'behind':
      return dim('behind one that fails')
  }
}
