import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { redactFailure } from '../dead-letter/redact.ts'
import type { DeadLetter, HeldStatus, LetterStatus } from '../dead-letter/letter.ts'
import type { LetterFilter } from '../dead-letter/letter-store.ts'
import { parseBody } from '../event/event.ts'
import { type Failure, type FailureClass, failureClasses } from '../failure/failure.ts'
import { pastTime, wholeNumber } from './command.ts'

/** Which letters, as flags. */
export interface FilterFlags {
  readonly lane?: string
  readonly status?: LetterStatus
  readonly type?: string
  readonly class?: FailureClass
  readonly fingerprint?: string
  readonly since?: number
  readonly until?: number
  readonly text?: string
  readonly partition?: number
}

export const heldStatuses = ['parked', 'waiting', 'retrying', 'queued'] as const satisfies readonly HeldStatus[]
const statuses: readonly string[] = [...heldStatuses, 'resolved', 'discarded'] satisfies LetterStatus[]

export function withFilter(command: Command): Command {
  return command
    .option('--type <type>', 'of this type of event')
    .option('--class <class>', `whose last failure is ${failureClasses.join(', ')}`, oneOf(failureClasses))
    .option('--since <time>', 'held at this time or later: 2h, or 2026-03-01T02:30:00Z', pastTime)
    .option('--until <time>', 'held before this time', pastTime)
    .option('--text <text>', "with this in the lane, in the event's id or type, or in an error's type, code or message")
    .option('--partition <n>', 'of this partition', wholeNumber)
}

export function withStatus(command: Command): Command {
  return command.option('--status <status>', statuses.join(', '), oneOf(statuses))
}

function oneOf(allowed: readonly string[]): (text: string) => string {
  return (text) => {
    if (allowed.includes(text)) return text
    throw new InvalidArgumentError(`Give one of ${allowed.join(', ')}.`)
  }
}

export function filterOf(flags: FilterFlags): LetterFilter {
  const names = ['lane', 'status', 'type', 'class', 'fingerprint', 'since', 'until', 'text', 'partition'] as const
  return Object.fromEntries(names.flatMap((name) => (flags[name] === undefined ? [] : [[name, flags[name]]])))
}

export function withoutPayload(failure: Failure, letter: DeadLetter | undefined): Failure {
  return redactFailure(failure, letter && payloadOf(letter))
}

/** A failure as it may be shown: whole, or without what may be of the payload. */
export function shownFailure(
  letter: DeadLetter,
  failure: Failure | undefined,
  isRevealed: boolean,
): Failure | undefined {
  return failure === undefined || isRevealed ? failure : withoutPayload(failure, letter)
}

/** Everything of a letter that must not be told unasked. */
export function payloadOf({ event, revision }: DeadLetter): unknown {
  return [
    tryParse(event.body),
    event.metadata === undefined ? undefined : tryParse(event.metadata),
    revision && tryParse(revision.body),
  ]
}

function tryParse(body: string | Uint8Array): unknown {
  try {
    return parseBody(body)
  } catch {
    // What can't be read as JSON is a value as a whole.
    return typeof body === 'string' ? body : Buffer.from(body).toString('latin1')
  }
}

/** A letter in a list: everything but its payload. */
export function letterJson(letter: DeadLetter, isRevealed = false) {
  const { subscription, partition, lane, sequence, status, event, heldAt, endedAt, endedBy, endedReason } = letter
  const failure = shownFailure(letter, letter.failure, isRevealed)
  return {
    subscription,
    partition,
    position: event.position,
    lane,
    sequence,
    status,
    event: { id: event.id, type: event.type, key: event.key, version: event.version ?? null, time: event.time },
    heldAt,
    endedAt: endedAt ?? null,
    endedBy: endedBy ?? null,
    endedReason: endedReason ?? null,
    attempts: letter.attemptsTotal,
    revision: letter.revision?.number ?? null,
    failure: failure === undefined ? null : failureJson(failure),
  }
}

export function failureJson({ class: of, rule, code, errorType, message, fingerprint }: Failure) {
  return { class: of, rule, code, errorType, message, fingerprint }
}

export function failureLine({ errorType, message, code }: Pick<Failure, 'errorType' | 'message' | 'code'>): string {
  return `${errorType}${code === null ? '' : ` ${code}`}: ${message}`
}
