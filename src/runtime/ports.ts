/**
 * The only access of the core to time and randomness. The simulator and the tests pass their own, so that a run is reproducible;
 * `system.ts` has the real ones.
 */
export interface Clock {
  /** Wall time in whole milliseconds since 1970. For display and timestamps, not for measuring. */
  now(): number
  /** Monotonic milliseconds. For measuring and waiting. */
  mono(): number
}

export interface Timers {
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Yields to the event loop. A loop without it would block the process. */
  yield(): Promise<void>
}

export interface Random {
  /** A whole number from 0 to 2^32 - 1. */
  u32(): number
}

export interface Runtime {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/** Publishes to listeners that don't know the engine: a channel of `node:diagnostics_channel`. */
export interface Channel {
  /** If false, publishing can be skipped. */
  readonly hasSubscribers: boolean
  publish(message: object): void
}

/**
 * Detects when user code blocks the main thread. It watches from another thread; the engine only tells it what it is about to
 * run. Created by `startWatchdog` of `holdfast/watchdog`.
 */
export interface Watchdog {
  /** For example `handler notify-partner, event 0198c7a2-…`. Printed if the work never yields. */
  began(what: string): void
}
