import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DryLane, DryOutcome, DryRun } from '../../operator/dry-run.ts'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import { payloadOf } from '../../dead-letter/payload.ts'
import { redact } from '../../dead-letter/redact.ts'
import { keyShape, shapeOf } from '../../dead-letter/shape.ts'
import type { ActOptions, Selection, WholeLanes } from '../../operator/selection.ts'
import type { RedriveAct } from '../../redrive/redrive.ts'
import type { Selected } from '../../redrive/selected.ts'
import { type ActFlags, confirm, expectHint, reasonOf } from '../act.ts'
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
  withFilter,
  withLane,
  withoutPayload,
} from '../letters.ts'
import { changeLine, shownChanges } from '../output/changes.ts'
import type { Output } from '../output/output.ts'
import { bold, dim, green, red, type Text, yellow } from '../output/style.ts'
import { withIsoTimes } from '../output/times.ts'
import { count, laneName, many } from '../output/words.ts'
import { followRedrive, withEffects } from '../redriving.ts'
import { prepareReveal, type RevealFlags } from '../reveal.ts'
import { waitingOf } from '../waiting.ts'
import { positionOf } from './dlq-show.ts'

interface Flags extends ActFlags, FilterFlags, RevealFlags {
  readonly letter?: number
  readonly all?: boolean
  readonly rate?: number
  readonly canary?: true | readonly number[]
  readonly maxFailures?: number
  readonly wait?: boolean
  readonly allowEffects?: boolean
  readonly limit?: number
  readonly whole?: true | number
}

const words: Readonly<
  Record<
    RedriveAct,
    {
      readonly about: string
      /** `heads` names the letters that end without a try. */
      readonly will: (lanes: number, name: string, heads: string) => string
      readonly isFinal: boolean
    }
  >
> = {
  redrive: {
    about: 'process held letters again, in lane order',
    will: (lanes, name) => `${many(lanes, 'lane')} of ${name} will be redriven`,
    isFinal: false,
  },
  discard: {
    about: 'discard the head of each lane permanently and process the later letters',
    will: (_lanes, _name, heads) => `${heads} will be discarded permanently; later letters are processed`,
    isFinal: true,
  },
  resolve: {
    about: 'mark the head of each lane as handled manually and process the later letters',
    will: (_lanes, _name, heads) => `${heads} will count as handled manually; later letters are processed`,
    isFinal: true,
  },
  skip: {
    about: 'continue lanes without the version that they wait for',
    will: (lanes, name) =>
      `${many(lanes, 'lane')} of ${name} will continue without the missing ${lanes === 1 ? 'version' : 'versions'}`,
    isFinal: true,
  },
}

/** The letters that end without a try: the heads, or the letters behind them too. */
function headsOf({ lanes, letters, through }: Selected, name: string): string {
  if (letters !== undefined)
    return `${many(letters, 'letter')} in ${many(lanes, 'lane')} of ${name}, up to position ${through},`
  return `The ${lanes === 1 ? 'head' : 'heads'} of ${many(lanes, 'lane')} of ${name}`
}

export function addActs(group: Command, perform: Perform): void {
  for (const act of ['redrive', 'resolve', 'discard', 'skip'] as const) {
    const command = group
      .command(act)
      .argument('<subscription>')
      .argument('[position]', 'the same as --letter')
      .description(words[act].about)
    const chosen = withOptions(withSelection(command), act)
    action<Flags>(chosen, perform, (ctx, [name = '', position], flags) =>
      run(ctx, act, name, selectionOf(withPosition(flags, position)), flags),
    )
  }
  // Aliases that users of other systems expect.
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
  const all = group.command('replay-all').argument('<subscription>').description('redrive all held lanes')
  action<Flags>(withOptions(all, 'redrive'), perform, (ctx, [name = ''], flags) =>
    run(ctx, 'redrive', name, { all: true }, flags),
  )
}

