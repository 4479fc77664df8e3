import type { Failure } from '../failure/failure.ts'
import type { RedriveProgress } from '../redrive/redrive.ts'
import type { Channel } from '../runtime/ports.ts'
import type { Counts } from '../subscription/checkpoint.ts'
import type { StandstillReason, SubscriptionState } from './ownership/subscription-state.ts'

/** The fields of every event trace. They never contain the payload. */
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
 * All notifications of an engine. `engine.on(name, listener)` takes the type of the listener from here. Each one is also published on the
 * channel `holdfast:<name>` of `node:diagnostics_channel`. A failure comes without the values of its event, because listeners turn it into
 * spans, metrics and log lines. A handler's `onError` gets the original error.
 */
export interface EngineEvents {
  /** A subscription changed its state. */
  'subscription.state': {
    readonly subscription: string
    readonly from: SubscriptionState
    readonly to: SubscriptionState
  }
  /** This process now owns a partition. */
  'partition.claimed': {
    readonly subscription: string
    readonly partition: number
    readonly epoch: number
    readonly position: number
  }
  /** A commit or a renewal found that another process owns the partition. Nothing was written. */
  'partition.fenced': {
    readonly subscription: string
    readonly partition: number
    readonly epoch: number
    readonly newEpoch: number | undefined
    readonly owner: string | undefined
  }
  /** The outcomes of these events and the new checkpoint are committed. */
  'page.committed': {
    readonly subscription: string
    readonly partition: number
    readonly position: number
    readonly events: number
    readonly counts: Counts
    readonly durationMs: number
  }
  /** A lane is held from this event on. Other lanes are not affected. */
  'lane.held': {
    readonly subscription: string
    readonly lane: string
    readonly status: 'parked' | 'waiting' | 'retrying'
    readonly eventId: string
    readonly eventType: string
    readonly position: number
    readonly failure: Failure | undefined
  }
  /** All letters of a lane are processed; the lane is no longer held. */
  'lane.released': { readonly subscription: string; readonly lane: string }
  /** Progress of a redrive in a lane: the number of letters processed, and the state of the lane. */
  'lane.redriven': { readonly subscription: string; readonly lane: string } & Pick<
    RedriveProgress,
    'redrive' | 'letters' | 'state'
  >
  /** The first event in this process of a type that the catalog doesn't have. */
  'event.unknown': {
    readonly subscription: string
    readonly type: string
    readonly eventId: string
    readonly position: number
  }
  /** An attempt at an event starts. The first `attempt` is 1. */
  'handler.started': Traced & { readonly attempt: number }
  'handler.completed': Traced & { readonly attempt: number; readonly durationMs: number }
  'handler.failed': Traced & { readonly attempt: number; readonly durationMs: number; readonly failure: Failure }
  /** The event was skipped: it is a duplicate, or its policy skips it. */
  'handler.skipped': Traced & {
    readonly reason: string
    /** For a duplicate: the JSON of the handler's first result; null if it was not stored. */
    readonly result: string | null | undefined
  }
  /** The outcome of a handled event is committed. */
  'message.acked': Traced
  /** The attempt failed. The next one starts in `retryInMs`. */
  'message.nacked': Traced & { readonly failure: Failure; readonly retryInMs: number }
  /** The event is parked until an operator redrives, discards or resolves it. */
  'message.dlq': Traced & { readonly failure: Failure }
  /** An operator paused the subscription, in any process. */
  'subscription.paused': { readonly subscription: string; readonly reason: string }
  /** A partition is blocked: several lanes fail alike, or its policy or breaker blocks it. It tries one event from time to time. */
  'subscription.blocked': {
    readonly subscription: string
    readonly partition: number
    readonly by: StandstillReason
    readonly failure: Failure | undefined
  }
  'subscription.resumed': { readonly subscription: string; readonly partition: number | undefined }
  /** A breaker opened, in any process: processes share breakers. */
  'breaker.opened': { readonly breaker: string; readonly retryAt: number }
  'breaker.half_open': { readonly breaker: string }
  'breaker.closed': { readonly breaker: string }
  /** The store failed. The subscription waits and retries. */
  'store.failed': {
    readonly subscription: string
    readonly error: unknown
    readonly attempt: number
    readonly retryInMs: number
  }
}

export type EngineEventName = keyof EngineEvents
export type Listener<Name extends EngineEventName> = (event: EngineEvents[Name]) => void

/** The logger of the engine. A pino logger fits. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The log fields of a failure. The caller has redacted the values of its event. */
export function failureFields(failure: Failure | undefined): object {
  if (!failure) return {}
  const { class: of, code, errorType, message } = failure
  return { class: of, errorType, ...(code !== null && { code }), error: message }
}

/** The default logger: it prints only what needs attention. */
export const warningLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`holdfast: ${message}`, fields),
  error: (fields, message) => console.error(`holdfast: ${message}`, fields),
}

/** Notifies the listeners of this engine and the subscribers of the channel `holdfast:<name>`. */
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

  /** A listener that throws must not stop the engine. */
  #guard(name: EngineEventName, tell: () => void): void {
    try {
      tell()
    } catch (error) {
      this.#logger.error({ event: name, error }, 'a listener threw')
    }
  }
}
