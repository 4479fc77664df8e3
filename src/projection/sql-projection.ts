import { HoldfastError } from '../errors.ts'
import { type DataOf, type EventCatalog, functionsOf, type TypeName } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import { checkName } from '../event/names.ts'
import { checkOptions } from '../runtime/options.ts'
import { deathsOf, versionOf } from './counts.ts'

/** A read model that your own SQL writes to your own tables. `Tx` depends on the store: a `pg` client or a `node:sqlite` database. */
export interface SqlProjectionDefinition<C extends EventCatalog, Tx> {
  readonly events: C
  /**
   * One function per event type. It runs in the transaction that moves the checkpoint, so its statements take effect exactly once. If the
   * transaction fails, the function runs again: it must not do anything that a rollback can't undo.
   */
  readonly on: {
    readonly [T in TypeName<C>]?: (event: Event<T, DataOf<C, T>>, tx: Tx) => unknown
  }
  /** Removes everything that `on` has written, for a replay from the start. */
  readonly reset?: (tx: Tx) => unknown
  /** How many processes may die while they process an event before the event is parked. Default: 4. */
  readonly maxDeaths?: number
  /**
   * The version of this code. A new version must write to other tables, because it is built while the live version still runs. Default: 1.
   */
  readonly version?: number
}

export type Effect = (event: Event, tx: unknown) => unknown

/** Used where the dialect is not known, as in `Subscription[]`. The compiler accepts it for every store; `checkDialect` checks it at run time. */
// oxlint-disable-next-line typescript/no-explicit-any -- `string` would match no store, and `never` no projection.
export type AnyDialect = any

/** The user's own SQL statements in the transaction of the engine. Created by `defineSqlProjection` of `holdfast/sqlite` or `holdfast/postgres`. */
export interface SqlProjection<C extends EventCatalog = EventCatalog, Dialect extends string = AnyDialect> {
  readonly kind: 'sql'
  /** It runs only on stores with the same `dialect`. */
  readonly dialect: Dialect
  readonly name: string
  readonly events: C
  readonly table: undefined
  readonly keyOf: undefined
  readonly effects: ReadonlyMap<string, Effect>
  readonly reset: ((tx: unknown) => unknown) | undefined
  readonly maxDeaths: number
  readonly version: number
}

const optionNames = ['events', 'on', 'reset', 'maxDeaths', 'version']

/** Implements the `defineSqlProjection` of each store, which sets the type of `tx`. */
export function sqlProjection<C extends EventCatalog, Tx, const Dialect extends string>(
  dialect: Dialect,
  name: string,
  definition: SqlProjectionDefinition<C, Tx>,
): SqlProjection<C, Dialect> {
  checkName(name, 'The projection')
  if (typeof definition === 'object' && definition !== null && 'initial' in definition) {
    throw new HoldfastError('OPTION_INVALID', `The SQL projection ${name} has initial, which only a fold has.`, {
      hint: 'For a fold, use defineProjection of holdfast. For your own SQL statements, omit initial.',
    })
  }
  checkOptions(definition, `The projection ${name}`, optionNames)
  const { events, on, reset, maxDeaths, version } = definition
  if (reset !== undefined && typeof reset !== 'function')
    throw new HoldfastError('OPTION_INVALID', `${name}: reset is not a function.`)
  return {
    kind: 'sql',
    dialect,
    name,
    events,
    table: undefined,
    keyOf: undefined,
    effects: functionsOf<Effect>(name, events, on),
    reset: reset as SqlProjection['reset'],
    maxDeaths: deathsOf(name, maxDeaths),
    version: versionOf(name, version),
  }
}

/** With a wrong dialect, every event would fail at its first statement and be held. */
export function checkDialect(projection: SqlProjection, store: { readonly dialect: string }): void {
  const { name, dialect } = projection
  if (dialect === store.dialect) return
  throw new HoldfastError(
    'OPTION_INVALID',
    `The SQL projection ${name} is written for ${dialect}, and the store is ${store.dialect}.`,
    {
      hint: `Define it with the defineSqlProjection of that store (holdfast/sqlite, holdfast/postgres), or open a ${dialect} store.`,
    },
  )
}
