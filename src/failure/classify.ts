import type { FailureClass } from './failure.ts'

/** What an error is, by which rule, and by what in it: a code, a status, a class. */
export interface Classified {
  readonly class: FailureClass
  readonly rule: string
  /** Such as `ECONNREFUSED`, `HTTP 503`, `SQLSTATE 40001`; null where nothing but the rule tells. */
  readonly evidence: string | null
  /** How long the other side asked us to wait, within limits. */
  readonly retryAfterMs?: number
  /** Who is down, for a failure of the class `dependency`. */
  readonly dependency?: string
  /** Said outright by the handler: the event is to be recorded and passed over. */
  readonly skip?: string
}

/** Undefined when the rule has nothing to say about it. It may throw: then it has nothing to say either. */
export type Rule = (error: unknown) => Classified | FailureClass | undefined
