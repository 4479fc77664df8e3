import { createPostgresStore } from 'holdfast/postgres'
import { createMemoryServer, type MemoryHandle } from 'holdfast/testing'
import { Client } from 'pg'
import type { Store } from '../../src/index.ts'

/** A transaction of a user's own that is open. */
export interface Open {
  /** For `log.append`. */
  readonly handle: unknown
  end(how: 'commit' | 'rollback'): Promise<void>
}

/** One of the two that are compared: a server with two processes at it, and a user. */
export interface Side extends AsyncDisposable {
  readonly name: string
  readonly clients: readonly [Store, Store]
  /** Lets leases run out. */
  elapse(ms: number): Promise<void>
  begin(): Promise<Open>
  /** Resolves when a statement waits for a transaction. */
  waiting(): Promise<void>
  /** A unique index on `owner` of the table `balances`. */
  addRule(): Promise<void>
  /** Into a table of the user's own, in which nothing may be twice. */
  note(handle: unknown, n: number): Promise<void>
  notes(): Promise<readonly number[]>
}

export async function postgresSide(url: string, schema: string): Promise<Side> {
  const connect = async () => {
    const client = new Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const open = () => createPostgresStore({ connection: url, schema, connections: 3 })
  const first = await open()
  const clients = [first, await open()] as const
  const user = await connect()
  const users = [user]
  await user.query(`CREATE TABLE ${schema}.notes (n integer PRIMARY KEY)`)
  return {
    name: 'PostgreSQL',
    clients,
    elapse: async (ms) => {
      const ago = (column: string, table: string) =>
        user.query(`UPDATE ${schema}.${table} SET ${column} = ${column} - $1 * interval '1 millisecond'`, [ms])
      await ago('lease_until', 'holdfast_partitions')
      await ago('until', 'holdfast_members')
    },
    begin: async () => {
      const client = await connect()
      users.push(client)
      await client.query('BEGIN')
      return {
        handle: client,
        end: async (how) => {
          await client.query(how)
        },
      }
    },
    waiting: async () => {
      const sql = 'SELECT FROM pg_locks WHERE NOT granted AND pid = ANY ($1)'
      const pids = users.map((client) => (client as unknown as { processID: number }).processID)
      while ((await user.query(sql, [pids])).rows.length === 0) continue
    },
    addRule: async () => {
      await user.query(`CREATE UNIQUE INDEX ON ${schema}.balances (owner)`)
    },
    note: async (handle, n) => {
      await (handle as Client).query(`INSERT INTO ${schema}.notes (n) VALUES ($1)`, [n])
    },
    notes: async () =>
      (await user.query<{ n: number }>(`SELECT n FROM ${schema}.notes ORDER BY n`)).rows.map(({ n }) => n),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(clients.map((store) => store.close()))
      // With whatever transactions are open there.
      await Promise.all(users.filter((client) => client !== user).map((client) => client.end()))
      await user.query(`DROP SCHEMA ${schema} CASCADE`)
      await user.end()
    },
  }
}

export async function memorySide(): Promise<Side> {
  let elapsed = 0
  const clock = { now: () => Date.now() + elapsed, mono: () => performance.now() }
  const server = createMemoryServer({ clock })
  const clients = [server.connect(), server.connect()] as const
  return {
    name: 'memory',
    clients,
    elapse: async (ms) => {
      elapsed += ms
    },
    begin: async () => {
      const begun = Promise.withResolvers<unknown>()
      const ended = Promise.withResolvers<'commit' | 'rollback'>()
      const work = clients[0].transaction(async (handle) => {
        begun.resolve(handle)
        if ((await ended.promise) === 'rollback') throw new Error('rollback')
      })
      const over = work.catch(() => undefined)
      return {
        handle: await begun.promise,
        end: async (how) => {
          ended.resolve(how)
          await over
        },
      }
    },
    waiting: async () => undefined,
    addRule: async () => server.addUnique('balances', 'owner'),
    note: (handle, n) => (handle as MemoryHandle).insert('notes', String(n), { n }),
    notes: async () => Array.from(clients[0].table('notes').values(), ({ n }) => Number(n)).toSorted((a, b) => a - b),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(clients.map((store) => store.close()))
    },
  }
}
