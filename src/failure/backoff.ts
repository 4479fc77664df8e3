import type { Random } from '../runtime/ports.ts'

/** How long to wait before a retry: an immutable value, which a policy keeps and tests can walk. */
export interface Backoff {
  /** For people and for status: `2s, 4s, 8s`, `exponential from 1s, at most 30s`. */
  readonly description: string
  /** Before retry number `retry`, which begins at 1. */
  delayMs(retry: number, random: Random): number
}
