import type { EventsSpec } from './events.ts'

/** Where a log lies. */
export type Place = SqlitePlace | PostgresPlace

export interface SqlitePlace {
  readonly store: 'sqlite'
  readonly file: string
}

export interface PostgresPlace {
  readonly store: 'postgres'
  readonly url: string
}

/** Where logs are made, and copies of them to measure on. All of it is gone at the end. */
export interface Workspace<P extends Place = Place> extends AsyncDisposable {
  create(log: string): Promise<P>
  /** In place of the copy before: one of them is measured at a time. */
  copyOf(log: string): Promise<P>
}

export interface PreparedLog {
  readonly name: string
  /** Fills a new place, given a `PrepareTask`. */
  readonly program: URL
  readonly spec: EventsSpec
}

export type PrepareTask<P extends Place = Place> = EventsSpec & { readonly place: P }

export interface Prepared {
  readonly bytesPerEvent: number
}

export type WayName = 'engine' | 'poison' | 'held' | 'limit' | 'limit10000' | 'naive' | 'emmett'

/** One way through the events of a log. */
export interface Way {
  readonly name: WayName
  readonly log: string
  /** Makes the rows in a process of its own, given a `WayTask`. */
  readonly program: URL
  /** How many: only the first of them where all would take minutes. */
  readonly events: number
  readonly pageEvents: number
  /** Outside of the measurement: whether the engine finds its own work right, and whether the rows are those of the log. */
  readonly checks: readonly ('verify' | 'compare')[]
}

export interface WayTask<P extends Place = Place> {
  readonly place: P
  readonly events: number
  readonly pageEvents: number
}

export interface WayRun {
  readonly elapsedMs: number
}

/** The engine's page when nothing is set, and that of the limit it is compared with. */
export const pageEvents = 1_000

export const poisonOneIn = 100
export const holdKeyOneIn = 10

/** What a store brings to the benchmark. */
export interface Ground extends AsyncDisposable {
  readonly workspace: Workspace
  readonly logs: readonly PreparedLog[]
  /** In the order in which a round measures them. */
  readonly ways: readonly Way[]
  /** For the report. */
  readonly facts: object
}
