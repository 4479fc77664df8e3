import type { EventCatalog } from '../../event/catalog.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Draft } from '../../log/admit.ts'
import type { Rebuildable } from '../../rebuild/generation.ts'
import type { Store } from '../../store.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'
import type { Chance } from './chance.ts'

/** How the code of a simulated process reaches what is outside of it. */
export interface Outside {
  /** The name of the process. */
  readonly name: string
  /** Milliseconds since the beginning, for what happens outside by itself. */
  nowMs(): number
  /**
   * Calls a service. The effect happens there, once for every request that arrives; the answer can get lost, and while the service is ill it
   * refuses. Ended by the signal, as a request would be.
   */
  call<T>(what: string, effect: () => T | Promise<T>, signal?: AbortSignal): Promise<T>
  /** The same thing, whose methods are calls of a service, also those of what is in it. Each answers with a promise. */
  reach<D extends object>(dependency: D): D
  /** Kills the process. It never resolves. */
  die(): Promise<never>
}

/** Puts something into the history of the run, for whoever judges it. */
export type Note = (kind: string, text: string, about?: unknown) => void

export interface PlannedAppend {
  readonly atMs: number
  readonly key: string
  /** Each with its id, so that it can be sent again when nobody knows whether it arrived. */
  readonly drafts: readonly (Draft & { readonly id: string })[]
}

/** A projection of which people build other versions. Which of them a process has is the app's to decide. */
export interface Rebuilt {
  readonly name: string
  code(version: number): Rebuildable
  /** Whether people decide about events of the live version when the last one is built, long before it becomes the live one. */
  readonly isDebated?: boolean
  /** Somebody reads it, at any time. */
  look(store: Store): Promise<void>
}

/** What is simulated: subscriptions, and events for them. */
export interface App {
  readonly events: EventCatalog
  /** What a process runs. It is asked for every process, so that none shares memory with another. */
  subscriptions(outside: Outside, note: Note): readonly (Consumer | Subscription)[]
  appends(chance: Chance, faultsMs: number): readonly PlannedAppend[]
  readonly rebuilt?: Rebuilt | undefined
  /** What a person makes of the data of an event that is parked, as JSON. Where there is such a one, people do all that people can do. */
  readonly mend?: ((event: RecordedEvent) => string) | undefined
  /** Whether operators also isolate and reset breakers, and act on lanes that wait for one. */
  readonly operatesBreakers?: boolean | undefined
  /**
   * Subscriptions that come to rest when nothing goes wrong any more, before the code is mended and without a process that begins anew. What is
   * parked then stays parked.
   */
  readonly settles?: readonly string[] | undefined
  /** What else is to come to an end, if there is something. */
  left?(store: Store, subscriptions: readonly string[]): Promise<string | undefined>
  /** The faults are over, and whatever was wrong with the code is mended: all processes begin anew. */
  heal?(): void
  /**
   * Somebody looks after it, now that all is calm. `halted` are subscriptions that have stopped for good, and why. True when what was done
   * about it needs processes that begin anew.
   */
  tend?(store: Store, halted: ReadonlyMap<string, unknown>): Promise<boolean>
}