/** `dlq redrive balances 3`: the same form as `dlq show` and `dlq edit`. */
function withPosition(flags: Flags, position: string | undefined): Flags {
  if (position === undefined) return flags
  const others = ['letter', 'lane', 'key', 'incident', 'all', 'type', 'class', 'since', 'until', 'text'] as const
  const other = [...others, 'whole' as const].find((flag) => flags[flag] !== undefined)
  if (other === undefined) return { ...flags, letter: positionOf(position) }
  throw new CommandError(
    'USAGE',
    `The position ${position} cannot be combined with --${other}.`,
    'Use only one of them.',
  )
}

/** Ways to select letters exclude each other, except that a filter can narrow a lane and a partition a letter. */
function withSelection(command: Command): Command {
  const filters = ['type', 'class', 'since', 'until', 'text']
  const letter = new Option('--letter <position>', 'the letter at this position; it must be the head of its lane')
  const incident = new Option('--incident <fingerprint>', 'all lanes whose head has this failure')
  const all = new Option('--all', 'all held lanes')
  return withFilter(
    withLane(command, 'lanes')
      .addOption(letter.argParser(wholeNumber).conflicts(['lane', 'key', 'incident', 'all', ...filters]))
      .addOption(incident.conflicts(['lane', 'key', 'all', 'partition', ...filters]))
      .addOption(all.conflicts(['lane', 'key', 'partition', ...filters])),
    'lanes',
  )
}

function withWhole(command: Command): Command {
  const whole = new Option(
    '--whole [position]',
    'also end the letters that are queued behind the heads now; with a position: only up to that position',
  )
  return command.addOption(whole.argParser(wholeNumber).conflicts(['letter']))
}

function withOptions(given: Command, act: RedriveAct): Command {
  const command = act === 'discard' || act === 'resolve' ? withWhole(given) : given
  const withAct = withEffects(
    withConfirmation(withReason(command))
      .option('--rate <n>', 'at most this many letters per second', positiveNumber)
      .option('--no-wait', 'return immediately; running engines do the work'),
  )
  if (act === 'skip') return withAct
  return withAct
    .option(
      '--canary [stages]',
      'start with few lanes, then more; stop at the first failure; default: 1,2,5,20,…',
      stagesOf,
    )
    .option('--max-failures <n>', 'stop when more than this many lanes have failed', wholeNumber)
    .option('--limit <n>', 'with --dry-run: the number of letters to try; default: 100', limitNumber)
    .option('--reveal', 'with --dry-run: show the values; recorded in the audit')
}

function stagesOf(text: string): readonly number[] {
  const stages = text.split(',').map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : 0))
  if (stages.length <= 100 && stages.every((size) => size > 0)) return stages
  throw new InvalidArgumentError('Give the sizes of the stages, such as 1,2,5,20.')
}

/** No selection is an error; `--all` selects everything. */
function selectionOf(flags: Flags): Selection {
  const filter = filterOf(flags)
  const { lane, partition, fingerprint: _fingerprint, ...others } = filter
  const { whole } = flags
  const lanes: WholeLanes = whole === undefined ? {} : { whole }
  const kinds: Selection[] = []
  if (flags.letter !== undefined) kinds.push({ letter: flags.letter, ...(partition !== undefined && { partition }) })
  if (flags.incident !== undefined) kinds.push({ incident: flags.incident, ...lanes })
  if (flags.all) kinds.push({ all: true, ...lanes })
  const isFiltered = Object.keys(others).length > 0 || (partition !== undefined && flags.letter === undefined)
  if (isFiltered) kinds.push({ filter, ...lanes })
  else if (lane !== undefined) kinds.push({ lane, ...lanes })
  const [selection] = kinds
  if (selection) return selection
  throw new CommandError(
    'USAGE',
    'No letters are selected.',
    'Give one of --letter, --lane (or --key), --incident, --all, or a filter such as --type and --since.',
  )
}

