// Programs that must compile, with the oldest supported TypeScript and with the newest, against the declarations that users get.
import {
  categorised,
  categorisedBreaker,
  createBreaker,
  createEngine,
  createLog,
  defineConfig,
  defineEvents,
  defineHandler,
  defineProjection,
  defineSubscription,
  differentiatedBreaker,
  type Duration,
  exponential,
  type Projection,
  read,
  retryWithBackoff,
  type Store,
  type Subscription,
} from 'holdfast'
import { createPostgresStore, defineSqlProjection as definePostgres } from 'holdfast/postgres'
import { createSqliteStore, defineSqlProjection as defineSqlite } from 'holdfast/sqlite'
import { createTemporaryStore, createTestEngine } from 'holdfast/testing'
import { startWatchdog } from 'holdfast/watchdog'
import { z } from 'zod'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(equal: Equal<A, B>): void => void equal
type RowOf<P> = P extends Projection<infer Row> ? Row : never

const events = defineEvents({
  OrderPlaced: z.object({ total: z.number() }),
  LineAdded: z.object({ sku: z.string(), pieces: z.number().optional() }),
})

// ---- a row with literal unions, lists, optional fields and objects in objects

interface Line {
  sku: string
  pieces?: number
  tags: string[]
}
interface Order {
  status: 'none' | 'placed'
  total: number
  lines: Line[]
  note?: string
  address: { mode: 'post' | 'courier'; steps: { at: 1 | 2 }[] } | null
}
const none: Order = { status: 'none', total: 0, lines: [], address: null }

const orders = defineProjection('orders', {
  events,
  initial: (): Order => ({ status: 'none', total: 0, lines: [], address: null }),
  on: {
    OrderPlaced: (row, event) => ({ ...row, status: 'placed', total: row.total + event.data.total }),
    LineAdded: (row, { data }) => ({
      ...row,
      note: data.sku,
      lines: [...row.lines, { sku: data.sku, tags: [] }],
      address: { mode: 'courier', steps: [...(row.address?.steps ?? []), { at: 2 }] },
    }),
  },
  columns: { status: 'text', total: 'integer', note: 'text' },
})
same<RowOf<typeof orders>, Order>(true)

export const byKey = defineProjection('orders', {
  events,
  key: (event) => (event.type === 'LineAdded' ? event.data.sku : event.key),
  initial: (key): Order => ({ ...none, total: key.length }),
  on: {
    OrderPlaced: (row, event) => {
      if (event.data.total === 0) return row
      if (row.status === 'placed') return { ...row, status: 'none' }
      const lines = row.lines.map((line) => ({ ...line, pieces: 3 }))
      return { ...row, lines, status: event.data.total > 3 ? 'placed' : 'none', ...(row.total > 9 && { note: 'big' }) }
    },
    LineAdded(row, event) {
      return { ...row, lines: row.lines.filter((line) => line.sku !== event.data.sku) }
    },
  },
})

// ---- without an annotation

const counts = defineProjection('counts', {
  events,
  initial: (key) => ({ id: key, count: 0, last: null as string | null, isOpen: true }),
  on: {
    OrderPlaced: (row, event) => ({ ...row, count: row.count + 1, last: event.id, isOpen: false }),
    LineAdded: (row) => row,
  },
  columns: { count: 'integer', last: 'text', isOpen: 'boolean' },
})
same<RowOf<typeof counts>, { id: string; count: number; last: string | null; isOpen: boolean }>(true)

// ---- rows of other shapes

type State = { state: 'none' } | { state: 'placed'; at: string } | { state: 'gone'; why: string }
export const states = defineProjection('states', {
  events,
  initial: (): State => ({ state: 'none' }),
  on: {
    OrderPlaced: (row, event) =>
      row.state === 'placed' ? { state: 'gone', why: row.at } : { state: 'placed', at: event.id },
    LineAdded: (row) => (row.state === 'placed' ? { ...row, at: 'later' } : row),
  },
})
interface Tree {
  name: string
  children: Tree[]
}
export const trees = defineProjection('trees', {
  events,
  initial: (): Tree => ({ name: '', children: [] }),
  on: { LineAdded: (row, { data }) => ({ ...row, children: [...row.children, { name: data.sku, children: [] }] }) },
})
type Sku = string & { readonly brand: 'sku' }
export const others = [
  defineProjection('a', { events, initial: () => 0, on: { OrderPlaced: (row) => row + 1 } }),
  defineProjection('b', { events, initial: (): string[] => [], on: { OrderPlaced: (row, { id }) => [...row, id] } }),
  defineProjection('c', {
    events,
    initial: (): Record<string, number> => ({}),
    on: { LineAdded: (row, { data }) => ({ ...row, [data.sku]: (row[data.sku] ?? 0) + 1 }) },
  }),
  defineProjection('d', {
    events,
    initial: (): [number, 'a' | 'b'] => [0, 'a'],
    on: { OrderPlaced: ([n]) => [n + 1, 'b'] },
  }),
  defineProjection('e', {
    events,
    initial: () => ({ sku: '' as Sku, all: {} as Record<Sku, number>, anything: null as unknown }),
    on: { LineAdded: (row, { data }) => ({ ...row, sku: data.sku as Sku, anything: data }) },
  }),
]

