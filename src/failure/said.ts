import { type Duration, toMs } from '../runtime/duration.ts'
import type { Classified } from './classify.ts'
import { sound } from './rules.ts'
import { field, printed } from './peek.ts'

/** Registered, so that an error of another copy of this package is understood too. */
const brand = Symbol.for('holdfast.failure')

export interface SaidOptions {
  readonly cause?: unknown
  /** Not before this; at most an hour. The policy may wait longer. */
  readonly retryAfter?: Duration
}

/** What a handler throws to say outright what its failure is. Made by `failure`. */
export class FailureError extends Error {
  readonly [brand]: Omit<Classified, 'rule' | 'evidence'>

  constructor(message: string, told: Omit<Classified, 'rule' | 'evidence'>, options: SaidOptions = {}) {
    super(printed(message), options?.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'FailureError'
    const retryAfterMs = waitOf(options?.retryAfter)
    this[brand] = retryAfterMs === undefined ? told : { ...told, retryAfterMs }
  }
}

/**
 * Lets a handler say what its failure is, instead of leaving it to the rules. Each returns an error: `throw failure.permanent('…')`.
 * None of them ever throws by itself, as that would put a mistake in the arguments in the place of the failure they are about.
 */
export const failure = {
  /** It may go through if it is tried again. */
  transient: (message: string, options: SaidOptions = {}): FailureError =>
    new FailureError(message, { class: 'transient' }, options),

  /** It will fail every time. */
  permanent: (message: string, options: Omit<SaidOptions, 'retryAfter'> = {}): FailureError =>
    new FailureError(message, { class: 'permanent' }, { cause: options?.cause }),

  /** Somebody we call is out of order, and the event is not to blame. */
  dependency: (name: string, message = `${printed(name)} is out of order`, options: SaidOptions = {}): FailureError =>
    new FailureError(message, { class: 'dependency', dependency: printed(name) }, options),

  /** There is nothing to do about this event: it is recorded, with the reason, and passed over. */
  skip: (reason: string): FailureError =>
    new FailureError(reason, { class: 'permanent', skip: printed(reason) || 'no reason' }),
} as const

/** What a handler said outright. */
export function said(error: unknown): Classified | undefined {
  const told = sound(field(error, brand))
  return told && { evidence: null, ...told, rule: 'said' }
}

function waitOf(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined
  try {
    return toMs(duration, 'retryAfter')
  } catch {
    return undefined
  }
}
