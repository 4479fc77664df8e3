import { HoldfastError } from '../errors.ts'
import { type DataOf, type EventCatalog, type EventOf, functionsOf, type TypeName } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import { checkColumnName, checkName } from '../event/names.ts'
import { checkCount } from '../failure/action.ts'
import { checkOptions } from '../runtime/options.ts'
import type { ColumnSpec, ColumnType, TableSpec } from './row-store.ts'

/** The kinds of column a field of a row can be promoted to. */
export type ColumnTypeOf<Value> = [NonNullable<Value>] extends [boolean]
  ? 'boolean'
  : [NonNullable<Value>] extends [number]
    ? 'integer' | 'real'
    : [NonNullable<Value>] extends [string]
      ? 'text'
      : never

export type ColumnsOf<Row> = { readonly [Field in keyof Row & string]?: ColumnTypeOf<Row[Field]> }

export interface ProjectionDefinition<C extends EventCatalog, Row, Columns> {
  readonly events: C
  /** Which row an event belongs to; the event's own key unless you say otherwise. Must depend on nothing but the event. */
  readonly key?: (event: EventOf<C>) => string
  /** The row before the first event. */
  readonly initial: (key: string) => Row
  /**
   * What each type of event does to its row. Pure: the new row depends on the old one and the event, and on nothing else. A row
   * is frozen; return a new one, or the same to say that nothing changed.
   */
  readonly on: {
    readonly [T in TypeName<C>]?: (row: Readonly<NoInfer<Row>>, event: Event<T, DataOf<C, T>>) => NoInfer<Row>
  }
  /** Fields of the row that become columns of their own, with an index, for `list` and for your own SQL. */
  readonly columns?: Columns
  /**
   * How many deaths of a process are one event's fault before it is parked. 3 unless you say otherwise; more where processes are often
   * killed in the middle of their work, because that can't be told from an event that kills them.
   */
  readonly maxDeaths?: number
  /**
   * What this code makes of events, as a number. 1 unless you say otherwise. Raise it when the rows should come out differently: a
   * process with another version than the live one waits until the projection was rebuilt and switched.
   */
  readonly version?: number
}

/** The same in your own SQL, into your own tables. `Tx` is what the store gives: a `pg` client, a `node:sqlite` database. */
export interface SqlProjectionDefinition<C extends EventCatalog, Tx> {
  readonly events: C
  /**
   * What each type of event does. It runs inside the transaction that moves the checkpoint, so its statements happen exactly
   * once; it may run again from the start when that transaction fails, so it must do nothing that a rollback can't take back.
   */
  readonly on: {
    readonly [T in TypeName<C>]?: (event: Event<T, DataOf<C, T>>, tx: Tx) => unknown
  }
  /** Empties what `on` has written, for a replay from the beginning. */
  readonly reset?: (tx: Tx) => unknown
  /** How many deaths of a process are one event's fault before it is parked. 3 unless you say otherwise. */
  readonly maxDeaths?: number
  /**
   * What this code makes of events, as a number. 1 unless you say otherwise. A new version writes tables of its own, which you name:
   * it is built beside the live one until it is switched to.
   */
  readonly version?: number
  readonly initial?: never
}

export type Reducer = (row: unknown, event: Event) => unknown
export type Effect = (event: Event, tx: unknown) => unknown

/** Statements of the user's own, in our transaction. Made by `defineProjection`. */
export interface SqlProjection<C extends EventCatalog = EventCatalog> {
  readonly kind: 'sql'
  readonly name: string
  readonly events: C
  readonly table: undefined
  readonly keyOf: undefined
  readonly effects: ReadonlyMap<string, Effect>
  readonly reset: ((tx: unknown) => unknown) | undefined
  readonly maxDeaths: number
  readonly version: number
}

/** A fold of events into one row per key. Made by `defineProjection`. */
export interface Projection<Row = unknown, Columns = unknown, C extends EventCatalog = EventCatalog> {
  readonly kind: 'fold'
  readonly name: string
  readonly events: C
  readonly table: TableSpec
  readonly keyOf: ((event: Event) => string) | undefined
  readonly initial: (key: string) => unknown
  readonly reducers: ReadonlyMap<string, Reducer>
  readonly maxDeaths: number
  readonly version: number
  /** Only for the types: nothing is there. */
  readonly '~types'?: { readonly row: Row; readonly columns: Columns }
}

const ownColumns = ['key', 'version', 'position', 'data']
// Every table of PostgreSQL has these, and no other columns of their names.
const systemColumns = ['tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax']
const columnTypes = new Set<string>(['text', 'integer', 'real', 'boolean'] satisfies ColumnType[])
// The indexes of one that is called only sqlite would still begin so.
const reserved = /^(?:(?:holdfast|sqlite|pg)_|sqlite$)/

