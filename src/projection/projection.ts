import { HoldfastError } from '../errors.ts'
import { type EventCatalog, type EventNamed, type EventOf, functionsOf, type TypeName } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import { checkColumnName, checkName } from '../event/names.ts'
import { checkOptions } from '../runtime/options.ts'
import { deathsOf, versionOf } from './counts.ts'
import type { ColumnSpec, ColumnType, TableSpec } from './row-store.ts'
import type { AnyResult, FrozenValue, GivenRow, InitialRow, KeptLiteral, ReducedRow, ReducerType } from './row-types.ts'

/** The column types that a field of a row can have. For a field that can't be a column: an error sentence, see `row-types.ts`. */
export type ColumnTypeOf<Value> = [NonNullable<Value>] extends [boolean]
  ? 'boolean'
  : [NonNullable<Value>] extends [number]
    ? 'integer' | 'real'
    : [NonNullable<Value>] extends [string]
      ? 'text'
      : 'only a string, a number or a boolean can be a column'

export type ColumnsOf<Row> = { readonly [Field in keyof Row & string]?: ColumnTypeOf<Row[Field]> }

/** `Results` is what each reducer returns; it is inferred only to be compared with the row. */
export interface ProjectionDefinition<C extends EventCatalog, Row, Results, Columns> {
  readonly events: C
  /** The key of the row that an event belongs to. Must depend only on the event. Default: the key of the event. */
  readonly key?: (event: EventOf<C>) => string
  /** Returns the row before the first event. The row must be JSON. The return type is the type of the row. */
  readonly initial: (key: string) => InitialRow<Row>
  /**
   * One pure function per event type. It returns the new row, which depends only on the old row and the event. Rows are frozen: return a
   * new object, or the same row if nothing changed.
   */
  readonly on: {
    readonly [T in keyof Results]: ReducerType<
      (
        row: GivenRow<Row>,
        event: EventNamed<C, T>,
      ) => ReducedRow<Results[T], Row, T, TypeName<C>> & KeptLiteral<Results[T], Row>,
      Results[T],
      Row,
      (row: GivenRow<Row>, event: EventNamed<C, T>) => FrozenValue<Row>
    >
  }
  /** Fields of the row that become separate, indexed columns, for `list` and for your own SQL. */
  readonly columns?: Columns
  /**
   * How many processes may die while they process an event before the event is parked. Use a higher number if processes are often killed for
   * other reasons: Holdfast can't always distinguish that from an event that kills the process. Default: 4.
   */
  readonly maxDeaths?: number
  /**
   * The version of this code. Raise it if the rows should change: a process whose version is not live waits until that version was rebuilt
   * and switched to. Default: 1.
   */
  readonly version?: number
}

export type Reducer = (row: unknown, event: Event) => unknown

/** A fold of events into one row per key. Created by `defineProjection`. */
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
  /** For type inference only; undefined at run time. */
  readonly '~types'?: { readonly row: Row; readonly columns: Columns }
}

const ownColumns = ['key', 'version', 'position', 'data']
// System columns of every PostgreSQL table: other columns can't have these names.
const systemColumns = ['tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax']
const columnTypes = new Set<string>(['text', 'integer', 'real', 'boolean'] satisfies ColumnType[])
// `sqlite` alone is reserved too: its indexes would be named `sqlite_…`.
const reserved = /^(?:(?:holdfast|sqlite|pg)_|sqlite$)/

const optionNames = ['events', 'key', 'initial', 'on', 'columns', 'maxDeaths', 'version']

/**
 * Declares a read model as a fold: a table with one row per key, which Holdfast keeps equal to the fold of the key's events. To write your own
 * SQL statements, use `defineSqlProjection` of `holdfast/sqlite` or `holdfast/postgres`.
 */
export function defineProjection<
  const C extends EventCatalog,
  Row,
  // `const` keeps `status: 'placed'` from becoming a string before it is compared with the row.
  const Results extends { readonly [T in TypeName<C>]?: AnyResult },
  const Columns extends ColumnsOf<Row> = Record<never, never>,
>(name: string, definition: ProjectionDefinition<C, Row, Results, Columns>): Projection<Row, Columns, C> {
  checkName(name, 'The projection')
  const table = tableName(name)
  checkInitial(name, definition)
  checkOptions(definition, `The projection ${name}`, optionNames)
  const { events, key, initial, on, columns, maxDeaths, version } = definition
  const reducers = functionsOf<Reducer>(name, events, on)
  if (key !== undefined && typeof key !== 'function')
    throw new HoldfastError('OPTION_INVALID', `${name}: key is not a function.`)
  return {
    kind: 'fold',
    name,
    events,
    table: { name: table, columns: columnSpecs(name, (columns ?? {}) as Record<string, ColumnType>) },
    keyOf: key as Projection['keyOf'],
    initial,
    reducers,
    maxDeaths: deathsOf(name, maxDeaths),
    version: versionOf(name, version),
  }
}

function checkInitial(name: string, definition: unknown): void {
  if (typeof definition !== 'object' || definition === null) return
  const initial: unknown = 'initial' in definition ? definition.initial : undefined
  if (typeof initial === 'function') return
  const what = initial === undefined ? 'has no initial' : `has an initial that is not a function`
  throw new HoldfastError('OPTION_INVALID', `The projection ${name} ${what}.`, {
    hint: 'Give initial: (key) => row, the row before the first event. For your own SQL statements, use defineSqlProjection of holdfast/sqlite or holdfast/postgres.',
  })
}

function tableName(name: string): string {
  const table = name.replaceAll('-', '_')
  if (!reserved.test(table)) return table
  throw new HoldfastError('NAME_INVALID', `The projection ${JSON.stringify(name)} has a name with a reserved prefix.`, {
    hint: "Use a name that does not start with 'holdfast_', 'sqlite_' or 'pg_'.",
  })
}

function columnSpecs(projection: string, columns: Readonly<Record<string, ColumnType | undefined>>): ColumnSpec[] {
  // Databases compare column names case-insensitively. A row can't have a field named `__proto__`.
  const taken = new Set([...ownColumns, ...systemColumns, '__proto__'])
  return Object.entries(columns).flatMap(([name, type]) => {
    if (type === undefined) return []
    checkColumnName(name, `The column of ${projection}`)
    if (taken.has(name.toLowerCase())) {
      throw new HoldfastError(
        'NAME_INVALID',
        `${projection} can't have the column ${JSON.stringify(name)}: the name is reserved or used twice.`,
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
