import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import {
  createEngine,
  createLog,
  defineHandler,
  defineProjection,
  type Engine,
  failure,
  type SqlProjection,
  type Store,
} from 'holdfast'
import * as postgres from 'holdfast/postgres'
import * as sqlite from 'holdfast/sqlite'
import type { ClientBase } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { bank, countsOf, credited, debited, heldOf, rowOf } from '../fixtures.ts'
import { cloneDatabase, servers } from '../postgres/databases.ts'
import { ask, found } from './asking.ts'

// A fold, SQL and a handler, each held by a bug and let go when it is mended, on every store and in real time.

const patience = { timeout: 15_000, interval: 20 }
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

interface Ground extends AsyncDisposable {
  readonly store: Store
  /** Adds up amounts in a table of the user's own. */
  readonly sqlOf: (isBroken: () => boolean) => SqlProjection
  sumOf(engine: Engine, key: string): Promise<number>
}

const grounds: (readonly [string, () => Promise<Ground>])[] = [
  ['SQLite', createFile],
  ...servers.map((server) => [server.name, () => createOnServer(server)] as const),
]

describe.each(grounds)('a redrive in %s', (_, createGround) => {
  it('lets a fold, SQL and a handler go, with their revisions, and leaves out what is to be left out', async () => {
    await using ground = await createGround()
    const { store } = ground
    const bug = { isThere: true }
    const trails = defineProjection('trails', {
      events: bank,
      initial: () => ({ trail: [] as number[] }),
      on: {
        Credited: (row, { data }) => {
          if (bug.isThere) throw new RangeError('a bug')
          return { trail: [...row.trail, data.amount] }
        },
      },
    })
    const calls: string[] = []
    const notify = defineHandler('notify', {
      events: bank,
      on: {
        Credited: ({ key, data }) => {
          if (bug.isThere) throw failure.permanent('a bug')
          calls.push(`${key} ${data.amount}`)
        },
      },
    })
    const sql = ground.sqlOf(() => bug.isThere)
    const names = ['trails', 'notify', sql.name]
    const log = createLog({ store, events: bank })
    const keys = Array.from({ length: 25 }, (__, i) => `key-${i}`)
    for (const key of keys) await log.append(key, [credited(1), credited(2), debited(9)])
    await log.raw.append('edited', [{ type: 'Credited', data: { amount: 'five' } }])
    await log.append('left-out', [credited(7), credited(8)])
    await using engine = createEngine({ store, subscriptions: [trails, notify, sql], logger: silent, poll: '20ms' })
    await engine.start()
    await engine.drain()
    for (const name of names) {
      const held = await heldOf(engine, name)
      expect(held.filter(({ status }) => status === 'parked')).toHaveLength(27)
    }

    bug.isThere = false
    const at = Date.now()
    for (const subscription of names) {
      const edited = (await heldOf(engine, subscription)).find(({ lane }) => lane === 'edited')
      const { partition = 0, event } = edited ?? {}
      const letter = { subscription, partition, position: event?.position ?? 0 }
      const deed = { by: 'ann', act: 'edit', target: subscription, reason: 'a word', at, details: {} }
      expect(await store.letters.revise(letter, '{"amount":5}', deed)).toEqual({ outcome: 'revised', number: 1 })
      const discard = await ask(store, subscription, { act: 'discard', filter: { lane: 'left-out' } }, at)
      const first = await ask(store, subscription, { stages: [1, 5] }, at)
      await Promise.all(keys.map((key) => log.append(key, [credited(3)])))
      await vi.waitFor(async () => expect((await found(store, first)).status).toBe('done'), patience)
      await vi.waitFor(async () => expect((await found(store, discard)).status).toBe('done'), patience)
      expect(await found(store, first)).toMatchObject({ lanes: 26, byState: { done: 26 } })
    }
    await engine.drain()
    for (const name of names) {
      expect(await heldOf(engine, name)).toEqual([])
      expect(await countsOf(engine, name)).toMatchObject({ applied: 127, held: 0, discarded: 1 })
      expect(await engine.verify(name)).toMatchObject({ ok: true, differences: [] })
    }
    for (const key of keys) {
      expect((await rowOf(engine, key, trails))?.data).toEqual({ trail: [1, 2, 3, 3, 3] })
      expect(await ground.sumOf(engine, key)).toBe(12)
      expect(calls.filter((call) => call.startsWith(`${key} `))).toEqual([1, 2, 3, 3, 3].map((n) => `${key} ${n}`))
    }
    expect((await rowOf(engine, 'edited', trails))?.data).toEqual({ trail: [5] })
    expect((await rowOf(engine, 'left-out', trails))?.data).toEqual({ trail: [8] })
    expect(await ground.sumOf(engine, 'edited')).toBe(5)
    expect(calls.filter((call) => !call.startsWith('key-')).toSorted()).toEqual(['edited 5', 'left-out 8'])
  }, 60_000)
})

const createSums = 'CREATE TABLE IF NOT EXISTS sums (key TEXT PRIMARY KEY, sum INTEGER NOT NULL)'
const addSql = (a: string, b: string) =>
  `INSERT INTO sums AS s (key, sum) VALUES (${a}, ${b}) ON CONFLICT (key) DO UPDATE SET sum = s.sum + excluded.sum`

async function createFile(): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-redrive-'))
  const file = join(folder, 'store.db')
  const store = await sqlite.createSqliteStore({ file })
  const { DatabaseSync: Opened } = await import('node:sqlite')
  const db = new Opened(file)
  db.exec(createSums)
  return {
    store,
    sqlOf: (isBroken) =>
      sqlite.defineSqlProjection('adding', {
        events: bank,
        on: {
          Credited: ({ key, data }, tx: DatabaseSync) => {
            if (isBroken()) throw new RangeError('a bug')
            tx.prepare(addSql('?', '?')).run(key, data.amount)
          },
        },
      }),
    sumOf: async (_, key) => Number(db.prepare('SELECT sum FROM sums WHERE key = ?').get(key)?.sum),
    [Symbol.asyncDispose]: async () => {
      db.close()
      await store.close()
      await rm(folder, { recursive: true })
    },
  }
}

async function createOnServer(server: (typeof servers)[number]): Promise<Ground> {
  const database = await cloneDatabase(server)
  const { Client } = await import('pg')
  const client = new Client(database.url)
  await client.connect()
  await client.query(createSums)
  const store = await postgres.createPostgresStore({ connection: database.url })
  return {
    store,
    sqlOf: (isBroken) =>
      postgres.defineSqlProjection('adding', {
        events: bank,
        on: {
          Credited: async ({ key, data }, tx: ClientBase) => {
            if (isBroken()) throw new RangeError('a bug')
            await tx.query(addSql('$1', '$2'), [key, data.amount])
          },
        },
      }),
    sumOf: async (_, key) =>
      Number((await client.query<{ sum: number }>('SELECT sum FROM sums WHERE key = $1', [key])).rows[0]?.sum),
    [Symbol.asyncDispose]: async () => {
      await client.end()
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}