/**
 * Declares a read model. With `initial` it is a fold: a real table with one row per key, that Holdfast keeps equal to the fold of
 * the key's events. Without it, it is SQL of your own.
 */
export function defineProjection<const C extends EventCatalog, Tx>(
  name: string,
  definition: SqlProjectionDefinition<C, Tx>,
): SqlProjection<C>
export function defineProjection<
  const C extends EventCatalog,
  Row,
  const Columns extends ColumnsOf<Row> = Record<never, never>,
>(name: string, definition: ProjectionDefinition<C, Row, Columns>): Projection<Row, Columns, C>
export function defineProjection(
  name: string,
  definition: ProjectionDefinition<EventCatalog, unknown, object> | SqlProjectionDefinition<EventCatalog, unknown>,
): Projection | SqlProjection {
  checkName(name, 'The projection')
  return isSql(definition) ? defineSql(name, definition) : defineFold(name, definition)
}

function isSql(
  definition: ProjectionDefinition<EventCatalog, unknown, object> | SqlProjectionDefinition<EventCatalog, unknown>,
): definition is SqlProjectionDefinition<EventCatalog, unknown> {
  // A fold whose `initial` was forgotten has often a key or columns; it should hear about `initial`.
  return (
    typeof definition === 'object' && definition !== null && !['initial', 'key', 'columns'].some((o) => o in definition)
  )
}

function defineSql(name: string, definition: SqlProjectionDefinition<EventCatalog, unknown>): SqlProjection {
  checkOptions(definition, `The projection ${name}`, ['events', 'on', 'reset', 'maxDeaths', 'version'])
  const { events, on, reset, maxDeaths, version } = definition
  if (reset !== undefined && typeof reset !== 'function')
    throw new HoldfastError('OPTION_INVALID', `${name}: reset is not a function.`)
  return {
    kind: 'sql',
    name,
    events,
    table: undefined,
    keyOf: undefined,
    effects: functionsOf<Effect>(name, events, on),
    reset,
    maxDeaths: deathsOf(name, maxDeaths),
    version: versionOf(name, version),
  }
}

function defineFold(name: string, definition: ProjectionDefinition<EventCatalog, unknown, object>): Projection {
  const table = tableName(name)
  checkOptions(definition, `The projection ${name}`, [
    'events',
    'key',
    'initial',
    'on',
    'columns',
    'maxDeaths',
    'version',
  ])
  const { events, key, initial, on, columns, maxDeaths, version } = definition
  const reducers = functionsOf<Reducer>(name, events, on)
  if (typeof initial !== 'function') throw new HoldfastError('OPTION_INVALID', `${name}: initial is not a function.`)
  if (key !== undefined && typeof key !== 'function')
    throw new HoldfastError('OPTION_INVALID', `${name}: key is not a function.`)
  return {
    kind: 'fold',
    name,
    events,
    table: { name: table, columns: columnSpecs(name, (columns ?? {}) as Record<string, ColumnType>) },
    keyOf: key,
    initial,
    reducers,
    maxDeaths: deathsOf(name, maxDeaths),
    version: versionOf(name, version),
  }
}

function deathsOf(name: string, maxDeaths = 3): number {
  checkCount(maxDeaths, `maxDeaths of ${name}`, 2, 1_000)
  return maxDeaths
}

// It becomes part of the name of a table, which has room for so much.
const highestVersion = 999_999_999

function versionOf(name: string, version = 1): number {
  checkCount(version, `version of ${name}`, 1, highestVersion)
  return version
}

function tableName(name: string): string {
  const table = name.replaceAll('-', '_')
  if (!reserved.test(table)) return table
  throw new HoldfastError('NAME_INVALID', `The projection ${JSON.stringify(name)} would have a table of ours.`, {
    hint: "Begin its name with something other than 'holdfast_', 'sqlite_' and 'pg_'.",
  })
}

function columnSpecs(projection: string, columns: Readonly<Record<string, ColumnType | undefined>>): ColumnSpec[] {
  // Databases compare the names of columns without regard to case.
  // And no row can have a field of this name.
  const taken = new Set([...ownColumns, ...systemColumns, '__proto__'])
  return Object.entries(columns).flatMap(([name, type]) => {
    if (type === undefined) return []
    checkColumnName(name, `The column of ${projection}`)
    if (taken.has(name.toLowerCase())) {
      throw new HoldfastError(
        'NAME_INVALID',
        `${projection} can't have the column ${JSON.stringify(name)}: that name is taken.`,
      )
    }
    taken.add(name.toLowerCase())
    if (!columnTypes.has(type)) {
      throw new HoldfastError(
        'OPTION_INVALID',
        `${projection}: the column ${name} has the type ${JSON.stringify(type)}.`,
        {
          hint: `It can be one of ${[...columnTypes].join(', ')}.`,
        },
      )
    }
    return [{ name, type }]
  })
}
