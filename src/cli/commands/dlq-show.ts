import type { Command } from 'commander'
import { attemptNumbers, keptAttempts } from '../../dead-letter/attempts.ts'
import { payloadOf } from '../../dead-letter/payload.ts'
import { redact } from '../../dead-letter/redact.ts'
import { shapeOf } from '../../dead-letter/shape.ts'
import { foldStack, type StackFrames } from '../../dead-letter/stack.ts'
import type { Decoded, LetterView } from '../../operator/view.ts'
import { reasonOf } from '../act.ts'
import { action, type Perform, wholeNumber, withReason } from '../command.ts'
import { CommandError } from '../errors.ts'
import {
  classLine,
  endedReasonOf,
  failureJson,
  failureLine,
  letterJson,
  type RevisedLetter,
  shownFailure,
} from '../letters.ts'
import type { Output } from '../output/output.ts'
import { bold, dim, red, type Text } from '../output/style.ts'
import { iso } from '../output/times.ts'
import { ago, count, laneName, many, moment, shellWord } from '../output/words.ts'
import { type RevealFlags, revealHint, shapeText } from '../reveal.ts'
import { statusText } from './dlq-looks.ts'

interface Flags extends RevealFlags {
  readonly partition?: number
  readonly stack?: boolean
}

type View = LetterView & { readonly letter: RevisedLetter }

export function addShow(group: Command, perform: Perform): void {
  const command = group
    .command('show')
    .alias('inspect')
    .argument('<subscription>')
    .argument('<position>', 'the position of its event in the log')
    .description('show a letter; shapes instead of values without --reveal')
    .option('--partition <n>', 'the partition, if the source has the position in several', wholeNumber)
    .option('--stack', 'show all stack frames')
    .option('--reveal', 'show the values; recorded in the audit')
  action<Flags>(withReason(command), perform, async (ctx, [subscription = '', text = ''], flags) => {
    const name = { subscription, position: positionOf(text), partition: flags.partition }
    await ctx.storedSubscription(subscription)
    const operator = await ctx.operator()
    const found = flags.reveal ? await operator.reveal(name, await reasonOf(ctx, flags)) : await operator.letter(name)
    const view = { ...found, letter: { ...found.letter, revisions: found.revisions } }
    const isRevealed = flags.reveal === true
    const now = ctx.clock.now()
    return { json: { letter: jsonOf(view, isRevealed) }, show: (out) => show(out, view, flags, now) }
  })
}

export function positionOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new CommandError('USAGE', `${JSON.stringify(text)} is not a valid position.`, 'holdfast dlq list')
}

function shownData(letter: RevisedLetter, decoded: Decoded, isRevealed: boolean) {
  // Messages of a schema or an upcast may quote the data.
  if ('problem' in decoded)
    return { problem: isRevealed ? decoded.problem : redact(decoded.problem, payloadOf(letter)) }
  if (!isRevealed) return { shape: shapeOf(decoded.data) }
  return isJson(decoded.data)
    ? { data: decoded.data }
    : {
        problem:
          'The data is nested too deep to show, or its schema produces a value that JSON cannot represent. Use holdfast dlq export.',
      }
}

function isJson(data: unknown): boolean {
  try {
    return JSON.stringify(data) !== undefined
  } catch {
    return false
  }
}

function jsonOf(
  { letter, decoded, original, stack, lane, isHead, behind, revisions, redrive }: View,
  isRevealed: boolean,
) {
  return {
    ...letterJson(letter, isRevealed),
    isHead,
    decoded: shownData(letter, decoded, isRevealed),
    original: shownData(letter, original, isRevealed),
    ...(isRevealed && { body: letter.event.body, metadata: letter.event.metadata ?? null }),
    bytes: Buffer.byteLength(letter.event.body),
    attemptsTotal: letter.attemptsTotal,
    history: letter.attempts.map(({ at, failure }) => {
      const shown = shownFailure(letter, failure, isRevealed) ?? failure
      return { at: iso(at), failure: { ...failureJson(shown), causes: shown.causes } }
    }),
    stack: stackOf(letter, stack, isRevealed) ?? null,
    held:
      lane === undefined
        ? null
        : {
            status: lane.status,
            since: iso(lane.since),
            head: lane.headPosition,
            letters: lane.letters,
            dueAt: iso(lane.dueAt),
            breaker: lane.breaker ?? null,
          },
    behind: behind.map(({ event, status }) => ({ position: event.position, type: event.type, id: event.id, status })),
    revisions: revisions.map(({ number, by, reason, at, isTakenBack, body }) => ({
      number,
      by,
      reason,
      at: iso(at),
      isTakenBack,
      ...(isRevealed && { body }),
    })),
    redrive: redrive?.id ?? null,
  }
}

/** Function names may come from a payload, so a stack is redacted like its failure. */
function stackOf(letter: RevisedLetter, stack: StackFrames | undefined, isRevealed: boolean): StackFrames | undefined {
  if (isRevealed || stack === undefined) return stack
  const failure = shownFailure(letter, letter.failure, false)
  return failure && foldStack({ stack: failure.stack, message: '' })
}

