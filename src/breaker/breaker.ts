import { HoldfastError } from '../errors.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { BreakerStore } from './breaker-store.ts'
import { createToken } from './entry.ts'
import { Gate } from './gate.ts'
import { checkBreakerName } from './name.ts'
import { type BreakerOptions, breakerOptionNames, breakerSettings } from './settings.ts'

/** When a breaker opens, for how long, and what closes it. Created by `breakerSettings`. */
export interface BreakerSettings {
  /** A number of consecutive failures, or a failure rate within a window that has a minimum number of calls. */
  readonly opens:
    | { readonly by: 'count'; readonly failures: number }
    | { readonly by: 'rate'; readonly rate: number; readonly windowMs: number; readonly minimumCalls: number }
  /** Grows each time the breaker opens again without having closed. */
  readonly cooldown: { readonly ms: number; readonly factor: number; readonly mostMs: number }
  /** Concurrent calls while half-open. */
  readonly probes: number
  /** Consecutive successes that close it. */
  readonly successes: number
  /**
   * The number of processes that must see failures before the breaker opens for all. Below that, it opens only in the processes
   * that see them.
   */
  readonly quorum: number
  /**
   * A probe without a result is given up after this time, because its process is probably dead. Must be longer than a call.
   * Default: 1 minute.
   */
  readonly probeLeaseMs?: number
}

/** A state owns its data. Times are store time, in milliseconds since 1970. */
export type BreakerState =
  /** `reset` is set if an operator closed it. */
  | { readonly state: 'closed'; readonly reset?: { readonly by: string; readonly at: number } }
  /** `openings`: consecutive openings without a close. `local`: open in this process only. */
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
  /** Opened by an operator, until an operator resets it. */
  | { readonly state: 'isolated'; readonly since: number; readonly by: string; readonly reason: string }

/**
 * Whether a call may be made.
 *
 * `open` means *defer*: the item keeps its place, status and attempts; ask again at `retryAt`. While `isolated`, or while probes
 * of other processes are running, `retryAt` is only a suggestion.
 *
 * After `closed` or `probe`, report the result once: with `report`, or with `forget` if there is no result (cancelled, never
 * sent) or the called service did not cause the failure.
 */
export type BreakerEntry =
  | BreakerPass
  | {
      readonly entry: 'open'
      readonly state: 'open' | 'half-open' | 'isolated'
      /** Store time. */
      readonly retryAt: number
      /** The same, relative to now: for timers, which don't use store time. */
      readonly afterMs: number
    }

/** Belongs to a call that was allowed. The fields are internal to the breaker. */
export interface BreakerPass {
  readonly entry: 'closed' | 'probe'
  /** The era of the shared circuit, and of this process's own. See `circuit.ts`. */
  readonly era: number
  readonly ownEra: number
  readonly probe?: { readonly id: string; readonly of: 'all' | 'process' }
}

/**
 * A circuit breaker, used by the engine for a handler, or by a program directly. To isolate or reset it, use `isolateBreaker` and
 * `resetBreaker` of an operator: acts are audited.
 */
export interface Breaker {
  readonly name: string
  /** Whether a call may be made now. Never throws: if the store is unavailable, the process decides by its local state. */
  enter(): Promise<BreakerEntry>
  /** Reports the result of a call that `enter` allowed. Never throws. Repeated and outdated reports are ignored. */
  report(entry: BreakerEntry, succeeded: boolean): Promise<void>
  /** Returns a probe without a result, so that another call can be the probe. Never throws. */
  forget(entry: BreakerEntry): Promise<void>
  /**
   * Enters, calls and reports. Throws `BreakerOpenError` (`BREAKER_OPEN`) without calling if the breaker is open. An error of
   * `work` is counted as a failure and rethrown. It is not counted if `counts` returns false or the signal is aborted.
   */
  call<T>(work: (signal: AbortSignal | undefined) => T | Promise<T>, options?: CallOptions): Promise<T>
  /** The state as this process knows it, at most 1 second old unless the store is unavailable. */
  state(): Promise<BreakerState>
  /** Waits for running store operations; the store is not used after that. */
  close(): Promise<void>
}

export interface CallOptions {
  /** Passed to the work. */
  readonly signal?: AbortSignal
}

/** Callbacks. An error of a callback is ignored. */
export interface BreakerHooks {
  /**
   * Called for changes that this process sees: its own at once, those of operators and other processes at the next use of the breaker. Of several
   * changes between two uses, or within a second, only the last is seen.
   */
  readonly onChange?: (name: string, from: BreakerState, to: BreakerState) => void
  /** The store failed; the breaker uses its local state. Called at most once per second and breaker. */
  readonly onStoreError?: (name: string, error: unknown) => void
}

export interface CreateBreakerOptions extends BreakerOptions, BreakerHooks, Partial<Runtime> {
  /** The state that all processes share. */
  readonly store: { readonly breakers: BreakerStore }
  /** Breakers with the same name are one breaker. For example, an endpoint. */
  readonly name: string
  /** Whether an error of `call` is a failure of the service. Default: every error. */
  readonly counts?: (error: unknown) => boolean
  /** Identifies this process; must be unique among running processes. Default: generated. */
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
      hint: 'Pass the result of createSqliteStore or createPostgresStore; check that it is awaited.',
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
