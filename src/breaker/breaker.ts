import { HoldfastError } from '../errors.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { BreakerStore } from './breaker-store.ts'
import { createToken } from './entry.ts'
import { Gate } from './gate.ts'
import { checkBreakerName } from './name.ts'
import { type BreakerOptions, breakerOptionNames, breakerSettings } from './settings.ts'

/** When a breaker opens, for how long, and what it takes to close it again. Made by `breakerSettings`. */
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
  /** How many processes must see it fail before it opens for all of them. One that does opens it for itself in any case. */
  readonly quorum: number
  /** After so long nobody waits for the end of a probe any more: its process is gone. Longer than a call may take; a minute. */
  readonly probeLeaseMs?: number
}

/** A state owns its data. Times are those of the store, in milliseconds since 1970. */
export type BreakerState =
  /** `reset` when it was a person who closed it. */
  | { readonly state: 'closed'; readonly reset?: { readonly by: string; readonly at: number } }
  /** `openings`: how often in a row, without having closed. `local`: for this process alone; the others have no part in it. */
  | {
      readonly state: 'open'
      readonly openedAt: number
      readonly reopensAt: number
      readonly openings: number
      readonly local?: true
    }
  | {
      readonly state: 'half-open'
      readonly since: number
      readonly successes: number
      readonly openings: number
      readonly local?: true
    }
  /** By a person, until a person resets it. */
  | { readonly state: 'isolated'; readonly since: number; readonly by: string; readonly reason: string }

/**
 * Whether a call may go out.
 *
 * `open` means *defer*, and nothing else: whatever the call was for keeps its place, its status and its attempts, and asks again
 * at `retryAt`. For `isolated`, where only a person knows when, and while the probes of others are under way, `retryAt` is merely
 * when it makes sense to ask again.
 *
 * Who got `closed` or `probe` says how it ended, once: with `report`, or with `forget` when it was never found out (cancelled,
 * never sent) or when the failure is not the fault of who was called.
 */
export type BreakerEntry =
  | BreakerPass
  | {
      readonly entry: 'open'
      readonly state: 'open' | 'half-open' | 'isolated'
      /** In the time of the store. */
      readonly retryAt: number
      /** The same, from now: for a timer, which knows nothing of the store's time. */
      readonly afterMs: number
    }

/** What came with a call that was let through; its fields are the breaker's own. */
export interface BreakerPass {
  readonly entry: 'closed' | 'probe'
  /** In which era of the shared circuit, and of this process's own. See `circuit.ts`. */
  readonly era: number
  readonly ownEra: number
  readonly probe?: { readonly id: string; readonly of: 'all' | 'process' }
}

/** A breaker that is usable, whoever uses it: the engine for a handler, or a program by itself. */
export interface Breaker {
  readonly name: string
  /**
   * Whether a call may go out now. Never throws: while the store can't be asked, this process decides by what it knows.
   */
  enter(): Promise<BreakerEntry>
  /** How a call ended that `enter` let through. Never throws. What comes twice, or too late to say anything about now, changes nothing. */
  report(entry: BreakerEntry, succeeded: boolean): Promise<void>
  /** No verdict: gives a probe back so that somebody else may try. Never throws. */
  forget(entry: BreakerEntry): Promise<void>
  /**
   * All in one. Throws `BreakerOpenError` (`BREAKER_OPEN`) without calling when it is open. What the work throws is a failure and is
   * thrown on; unless `counts` says that it is none, or the signal is aborted, which is nobody's fault.
   */
  call<T>(work: (signal: AbortSignal | undefined) => T | Promise<T>, options?: CallOptions): Promise<T>
  /** As this process sees it, not older than a second unless the store can't be asked. */
  state(): Promise<BreakerState>
  /** Opens it for all processes until a person resets it. Throws when the store can't do it: a person must know. */
  isolate(by: string, reason: string): Promise<void>
  /** Closes it for all processes, whatever it was, and forgets what went wrong. Throws when the store can't do it. */
  reset(by: string): Promise<void>
  /** Lets what is under way with the store end; after that it never touches the store again. */
  close(): Promise<void>
}

export interface CallOptions {
  /** Handed on to the work. */
  readonly signal?: AbortSignal
}

/** What to tell whom. A hook that throws changes nothing. */
export interface BreakerHooks {
  /** As this process came to see it; what happened in between, elsewhere, within a second may be missing. */
  readonly onChange?: (name: string, from: BreakerState, to: BreakerState) => void
  /** The store could not be asked or told. At most once a second for each breaker; meanwhile it works by itself. */
  readonly onStoreError?: (name: string, error: unknown) => void
}

export interface CreateBreakerOptions extends BreakerOptions, BreakerHooks, Partial<Runtime> {
  /** What all processes share. */
  readonly store: { readonly breakers: BreakerStore }
  /** Who shares it: breakers of one name are one breaker. Such as an endpoint. */
  readonly name: string
  /** Whether what `call` caught is the fault of who was called. Everything is, unless you say. */
  readonly counts?: (error: unknown) => boolean
  /** Who this process is; made up unless you say. No two at a time may have the same. */
  readonly processId?: string
}

const optionNames = [
  'store',
  'name',
  'counts',
  'processId',
  'onChange',
  'onStoreError',
  'clock',
  'timers',
  'random',
  ...breakerOptionNames,
]

export function createBreaker(options: CreateBreakerOptions): Breaker {
  checkOptions(options, 'createBreaker', optionNames)
  const { store, name, counts, processId, onChange, onStoreError, clock, timers, random, ...rest } = options
  if (typeof store?.breakers?.load !== 'function') {
    throw new HoldfastError('OPTION_INVALID', 'createBreaker needs a store.', {
      hint: 'Give what createSqliteStore or createPostgresStore resolves to; mind the await.',
    })
  }
  const runtime: Runtime = {
    clock: clock ?? systemRuntime.clock,
    timers: timers ?? systemRuntime.timers,
    random: random ?? systemRuntime.random,
  }
  return new Gate({
    store: store.breakers,
    name: checkBreakerName(name),
    settings: breakerSettings(rest),
    runtime,
    processId: processId ?? createToken(runtime.random),
    counts: counts ?? (() => true),
    hooks: { ...(onChange && { onChange }), ...(onStoreError && { onStoreError }) },
  })
}
