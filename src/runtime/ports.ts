/**
 * The only ways in which the core learns about time and chance. The simulator and the tests pass their own, so a run can
 * be repeated to the letter; everybody else gets `system.ts`.
 */
export interface Clock {
  /** Wall time in whole milliseconds since 1970. For people and for stamps, never for measuring. */
  now(): number
  /** Milliseconds that only ever grow. For measuring and for waiting. */
  mono(): number
}

export interface Timers {
  /** Resolves after `ms`, or at once when the signal aborts. It never rejects, so a wait needs no catch. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Lets everything else that is ready run first. A loop without it would starve the process it lives in. */
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

/** Where others in the process can listen without knowing the engine: a channel of `node:diagnostics_channel`. */
export interface Channel {
  /** While nobody listens, nothing need be published. */
  readonly hasSubscribers: boolean
  publish(message: object): void
}

/**
 * Notices when the program stands still in somebody's code. It watches from outside; whoever is about to run such code only tells it
 * what. `startWatchdog` of `holdfast/watchdog` makes one.
 */
export interface Watchdog {
  /** Such as `handler notify-partner, event 0198c7a2-…`. It is shown if what begins here never comes to a pause. */
  began(what: string): void
}
