import { HoldfastError } from '../errors.ts'
import type { DataOf, EventCatalog, EventOf, TypeName } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import { checkColumnName, checkName } from '../event/names.ts'
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
}

export type Reducer = (row: unknown, event: Event) => unknown

/** A fold of events into one row per key. Made by `defineProjection`. */
export interface Projection<Row = unknown, Columns = unknown> {
  readonly kind: 'fold'
  readonly name: string
  readonly events: EventCatalog
  readonly table: TableSpec
  readonly keyOf: ((event: Event) => string) | undefined
  readonly initial: (key: string) => unknown
  readonly reducers: ReadonlyMap<string, Reducer>
  /** Only for the types: nothing is there. */
  readonly '~types'?: { readonly row: Row; readonly columns: Columns }
}

const ownColumns = new Set(['key', 'version', 'position', 'data'])
const columnTypes = new Set<string>(['text', 'integer', 'real', 'boolean'] satisfies ColumnType[])
const reserved = /^(holdfast|sqlite|pg)_/

/**
 * Declares a read model: a real table with one row per key, that Holdfast keeps equal to the fold of the key's events.
 */
export function defineProjection<
  const C extends EventCatalog,
  Row,
  const Columns extends ColumnsOf<Row> = Record<never, never>,
>(name: string, definition: ProjectionDefinition<C, Row, Columns>): Projection<Row, Columns> {
  const table = tableName(checkName(name, 'The projection'))
  checkOptions(definition, `The projection ${name}`, ['events', 'key', 'initial', 'on', 'columns'])
  const { events, key, initial, on, columns } = definition
  if (typeof events?.entry !== 'function' || typeof on !== 'object' || on === null) {
    throw new HoldfastError('OPTION_INVALID', `${name} needs events from defineEvents, and its folds in on.`)
  }
  const reducers = new Map<string, Reducer>()
  for (const [type, reducer] of Object.entries(on)) {
    if (!events.entry(type)) {
      throw new HoldfastError(
        'EVENT_TYPE_UNKNOWN',
        `${name} has a fold for ${JSON.stringify(type)}, which its events don't have.`,
        {
          hint: 'Add the type to defineEvents, or mend its spelling.',
        },
      )
    }
    if (typeof reducer !== 'function')
      throw new HoldfastError('OPTION_INVALID', `${name}: on.${type} is not a function.`)
    reducers.set(type, reducer as Reducer)
  }
  if (typeof initial !== 'function') throw new HoldfastError('OPTION_INVALID', `${name}: initial is not a function.`)
  if (key !== undefined && typeof key !== 'function')
    throw new HoldfastError('OPTION_INVALID', `${name}: key is not a function.`)
  return {
    kind: 'fold',
    name,
    events,
    table: { name: table, columns: columnSpecs(name, columns ?? {}) },
    keyOf: key as ((event: Event) => string) | undefined,
    initial,
    reducers,
  }
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
  const taken = new Set(ownColumns)
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
