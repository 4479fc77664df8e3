import { type Command, InvalidArgumentError, Option } from 'commander'
import { payloadOf } from '../dead-letter/payload.ts'
import { redactFailure } from '../dead-letter/redact.ts'
import type { DeadLetter, LetterStatus, Revision } from '../dead-letter/letter.ts'
import type { LetterFilter, LetterStore } from '../dead-letter/letter-store.ts'
import { type Failure, type FailureClass, failureClasses } from '../failure/failure.ts'
import { heldStatuses } from '../operator/letters.ts'
import { pastTime, wholeNumber } from './command.ts'
import { iso } from './output/times.ts'

/** Flags that select letters. */
export interface FilterFlags {
  readonly lane?: string
  /** The same as `lane`: by default the lane of an event is its key. */
  readonly key?: string
  readonly status?: LetterStatus
  readonly type?: string
  readonly class?: FailureClass
  /** The fingerprint of an incident. */
  readonly incident?: string
  readonly since?: number
  readonly until?: number
  readonly text?: string
  readonly partition?: number
}

const statuses: readonly string[] = [...heldStatuses, 'resolved', 'discarded'] satisfies LetterStatus[]

/** What a command selects: letters, or lanes by their heads. */
type Selects = 'letters' | 'lanes'

export function withFilter(command: Command, selects: Selects = 'letters'): Command {
  const isLetters = selects === 'letters'
  const held = isLetters ? 'only letters held' : 'only lanes whose head was held'
  return command
    .option('--type <type>', isLetters ? 'only events of this type' : 'only lanes whose head has this type')
    .option(
      '--class <class>',
      `only ${isLetters ? 'letters whose last failure' : 'lanes where the last failure of the head'} has this class: ${failureClasses.join(', ')}`,
      oneOf(failureClasses),
    )
    .option('--since <time>', `${held} at or after this time: 2h, or 2026-03-01T02:30:00Z`, pastTime)
    .option('--until <time>', `${held} before this time`, pastTime)
    .option(
      '--text <text>',
      `only ${isLetters ? 'letters with' : 'lanes whose head has'} this text in the lane, the event's id or type, or the error's type, code or message`,
    )
    .option('--partition <n>', `only ${selects} of this partition`, wholeNumber)
}

export function withLane(command: Command, selects: Selects = 'letters'): Command {
  return command
    .option('--lane <lane>', selects === 'letters' ? 'only letters of this lane' : 'only this lane')
    .addOption(new Option('--key <key>', 'the same as --lane, for the lane of this key').conflicts('lane'))
}

/** Lists and exports have the same default: held letters. */
export function withStatus(command: Command): Command {
  const status = new Option('--status <status>', `only letters with this status: ${statuses.join(', ')}`)
  return command
    .addOption(status.argParser(oneOf(statuses)).conflicts('all'))
    .option('--all', 'also resolved and discarded letters')
}

function oneOf(allowed: readonly string[]): (text: string) => string {
  return (text) => {
    if (allowed.includes(text)) return text
    throw new InvalidArgumentError(`Give one of ${allowed.join(', ')}.`)
  }
}

export function filterOf(flags: FilterFlags): LetterFilter {
  const given = { ...flags, lane: flags.lane ?? flags.key, fingerprint: flags.incident }
  const names = ['lane', 'status', 'type', 'class', 'fingerprint', 'since', 'until', 'text', 'partition'] as const
  return Object.fromEntries(names.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])))
}

/** A letter with all its revisions: its attempts can quote each of them. */
export interface RevisedLetter extends DeadLetter {
  readonly revisions?: readonly Revision[]
}

export async function withRevisions(letters: LetterStore, letter: DeadLetter): Promise<RevisedLetter> {
  // The first attempt is made before an operator can edit the letter.
  if (letter.attemptsTotal < 2 && !letter.revision) return letter
  const { subscription, partition, event } = letter
  return { ...letter, revisions: await letters.revisions({ subscription, partition, position: event.position }) }
}

export function withoutPayload(failure: Failure, letter: RevisedLetter): Failure {
  return redactFailure(failure, payloadOf(letter))
}

/** A failure as it may be shown: whole, or without values of the payload. */
export function shownFailure(
  letter: RevisedLetter,
  failure: Failure | undefined,
  isRevealed: boolean,
): Failure | undefined {
  return failure === undefined || isRevealed ? failure : withoutPayload(failure, letter)
}

/** Only an operator's decision is stored with a reason; of the engine's it follows from the attempts. */
export function endedReasonOf({ endedAt, endedReason, attemptsTotal }: DeadLetter): string | undefined {
  if (endedReason !== undefined || endedAt === undefined) return endedReason
  return attemptsTotal === 0 ? 'its first attempt succeeded, in order' : 'a later attempt succeeded'
}

/** A letter in a list: everything but its payload. */
export function letterJson(letter: RevisedLetter, isRevealed = false) {
  const { subscription, partition, lane, sequence, status, event, heldAt, endedAt, endedBy } = letter
  const failure = shownFailure(letter, letter.failure, isRevealed)
  return {
    subscription,
    partition,
    position: event.position,
    lane,
    sequence,
    status,
    event: { id: event.id, type: event.type, key: event.key, version: event.version ?? null, time: event.time },
    heldAt: iso(heldAt),
    endedAt: iso(endedAt),
    endedBy: endedBy ?? null,
    endedReason: endedReasonOf(letter) ?? null,
    attempts: letter.attemptsTotal,
    revision: letter.revision?.number ?? null,
    failure: failure === undefined ? null : failureJson(failure),
  }
}

export function failureJson({ class: of, rule, evidence = null, code, errorType, message, fingerprint }: Failure) {
  return { class: of, rule, evidence, code, errorType, message, fingerprint }
}

/** The class of a failure, and the rule that chose it. */
export function classLine({ class: of, rule, evidence }: Pick<Failure, 'class' | 'rule' | 'evidence'>): string {
  const by = rule === 'said' ? 'set explicitly by the code' : `by the rule ${rule}`
  return `${of}, ${by}${evidence == null ? '' : `: ${evidence}`}`
}

export function failureLine({ errorType, message, code }: Pick<Failure, 'errorType' | 'message' | 'code'>): string {
  return `${errorType}${code === null ? '' : ` ${code}`}: ${message}`
}