async function run(ctx: Context, act: RedriveAct, name: string, given: Selection, flags: Flags): Promise<Result> {
  await ctx.subscription(name)
  await ctx.storedSubscription(name)
  const operator = await ctx.operator()
  const selected = (selection: Selection) => operator.select(name, act, selection)
  if (flags.dryRun) return dryRun(ctx, act, name, given, flags, await selected(given))
  const { will, isFinal } = words[act]
  const reason = await reasonOf(ctx, flags)
  const seen = await selected(given)
  const { lanes, digest, through } = seen
  // The confirmation shows the letters that are queued now: letters that are queued later are not ended.
  const selection = lanes > 0 && through !== undefined ? { ...given, whole: through } : given
  const what = lanes === 0 ? [] : [`${will(lanes, name, headsOf(seen, name))}.`]
  // A redrive needs no confirmation: letters that fail again stay held.
  const mayGo = !isFinal || lanes === 0
  const again = async () => (await selected(selection)).digest
  await confirm(ctx, mayGo ? { ...flags, yes: true } : flags, { what, name, digest: again })
  const { rate, canary, maxFailures } = flags
  const options: ActOptions = {
    reason,
    // The digest of the lanes that were shown: they may have changed while the operator answered.
    expected: digest,
    ...(rate !== undefined && { rate }),
    ...(canary !== undefined && { canary }),
    ...(maxFailures !== undefined && { maxFailures }),
  }
  const { redrive, busy } = await operator[act](name, selection, options)
  if (busy > 0)
    ctx.out.talk(yellow(many(busy, 'lane')), ` ${busy === 1 ? 'is' : 'are'} not included: in another redrive.`)
  if (flags.wait === false) {
    const waiting = await waitingOf(ctx, redrive)
    return {
      json: { redrive: withIsoTimes(redrive), busy, waits: waiting?.why ?? null },
      show: (out) => {
        out.data('queued: ', bold(redrive.id))
        if (waiting) out.talk(waiting.what)
        out.next(waiting?.next ?? `holdfast redrives show ${redrive.id} --watch`)
      },
    }
  }
  return followRedrive(ctx, operator, redrive.id, { busy, allowEffects: flags.allowEffects })
}

async function dryRun(
  ctx: Context,
  act: RedriveAct,
  name: string,
  selection: Selection,
  flags: Flags,
  selected: Selected,
): Promise<Result> {
  const { lanes, digest, letters, through } = selected
  if (act === 'skip') {
    return {
      json: { dryRun: true, lanes, digest },
      show: (out) => {
        out.data(many(lanes, 'lane'), ' would continue.')
        if (lanes > 0) expectHint(ctx, digest)
      },
    }
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
    json: {
      dryRun: true,
      lanes,
      ...(letters !== undefined && { letters, through }),
      digest,
      totals: tried.totals,
      isWhole: tried.isWhole,
      kind: tried.kind,
      tried: shown,
    },
    show: (out) => {
      showDryRun(out, tried, shown, { lanes, ended: act === 'redrive' ? 0 : endedOf(tried, through) })
      // Without --whole, the head of each lane.
      if (act !== 'redrive')
        out.data(
          `${many(letters ?? lanes, 'letter')} would ${act === 'discard' ? 'be discarded' : 'count as handled manually'}.`,
        )
      const failed = act === 'redrive' ? firstFailed(tried) : undefined
      if (failed !== undefined) out.next(`holdfast dlq show ${name} ${failed}`)
      else if (lanes > 0) expectHint(ctx, digest, through === undefined ? '' : `--whole ${through} `)
    },
    exit: tried.totals.fail > 0 ? 3 : 0,
  }
}

/** How many of the shown letters the act would end without a try. */
function endedOf({ lanes }: DryRun, through = 0): number {
  return lanes.flatMap(({ letters }) => letters.filter(({ position }, i) => i === 0 || position <= through)).length
}

