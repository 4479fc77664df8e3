import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { FailureClass } from '../../failure/failure.ts'
import type { Handler } from '../../handler/handler.ts'
import { type Duration, toMs } from '../../runtime/duration.ts'
import type { Store } from '../../store.ts'
import type { PlacedEvent } from './events.ts'
import { type ExpectedError, isExpectedError } from './expected-error.ts'
import { dueLanes, lettersOf } from './look.ts'
import type { TestProcess } from './process.ts'

/**
 *     done      handled and recorded
 *     retrying  failed, and will be retried
 *     waiting   its breaker is open
 *     parked    failed, and needs an operator
 *     queued    after another event of its key
 *     skipped   skipped by its policy, or a duplicate
 *     ignored   the handler has no function for this event type
 *     pending   not tried yet, or still running
 */
export type OutcomeName = 'done' | 'retrying' | 'waiting' | 'parked' | 'queued' | 'skipped' | 'ignored' | 'pending'

/** The outcome of an event for a handler. */
export interface Outcome {
  readonly outcome: OutcomeName
  /** The number of attempts. */
  readonly attempts: number
  /** For a retry: the delay in milliseconds. */
  readonly in?: number
  readonly class?: FailureClass
  readonly error?: { readonly type: string; readonly code: string | null; readonly message: string }
  /** Equal for failures that look like the same bug. */
  readonly fingerprint?: string
  /** Why it was skipped. */
  readonly reason?: string
}

/** Its name, or the fields that the test is about. */
export type ExpectedOutcome =
  | OutcomeName
  | {
      readonly outcome: OutcomeName
      readonly attempts?: number
      readonly in?: Duration
      readonly class?: FailureClass
      readonly error?: ExpectedError
      readonly fingerprint?: string
      readonly reason?: string | RegExp
    }

export async function outcomesOf(
  store: Store,
  handler: Handler,
  { attempts, written, skipped }: TestProcess,
  events: readonly PlacedEvent[],
  now: number,
): Promise<Outcome[]> {
  const letters = new Map((await lettersOf(store, [handler.name])).map((letter) => [letter.event.position, letter]))
  const due = await dueLanes(store, handler.name)
  return events.map(({ position, type }) => {
    const tried = attempts.get(position) ?? 0
    const letter = letters.get(position)
    if (letter) return { attempts: tried, ...ofLetter(letter, due, now) }
    const reason = skipped.get(position)
    if (reason !== undefined) return { outcome: 'skipped', attempts: tried, reason }
    if (!handler.functions.has(type)) return { outcome: 'ignored', attempts: tried }
    return { outcome: written.has(position) ? 'done' : 'pending', attempts: tried }
  })
}

function ofLetter(letter: DeadLetter, due: ReadonlyMap<string, number>, now: number): Omit<Outcome, 'attempts'> {
  const { status, lane, endedReason } = letter
  const failure = letter.attempts.at(-1)?.failure ?? letter.failure
  const why = failure && {
    class: failure.class,
    error: { type: failure.errorType, code: failure.code, message: failure.message },
    fingerprint: failure.fingerprint,
  }
  switch (status) {
    case 'resolved':
      return { outcome: 'done' }
    case 'discarded':
      return { outcome: 'skipped', ...why, ...(endedReason !== undefined && { reason: endedReason }) }
    case 'retrying':
      return { outcome: 'retrying', in: Math.max(0, (due.get(lane) ?? now) - now), ...why }
    default:
      return { outcome: status, ...why }
  }
}

export function isExpected(outcome: Outcome, expected: ExpectedOutcome): boolean {
  if (typeof expected === 'string') return outcome.outcome === expected
  const { error, reason, in: delay, ...plain } = expected
  return (
    Object.entries(plain).every(
      ([name, value]) => value === undefined || outcome[name as keyof typeof plain] === value,
    ) &&
    (delay === undefined || outcome.in === toMs(delay, 'in')) &&
    (error === undefined || (outcome.error !== undefined && isExpectedError(outcome.error, error))) &&
    (reason === undefined ||
      (typeof reason === 'string' ? outcome.reason === reason : reason.test(outcome.reason ?? '')))
  )
}
