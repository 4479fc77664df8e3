import { type Duration, toMs } from '../runtime/duration.ts'
import type { Classified } from './classify.ts'
import { sound } from './rules.ts'
import { field, printed } from './peek.ts'

/** Registered globally, so that errors of another copy of this package are recognised. */
const brand = Symbol.for('holdfast.failure')

export interface SaidOptions {
  readonly cause?: unknown
  /** The minimum delay; at most 1 hour. The policy may wait longer. */
  readonly retryAfter?: Duration
}

/** An error with which a handler sets the class of its failure. Created by `failure`. */
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
 * Sets the class of a failure in a handler. Each function returns an error: `throw failure.permanent('…')`. None of them throws
 * on invalid arguments, because that would hide the failure.
 */
export const failure = {
  /** May succeed on a retry. */
  transient: (message: string, options: SaidOptions = {}): FailureError =>
    new FailureError(message, { class: 'transient' }, options),

  /** Fails every time. */
  permanent: (message: string, options: Omit<SaidOptions, 'retryAfter'> = {}): FailureError =>
    new FailureError(message, { class: 'permanent' }, { cause: options?.cause }),

  /** A service is unavailable, and the event is not the cause. */
  dependency: (name: string, message = `${printed(name)} is unavailable`, options: SaidOptions = {}): FailureError =>
    new FailureError(message, { class: 'dependency', dependency: printed(name) }, options),

  /** There is nothing to do: the event is recorded as discarded, with the reason. */
  skip: (reason: string): FailureError =>
    new FailureError(reason, { class: 'permanent', skip: printed(reason) || 'no reason' }),
} as const

/** What the handler set. */
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