/** The first letter that would fail, if no lane would pass. */
function firstFailed({ lanes, totals }: DryRun): number | undefined {
  if (totals.pass > 0 || totals.unknown > 0) return undefined
  return lanes.flatMap(({ letters }) => letters).find(({ outcome }) => outcome.outcome === 'failed')?.position
}

/** Rows contain payload values. Without `--reveal` only their shapes and the changed fields are shown. */
function laneJson({ lane, verdict, letters, changes }: DryLane, isRevealed: boolean) {
  const row = (value: unknown) => (value === undefined ? null : isRevealed ? value : shapeOf(value))
  const rowsOf = (list: DryLane['changes']) =>
    list.map(({ table, before, after }) => ({
      table,
      changed: changedFields(before, after),
      fields: shownChanges(before ?? {}, after ?? {}, isRevealed),
      before: row(before),
      after: row(after),
    }))
  return {
    lane,
    verdict,
    changes: rowsOf(changes),
    letters: letters.map(({ position, eventId, type, revision, outcome, letter }) => ({
      position,
      eventId,
      type,
      revision: revision ?? null,
      ...outcomeJson(outcome, letter, isRevealed, rowsOf),
    })),
  }
}

function outcomeJson(
  outcome: DryOutcome,
  letter: DeadLetter,
  isRevealed: boolean,
  rowsOf: (list: DryLane['changes']) => unknown,
) {
  const effectsOf = (effects: readonly string[]) =>
    isRevealed ? effects : effects.map((effect) => redact(effect, payloadOf(letter)))
  switch (outcome.outcome) {
    case 'applied':
      return { outcome: outcome.outcome, changes: outcome.changes === undefined ? null : rowsOf(outcome.changes) }
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
  return [...new Set([...fields].filter((field) => text(before, field) !== text(after, field)).map(keyShape))]
}

function printable(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

function showDryRun(
  out: Output,
  { totals, isWhole, kind }: DryRun,
  shown: readonly ReturnType<typeof laneJson>[],
  { lanes, ended }: { readonly lanes: number; readonly ended: number },
): void {
  for (const { lane, verdict, letters, changes } of shown) {
    const paint = { pass: green, fail: red, unknown: yellow }[verdict]
    out.data(paint(verdict), ' ', bold(laneName(lane)))
    for (const letter of letters) out.data('  ', `${letter.position} ${letter.type}  `, outcomeText(letter))
    for (const { table, fields, before, after } of changes) {
      const what =
        before === null ? 'a row would be added' : after === null ? 'a row would be removed' : 'a row would change'
      out.data('  ', dim(`${table}: `), fields.length === 0 ? 'nothing would change' : what)
      for (const field of fields) out.data('    ', changeLine(field))
    }
  }
  // A letter that the act ends counts as one that passes, but is not tried.
  const byVerdict = { ...totals, pass: totals.pass - ended }
  const parts = Object.entries(byVerdict).map(([verdict, value]) => `${count(value)} ${verdict}`)
  out.data(`${many(lanes, 'lane')}; letters tried: ${parts.join(', ')}. Nothing was kept.`)
  if (!isWhole) out.talk('Not all letters were tried. Use --limit to try more.')
  if (kind === 'handler' && totals.unknown > 0)
    out.talk('A dry run calls only handlers that are defined with dryRun: true.')
}

function outcomeText(letter: ReturnType<typeof laneJson>['letters'][number]): Text {
  switch (letter.outcome) {
    case 'applied':
      return green('would be applied')
    case 'handled':
      return [green('would succeed'), letter.effects.length > 0 ? `: ${letter.effects.join(', ')}` : '']
    case 'would be called':
      return yellow('would be called')
    case 'failed':
      return [red('would fail: '), failureLine(letter.failure)]
    case 'ignored':
      return dim(letter.why)
    case 'behind':
      return dim('not tried: an earlier letter of the lane fails')
  }
}
