/** When a breaker opens, for how long, and what it takes to close it again. */
export interface BreakerSettings {
  /** So many failures one after the other; or such a share of the calls within a window, of which there must have been some. */
  readonly opens:
    | { readonly by: 'count'; readonly failures: number }
    | { readonly by: 'rate'; readonly rate: number; readonly windowMs: number; readonly minimumCalls: number }
  /** Grows with every time it opens again without having closed. */
  readonly cooldown: { readonly ms: number; readonly factor: number; readonly mostMs: number }
  /** How many calls may be under way at once while it is half open. */
  readonly probes: number
  /** How many of them must succeed, one after the other, to close it. */
  readonly successes: number
  /** How many processes must see it fail before it opens for all of them. */
  readonly quorum: number
}

/** A state owns its data. Times are those of the store, in milliseconds since 1970. */
export type BreakerState =
  | { readonly state: 'closed' }
  | { readonly state: 'open'; readonly openedAt: number; readonly reopensAt: number; readonly openings: number }
  | { readonly state: 'half-open'; readonly since: number; readonly successes: number; readonly openings: number }
  /** By a person, until a person resets it. */
  | { readonly state: 'isolated'; readonly since: number; readonly by: string; readonly reason: string }

/** A breaker that is usable, whoever uses it: the engine for a handler, or a program by itself. */
export interface Breaker {
  readonly name: string
  /**
   * Whether a call may go out now. `probe` may, as one of few; who got it must say how it ended. `open`: not before `retryAt`.
   */
  enter(): Promise<BreakerEntry>
  /** How a call ended that `enter` let through. */
  report(entry: BreakerEntry, succeeded: boolean): Promise<void>
  /** Both in one. Throws `BREAKER_OPEN` without calling when it is open. */
  call<T>(work: (signal?: AbortSignal) => T | Promise<T>): Promise<T>
  state(): Promise<BreakerState>
}

export type BreakerEntry =
  | { readonly entry: 'closed' | 'probe' }
  | { readonly entry: 'open'; readonly retryAt: number }
