import { DatabaseSync } from 'node:sqlite'
import {
  createEngine,
  createLog,
  defineEvents,
  defineHandler,
  defineProjection,
  HoldfastError,
  type Projection,
  type Store,
} from 'holdfast'
import { checkBreakerName } from '../../../src/breaker/name.ts'
import { checkSchema, quote as quotePostgres } from '../../../src/postgres/connection/identifier.ts'
import { quote as quoteSqlite } from '../../../src/sqlite/connection/identifier.ts'
import type { Chance } from '../chance.ts'
import { type Door, expectThat, type StoreKind } from '../door.ts'
import { mutated, oddText } from '../generate/text.ts'
import { anyValue } from '../generate/value.ts'
import { anything, notes } from './append.ts'
import { drained, silent } from './engine.ts'

const goodNames = [
  'orders',
  'a-b',
  'a_b',
  'x9',
  'account-balances',
  'n'.repeat(48),
  'select',
  'table',
  'order',
  'constructor',
]

function nameOf(chance: Chance): unknown {
  if (chance.percent(3)) return anyValue(chance)
  const name = chance.pick(goodNames)
  return chance.percent(50) ? mutated(chance, name) : chance.percent(50) ? oddText(chance, 60) : name
}

const attempted = <T>(make: () => T): { readonly made: T } | undefined => {
  try {
    return { made: make() }
  } catch (error) {
    expectThat(error instanceof HoldfastError, 'it was refused with no error of ours', error)
    return undefined
  }
}

// Written apart from those of the source: what may become part of a statement, and what may be quoted in one.
const consumerName = /^[a-z][a-z0-9_-]{0,47}$/
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Names become parts of statements. What is not a plain name is refused, wherever one can be given. */
export const namesDoor: Door = {
  name: 'names',
  outcomes: ['accepted', 'refused'],
  cases: 1_000,
  open: async () => ({
    give: async (chance) => {
      const name = nameOf(chance)
      const given = name as string
      const empty = { events: notes, initial: () => ({}), on: {} }
      const taken = [
        attempted(() => defineProjection(given, empty).name),
        attempted(() => defineHandler(given, { events: notes, on: {} }).name),
      ]
      for (const each of taken) expectThat(!each || consumerName.test(each.made), 'it was taken for a name', name)
      const schema = attempted(() => checkSchema(name))
      expectThat(!schema || /^[a-z_][a-z0-9_]{0,47}$/.test(schema.made), 'it was taken for a schema', name)
      attempted(() => checkBreakerName(name))
      // These stand as keys of an object, where everything is a text.
      if (typeof name !== 'string') return 'refused'
      const column = attempted(() => defineProjection('p', { ...empty, columns: { [given]: 'text' } }).table.columns[0])
      expectThat(
        !column || (identifier.test(column.made?.name ?? '') && given.length <= 48),
        'it was taken for a column',
        name,
      )
      for (const quote of [quoteSqlite, quotePostgres]) {
        const quoted = attempted(() => quote(given))
        expectThat(!quoted || quoted.made === `"${given}"`, 'it was quoted as something else', name)
        expectThat(!quoted || identifier.test(given), 'it was quoted', name)
      }
      const type = attempted(() => defineEvents({ [given]: anything }))
      expectThat(
        !type || (type.made.entry(given) !== undefined && !/[\s\p{C}]/u.test(given)),
        'it was taken for a type',
        name,
      )
      return taken.some((each) => each !== undefined) ? 'accepted' : 'refused'
    },
    [Symbol.asyncDispose]: async () => undefined,
  }),
}

/** Names that are taken are worked with: a table of that name, with columns of such names, and nothing else is touched. */
export const tablesDoor = (kind: StoreKind): Door => ({
  name: `tables.${kind}`,
  outcomes: ['accepted'],
  cases: 10,
  open: async (ground) => {
    const store = await ground.open(kind)
    const log = createLog({ store, events: notes })
    await log.append('a', [{ type: 'Noted', data: { n: 1 } }])
    const known = new Set<string>()
    return {
      give: async (chance) => {
        const projection = projectionOf(chance)
        if (!projection || known.has(projection.table.name)) return 'refused'
        const before = tablesOf(store)
        const isStarted = await worksWith(store, projection)
        if (isStarted) known.add(projection.table.name)
        const added = tablesOf(store).filter((table) => !before.includes(table))
        expectThat(
          added.every((table) => table === projection.table.name),
          'another table was made',
          [projection.table, added],
        )
        expectThat(
          before.every((table) => tablesOf(store).includes(table)),
          'a table went',
          projection.table,
        )
        return isStarted ? 'accepted' : 'refused'
      },
      [Symbol.asyncDispose]: () => store.close(),
    }
  },
})

const columnNames = [
  'ctid',
  'xmin',
  'oid',
  'tableoid',
  'cmax',
  'rowid',
  '_rowid_',
  '__proto__',
  'constructor',
  'select',
  'user',
  'a',
  'A',
]

function projectionOf(chance: Chance): Projection | undefined {
  const columns = Object.fromEntries([
    ...chance.some(2, () => [chance.pick(columnNames), 'text'] as const),
    ...chance.some(
      2,
      () => [`${chance.pick(['a', 'b', '_']).repeat(1 + chance.below(47))}${chance.pick(['', '1'])}`, 'text'] as const,
    ),
  ])
  const text = oddText(chance, 48)
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '')
  const name = chance.percent(50)
    ? chance.pick(goodNames)
    : `${chance.pick(['a', 'pg', 'sqlite', 'holdfast', 't'])}${text}`
  return attempted(() =>
    defineProjection(name, {
      events: notes,
      initial: (): Record<string, string> => ({}),
      on: { Noted: () => Object.fromEntries(Object.keys(columns).map((column) => [column, 'it is here'])) },
      columns,
    }),
  )?.made
}

async function worksWith(store: Store, projection: Projection): Promise<boolean> {
  await using engine = createEngine({ store, subscriptions: [projection], logger: silent })
  try {
    await engine.start()
  } catch (error) {
    const code = error instanceof HoldfastError ? error.code : undefined
    const isRefusal = ['PROJECTION_TABLE_TAKEN', 'NAME_INVALID', 'PROJECTION_CHANGED'].includes(code ?? '')
    expectThat(isRefusal, 'a name that was taken can not be used', [projection.table, String(error)])
    return false
  }
  await drained(engine)
  const reader = engine.read(projection)
  const row = await reader.get('a')
  expectThat(row !== undefined, 'there is no row', projection.table)
  for (const { name } of projection.table.columns) {
    const query = { where: { [name]: 'it is here' }, orderBy: { [name]: 'asc' } } as never
    const { rows } = await reader.list(query)
    expectThat(rows.length === 1, 'its column does not find it', [projection.table, name])
  }
  return true
}

/** Of a file; a server is asked by the statements above. */
function tablesOf(store: Store): string[] {
  const { file } = store as Store & { file?: string }
  if (file === undefined) return []
  using db = new DatabaseSync(file, { readOnly: true })
  return db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()
    .map(({ name }) => String(name))
}
