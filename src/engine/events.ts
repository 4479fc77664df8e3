import type { Failure } from '../failure/failure.ts'
import type { RedriveProgress } from '../redrive/redrive.ts'
import type { Channel } from '../runtime/ports.ts'
import type { Counts } from '../subscription/checkpoint.ts'
import type { StandstillReason } from './handling/flow.ts'
import type { SubscriptionState } from './state.ts'

/** What every trace of an event tells. Never what is in it. */
export interface Traced {
  readonly subscription: string
  readonly partition: number
  readonly eventId: string
  readonly eventType: string
  readonly key: string
  readonly position: number
  readonly correlationId: string | undefined
  readonly causationId: string | undefined
}

/**
 * Everything an engine tells about itself. `engine.on(name, listener)` types the listener from here; the same is published on the channel
 * `holdfast:<name>` of `node:diagnostics_channel`.
 */
export interface EngineEvents {
  /** A subscription went from one state to another. */
  'subscription.state': {
    readonly subscription: string
    readonly from: SubscriptionState
    readonly to: SubscriptionState
  }
  /** This process owns a partition now. */
  'partition.claimed': {
    readonly subscription: string
    readonly partition: number
    readonly epoch: number
    readonly position: number
  }
  /** Found at a commit or at a renewal: another process owns the partition. Nothing was written. */
  'partition.fenced': {
    readonly subscription: string
    readonly partition: number
    readonly epoch: number
    readonly newEpoch: number | undefined
    readonly owner: string | undefined
  }
  /** The outcome of these events, and the checkpoint behind them, is in the store. */
  'page.committed': {
    readonly subscription: string
    readonly partition: number
    readonly position: number
    readonly events: number
    readonly counts: Counts
    readonly durationMs: number
  }
  /** A lane is held from this event on. The others go on. */
  'lane.held': {
    readonly subscription: string
    readonly lane: string
    readonly status: 'parked' | 'waiting' | 'retrying'
    readonly eventId: string
    readonly eventType: string
    readonly position: number
    readonly failure: Failure | undefined
  }
  /** Everything that was held in a lane is applied; it flows again. */
  'lane.released': { readonly subscription: string; readonly lane: string }
  /** A redrive came further with a lane: so many of its letters came to an end, and where it stands now. */
  'lane.redriven': { readonly subscription: string; readonly lane: string } & Pick<
    RedriveProgress,
    'redrive' | 'letters' | 'state'
  >
  /** The first event, in this process, of a type that the catalog doesn't know. */
  'event.unknown': {
    readonly subscription: string
    readonly type: string
    readonly eventId: string
    readonly position: number
  }
  /** An attempt at an event begins. `attempt` is 1 at first. */
  'handler.started': Traced & { readonly attempt: number }
  'handler.completed': Traced & { readonly attempt: number; readonly durationMs: number }
  'handler.failed': Traced & { readonly attempt: number; readonly durationMs: number; readonly failure: Failure }
  /** It was not tried, or not any more: a duplicate, or what its policy passes over. */
  'handler.skipped': Traced & {
    readonly reason: string
    /** Of a duplicate: what the handler gave the first time, in JSON; null where that was not kept. */
    readonly result: string | null | undefined
  }
  /** That an event was handled is in the store. */
  'message.acked': Traced
  /** It will be tried again. */
  'message.nacked': Traced & { readonly failure: Failure; readonly retryInMs: number }
  /** It is parked until a person lets it go. */
  'message.dlq': Traced & { readonly failure: Failure }
  /** A person paused it, in any process. */
  'subscription.paused': { readonly subscription: string; readonly reason: string }
  /** A partition stands still: several lanes fail alike, or its policy or its breaker says so. It tries one event from time to time. */
  'subscription.blocked': {
    readonly subscription: string
    readonly partition: number
    readonly by: StandstillReason
    readonly failure: Failure | undefined
  }
  'subscription.resumed': { readonly subscription: string; readonly partition: number | undefined }
  /** In whichever process: they share their breakers. */
  'breaker.opened': { readonly breaker: string; readonly retryAt: number }
  'breaker.half_open': { readonly breaker: string }
  'breaker.closed': { readonly breaker: string }
  /** The store could not be used. The subscription waits and tries again. */
  'store.failed': {
    readonly subscription: string
    readonly error: unknown
    readonly attempt: number
    readonly retryInMs: number
  }
}

export type EngineEventName = keyof EngineEvents
export type Listener<Name extends EngineEventName> = (event: EngineEvents[Name]) => void

/** Where the engine's log lines go. pino fits. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Nobody asked for lines, but what needs a person should be seen. */
export const warningLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`holdfast: ${message}`, fields),
  error: (fields, message) => console.error(`holdfast: ${message}`, fields),
}

/** Tells listeners of this engine, and whoever in the process listens to the channel `holdfast:<name>`. */
export class EngineEmitter {
  readonly #listeners = new Map<EngineEventName, Set<Listener<never>>>()
  readonly #channels = new Map<EngineEventName, Channel>()
  readonly #logger: Logger
  readonly #openChannel: (name: string) => Channel

  constructor(logger: Logger, openChannel: (name: string) => Channel) {
    this.#logger = logger
    this.#openChannel = openChannel
  }

  on<Name extends EngineEventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  isHeard(name: EngineEventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0 || this.#channelOf(name).hasSubscribers
  }

  emit<Name extends EngineEventName>(name: Name, event: EngineEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      this.#guard(name, () => (listener as Listener<Name>)(event))
    }
    const channel = this.#channelOf(name)
    if (channel.hasSubscribers) this.#guard(name, () => channel.publish(event))
  }

  #channelOf(name: EngineEventName): Channel {
    const known = this.#channels.get(name)
    if (known) return known
    const channel = this.#openChannel(`holdfast:${name}`)
    this.#channels.set(name, channel)
    return channel
  }

  /** Who watches must not be able to stop what is watched. */
  #guard(name: EngineEventName, tell: () => void): void {
    try {
      tell()
    } catch (error) {
      this.#logger.error({ event: name, error }, 'a listener threw')
    }
  }
}