// ---- reducers that are written elsewhere

const add = (row: { readonly n: number }) => ({ n: row.n + 1 })
const reducers = { OrderPlaced: add, LineAdded: add }
export const shared = [
  defineProjection('a', { events, initial: () => ({ n: 0 }), on: reducers }),
  defineProjection('b', { events, initial: () => ({ n: 0 }), on: { ...reducers, LineAdded: (row) => row } }),
]

// ---- SQL: `tx` has its type from the store, and another one where it is annotated

const stock = defineSqlite('stock', {
  events,
  on: {
    LineAdded: ({ key, data }, tx) => tx.prepare('INSERT INTO stock VALUES (?, ?)').run(key, data.pieces ?? 0),
    OrderPlaced: ({ key }, tx) => {
      const row = tx.prepare('SELECT n FROM stock WHERE id = $id').get({ id: key })
      if (row?.['n'] === 0) tx.exec('DELETE FROM stock')
    },
  },
  reset: (tx) => tx.exec('DELETE FROM stock'),
})
const journal = definePostgres('journal', {
  events,
  on: {
    LineAdded: async ({ key, data }, tx) => {
      const { rows } = await tx.query<{ n: number }>('SELECT n FROM journal WHERE id = $1', [key])
      if (rows[0]?.n !== data.pieces) await tx.query({ text: 'UPDATE journal SET n = $1', values: [data.pieces] })
    },
  },
  reset: (tx) => tx.query('DELETE FROM journal'),
})
interface OwnClient {
  query(text: string): Promise<unknown>
  own(): void
}
export const annotated = definePostgres('annotated', {
  events,
  on: { LineAdded: (_, tx: OwnClient) => tx.own(), OrderPlaced: (_, tx) => tx.own() },
})

// ---- subscriptions, engines and configurations

export async function run(any: Store, wait: Duration) {
  await using file = await createSqliteStore({ file: 'a.db', busyTimeout: '1.5s' })
  await using server = await createPostgresStore({ connection: 'postgres://db' })
  await using temporary = await createTemporaryStore()
  const placed = defineSubscription(orders, { filter: { types: ['OrderPlaced'] } })
  const list: Subscription[] = [placed, defineSubscription(stock), defineSubscription(journal)]
  createEngine({ store: file, subscriptions: [placed, counts, stock, defineSubscription(stock)], lease: wait })
  createEngine({ store: server, subscriptions: [journal, orders, ...list] })
  createEngine({ store: temporary, subscriptions: [stock] })
  createEngine({ store: any, subscriptions: [stock, journal] })
  await createTestEngine({ subscriptions: [orders, stock] })
  const row = await read(file, orders).get('a')
  same<typeof row, { readonly key: string; readonly version: number; readonly data: Order } | undefined>(true)
  await createLog({ store: file, events }).append('a', [{ type: 'OrderPlaced', data: { total: 1 } }])
  createBreaker({ store: file, name: 'mail', ...categorisedBreaker })
}

// ---- retries outside the engine

export async function retried(ask: typeof fetch, signal: AbortSignal | undefined) {
  const text = await retryWithBackoff(async (context) => (await ask('a', { signal: context.signal })).text(), {
    backoff: exponential('50ms'),
    attempts: 5,
    classify: (error) => (error instanceof RangeError ? 'permanent' : undefined),
    ...(signal && { signal }),
    onRetry: ({ attempt, error, class: kind, waitMs }) => console.warn(attempt, error, kind, waitMs),
  })
  same<typeof text, string>(true)
  const either = await retryWithBackoff(({ attempt }) => (attempt > 1 ? Promise.resolve('a') : null))
  same<typeof either, string | null>(true)
  const nothing = await retryWithBackoff(() => undefined, { classify: [() => 'transient'], attempts: 2 })
  same<typeof nothing, undefined>(true)
}

const mails = defineHandler('mails', {
  events,
  failure: categorised(),
  timeout: '15s',
  breaker: { ...differentiatedBreaker, key: (event) => event.type },
  on: { OrderPlaced: async (event, ctx) => ctx.effect('mail', () => event.data.total) },
})
export const handlers = [mails, defineHandler('b', { events, breaker: categorisedBreaker, on: {} })]

const url = process.env['DATABASE_URL']
export const configs = [
  defineConfig({ store: { sqlite: 'a.db' }, subscriptions: [orders, stock, mails] }),
  defineConfig({ store: { postgres: { connection: 'postgres://db', schema: 'x' } }, subscriptions: [journal] }),
  defineConfig({ store: () => createSqliteStore({ file: 'a.db' }), subscriptions: [stock] }),
  defineConfig({ store: url ? { postgres: url } : { sqlite: 'a.db' }, subscriptions: [stock, journal] }),
  defineConfig({ subscriptions: [orders], engine: { name: 'one', retention: '7d', watchdog: startWatchdog() } }),
]