function dataText(letter: RevisedLetter, decoded: Decoded, isRevealed: boolean): Text {
  const shown = shownData(letter, decoded, isRevealed)
  if ('problem' in shown) return red(shown.problem ?? '')
  return 'data' in shown ? JSON.stringify(shown.data) : shapeText(shown.shape)
}

function show(out: Output, view: View, flags: Flags, now: number): void {
  const { letter, lane, behind, revisions, redrive } = view
  const { event, subscription } = letter
  const isRevealed = flags.reveal === true
  const of = flags.partition === undefined ? '' : ` --partition ${flags.partition}`
  const failure = shownFailure(letter, letter.failure, isRevealed)
  const line = (title: string, ...text: Text[]) => out.data('  ', dim(title.padEnd(9)), text)
  out.data(bold(event.type), ' ', statusText(letter.status), dim(` ${subscription}, position ${event.position}`))
  line(
    'event',
    event.id,
    dim(` of ${event.time}, ${many(Buffer.byteLength(event.body), 'byte')}, schema ${event.schemaVersion}`),
  )
  line(
    'lane',
    laneName(letter.lane),
    `, version ${letter.sequence}`,
    lane ? dim(`, ${lane.status} since ${moment(lane.since)} with ${many(lane.letters, 'letter')}`) : '',
  )
  if (lane?.breaker !== undefined) line('waits', `for the breaker ${lane.breaker}`)
  else if (lane?.status === 'waiting') line('waits', `for version ${(lane.done ?? 0) + 1}`)
  if (lane?.dueAt !== undefined) line('due', moment(lane.dueAt))
  if (redrive) line('redrive', redrive.id, dim(` by ${redrive.by}`))
  if (letter.endedAt !== undefined)
    line('ended', `${moment(letter.endedAt)} by ${letter.endedBy ?? 'engine'}: ${endedReasonOf(letter)}`)
  else if (letter.endedBy !== undefined)
    line('skipped', `at its turn, by ${letter.endedBy}: ${letter.endedReason ?? ''}`)
  line('data', dataText(letter, view.decoded, isRevealed))
  if (letter.revision) line('original', dataText(letter, view.original, isRevealed))
  for (const { number, by, reason, at, isTakenBack } of revisions)
    line(`edit ${number}`, `${moment(at)} by ${by}: ${reason}`, isTakenBack ? dim(' (undone)') : '')
  if (failure) {
    line('failure', red(failureLine(failure)))
    line('class', classLine(failure))
    line('incident', failure.fingerprint)
    for (const { errorType, message } of failure.causes) line('', dim('caused by '), errorType, ': ', message)
    if (view.stack) showStack(out, stackOf(letter, view.stack, isRevealed) ?? [], flags.stack === true)
  }
  const { numbers, missing } = attemptNumbers(letter.attempts.length, letter.attemptsTotal)
  for (const [i, attempt] of letter.attempts.entries()) {
    if (missing > 0 && i === keptAttempts.first) line('', dim(`… ${count(missing)} more …`))
    line(
      i === 0 ? 'attempts' : '',
      `${numbers[i]}. ${moment(attempt.at)}`,
      dim(` ${ago(attempt.at, now)}, ${shownFailure(letter, attempt.failure, isRevealed)?.errorType ?? ''}`),
    )
  }
  if (behind.length > 0) line('later', behind.map(({ event: each }) => `${each.position} ${each.type}`).join(', '))
  if (!isRevealed) out.talk(revealHint(out, `holdfast dlq show ${subscription} ${event.position}${of}`))
  if (!view.isHead && lane) {
    out.talk(`Its lane is held at position ${lane.headPosition}.`)
    out.next(`holdfast dlq show ${subscription} ${lane.headPosition}${of}`)
  } else if (lane)
    out.next(wayOut(view) ?? `holdfast dlq redrive ${subscription} --letter ${event.position}${of} --dry-run`)
}

/** The next step for a lane that a redrive would refuse; undefined for any other lane. */
export function wayOut({ lane, redrive, letter }: Pick<LetterView, 'lane' | 'redrive' | 'letter'>): string | undefined {
  if (redrive) return `holdfast redrives show ${redrive.id}`
  if (lane?.breaker !== undefined) return 'holdfast breakers list --open'
  if (lane?.status === 'waiting')
    return `holdfast dlq skip ${letter.subscription} --lane ${shellWord(lane.lane)} --dry-run`
  return undefined
}

function showStack(out: Output, frames: StackFrames, isWhole: boolean): void {
  for (const frame of frames) {
    if (frame.kind === 'frame') out.data('            ', frame.text)
    else if (isWhole) for (const text of frame.frames) out.data('            ', dim(text))
    else out.data('            ', dim(`… ${many(frame.frames.length, 'frame')} of ${frame.of}`))
  }
}
