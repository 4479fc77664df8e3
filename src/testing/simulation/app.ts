import type { EventCatalog } from '../../event/catalog.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Draft } from '../../log/admit.ts'
import type { Rebuildable } from '../../rebuild/generation.ts'
import type { Store } from '../../store.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'
import type { Chance } from './chance.ts'

/** How the code of a simulated process reaches the outside. */
export interface Outside {
  /** The name of the process. */
  readonly name: string
  /** Milliseconds since the start, for services that change over time. */
  nowMs(): number
  /**
   * Calls a service. The effect happens once for every request that arrives; the answer can be lost, and the service refuses
   * while it is down. Aborted by the signal, like a real request.
   */
  call<T>(what: string, effect: () => T | Promise<T>, signal?: AbortSignal): Promise<T>
  /** The same object, whose methods, also those of nested objects, are calls of a service. Each returns a promise. */
  reach<D extends object>(dependency: D): D
  /** Kills the process. Never resolves. */
  die(): Promise<never>
}

/** Adds an entry to the history of the run, for the checks. */
export type Note = (kind: string, text: string, about?: unknown) => void

export interface PlannedAppend {
  readonly atMs: number
  readonly key: string
  /** Each has an id, so that it can be sent again when its arrival is unknown. */
  readonly drafts: readonly (Draft & { readonly id: string })[]
}

/** A projection of which operators build other versions. The app decides which version a process has. */
export interface Rebuilt {
  readonly name: string
  code(version: number): Rebuildable
  /** Whether operators decide on events of the live version while the last one is built, long before it becomes live. */
  readonly isDebated?: boolean
  /** Reads the projection, at any time. */
  look(store: Store): Promise<void>
}

/** What is simulated: subscriptions and their events. */
export interface App {
  readonly events: EventCatalog
  /** The subscriptions of a process. Called for each process, so that processes share no memory. */
  subscriptions(outside: Outside, note: Note): readonly (Consumer | Subscription)[]
  appends(chance: Chance, faultsMs: number): readonly PlannedAppend[]
  readonly rebuilt?: Rebuilt | undefined
  /** Edits the data of a parked event, as JSON. If it is given, operators use all their acts. */
  readonly edit?: ((event: RecordedEvent) => string) | undefined
  /** Whether operators also isolate and reset breakers, and act on lanes that wait for one. */
  readonly operatesBreakers?: boolean | undefined
  /** Subscriptions that become idle when the faults stop, before the code is fixed and without a restart. Parked events stay parked. */
  readonly settles?: readonly string[] | undefined
  /** Other unfinished work, if any. */
  left?(store: Store, subscriptions: readonly string[]): Promise<string | undefined>
  /** The faults are over, and the code is fixed: all processes restart. */
  heal?(): void
  /**
   * Called when everything is calm. `halted` are subscriptions that have stopped for good, and why. Returns true if processes
   * must restart.
   */
  tend?(store: Store, halted: ReadonlyMap<string, unknown>): Promise<boolean>
}
