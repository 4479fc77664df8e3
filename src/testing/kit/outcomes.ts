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
 *     done      handled, and that is in the store
 *     retrying  failed, and will be tried again
 *     waiting   for a breaker that is open
 *     parked    failed, and needs a person
 *     queued    behind another event of its key
 *     skipped   passed over, because its policy says so or because it is a duplicate
 *     ignored   the handler is not about this type of event
 *     pending   not yet tried, or still under way
 */
export type OutcomeName = 'done' | 'retrying' | 'waiting' | 'parked' | 'queued' | 'skipped' | 'ignored' | 'pending'

/** What became of an event, as far as a handler is concerned. */
export interface Outcome {
  readonly outcome: OutcomeName
  /** How often it was tried. */
  readonly attempts: number
  /** Of one that is tried again: in how many milliseconds. */
  readonly in?: number
  readonly class?: FailureClass
  readonly error?: { readonly type: string; readonly code: string | null; readonly message: string }
  /** Equal for failures that look like the same bug. */
  readonly fingerprint?: string
  /** Why it was passed over. */
  readonly reason?: string
}

/** Its name, or as much of it as the test is about. */
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
