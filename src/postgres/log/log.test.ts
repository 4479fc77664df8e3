import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { LogStore } from '../../log/log-store.ts'
import { type Share, whole } from '../../source/share.ts'
import { appended, limits, newEvent } from '../../testing/contracts/fixtures.ts'
import { appendLock, schemaNumber } from '../connection/locks.ts'

describeServers('the PostgreSQL log', (server) => {
  const schemas = useSchemas(server)

  async function open(stores = 1) {
    const schema = schemas.readySchema()
    const opened = []
    for (let i = 0; i < stores; i++) {
      const store = await schemas.open(schema)
      onTestFinished(() => store.close())
      opened.push(store.log)
    }
    return { schema, log: opened[0] as LogStore, other: opened[1] as LogStore }
  }

  async function connect(begin?: string): Promise<Client> {
    const client = new Client({ connectionString: schemas.url, application_name: 'the user' })
    client.on('error', () => undefined)
    await client.connect()
    onTestFinished(() => client.end())
    if (begin) await client.query(begin)
    return client
  }

  /** All there is to read, page by page: a page may end before the log does. */
  const ids = async (log: LogStore) => {
    const seen: string[] = []
    for (let after = 0; ; ) {
      const { events, through } = await log.readAll(after, limits)
      if (events.length === 0) return seen
      seen.push(...events.map(({ id }) => id))
      after = through
    }
  }

  describe("in a user's transaction", () => {
    it('has the event when the transaction commits, with the row of the business, and not before', async () => {
      const { schema, log } = await open()
      const client = await connect()
      await client.query(`CREATE TABLE ${schema}.orders (id integer PRIMARY KEY)`)
      await client.query('BEGIN')
      await client.query(`INSERT INTO ${schema}.orders VALUES (1)`)
      expect(await log.append('k', [newEvent('1')], 'new', { tx: client })).toMatchObject({
        outcome: 'appended',
        version: 1,
      })
      expect(await log.append('k', [newEvent('2'), newEvent('3')], 1, { tx: client })).toMatchObject({ version: 3 })
      expect(await ids(log)).toEqual([])
      expect(await log.head()).toBe(0)
      await client.query('COMMIT')
      expect(await ids(log)).toEqual(['1', '2', '3'])
      expect((await client.query(`SELECT id FROM ${schema}.orders`)).rows).toHaveLength(1)
    })

    it('has nothing when it rolls back, and readers pass what is missing', async () => {
      const { log } = await open()
      const client = await connect('BEGIN')
      await log.append('k', [newEvent('1')], 'new', { tx: client })
      await client.query('ROLLBACK')
      const { position } = appended(await log.append('k', [newEvent('2')], 'new'))
      expect(position).toBeGreaterThan(1)
      expect(await ids(log)).toEqual(['2'])
      expect(await log.head()).toBe(position)
      expect(await log.gap()).toBeUndefined()
    })

    it('gives up with a savepoint what was appended after it', async () => {
      const { log } = await open()
      const client = await connect('BEGIN')
      await log.append('a', [newEvent('1')], 'new', { tx: client })
      await client.query('SAVEPOINT here')
      await log.append('b', [newEvent('2')], 'new', { tx: client })
      await client.query('ROLLBACK TO here')
      await log.append('c', [newEvent('3')], 'new', { tx: client })
      await client.query('COMMIT')
      expect(await ids(log)).toEqual(['1', '3'])
    })

    it('tells of conflicts as everywhere, and the transaction goes on', async () => {
      const { log } = await open()
      await log.append('k', [newEvent('1')], 'new')
      const client = await connect('BEGIN')
      expect(await log.append('k', [newEvent('2')], 'new', { tx: client })).toEqual({
        outcome: 'version-conflict',
        actual: 1,
      })
      expect(await log.append('k', [newEvent('1')], 'new', { tx: client })).toMatchObject({ outcome: 'repeated' })
      expect(await log.append('j', [newEvent('1')], 'new', { tx: client })).toMatchObject({
        outcome: 'id-conflict',
        id: '1',
      })
      expect(await log.append('j', [newEvent('3')], 'new', { tx: client })).toMatchObject({ outcome: 'appended' })
      await client.query('COMMIT')
      expect(await ids(log)).toEqual(['1', '3'])
    })

    it('wakes readers in this process and in others when it commits', async () => {
      const { log, other } = await open(2)
      const woken = { here: 0, there: 0 }
      log.onAppend(() => woken.here++)
      other.onAppend(() => woken.there++)
      const client = await connect('BEGIN')
      await log.append('k', [newEvent('1')], 'new', { tx: client })
      await setTimeout(100)
      const before = { ...woken }
      await client.query('COMMIT')
      await expect.poll(() => woken.here).toBeGreaterThan(before.here)
      await expect.poll(() => woken.there).toBeGreaterThan(before.there)
    })

    it('takes any client that can query, and still knows when it commits', async () => {
      const { log } = await open()
      let woken = 0
      const client = await connect('BEGIN')
      const wrapped = { query: (query: never) => client.query(query) }
      await log.append('k', [newEvent('1')], 'new', { tx: wrapped })
      log.onAppend(() => woken++)
      await setTimeout(100)
      woken = 0
      await client.query('COMMIT')
      await expect.poll(() => woken).toBeGreaterThan(0)
      expect(await ids(log)).toEqual(['1'])
    })

    it('refuses what is no transaction', async () => {
      const { log } = await open()
      const client = await connect()
      const wrapped = { query: (query: never) => client.query(query) }
      for (const tx of [client, wrapped, {}, 7, null]) {
        const refused = log.append('k', [newEvent('1')], 'new', { tx })
        await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_INVALID' })
      }
      expect(await ids(log)).toEqual([])
    })

    it('throws the errors of PostgreSQL as they are', async () => {
      const { log } = await open()
      const client = await connect('BEGIN')
      await expect(client.query('SELECT 1 / 0')).rejects.toThrow(/zero/)
      await expect(log.append('k', [newEvent('1')], 'new', { tx: client })).rejects.toMatchObject({ code: '25P02' })
      await client.query('ROLLBACK')
      await client.query('BEGIN READ ONLY')
      await expect(log.append('k', [newEvent('1')], 'new', { tx: client })).rejects.toMatchObject({ code: '25006' })
    })

    it.each(['REPEATABLE READ', 'SERIALIZABLE'])('is told at %s when somebody else was first', async (level) => {
      const { log } = await open()
      for (const events of [['2'], ['2', '3']]) {
        const client = await connect(`BEGIN ISOLATION LEVEL ${level}`)
        await client.query('SELECT 1')
        const key = `key of ${events.length}`
        await log.append(key, [newEvent(`first of ${key}`)], 'any')
        const late = log.append(
          key,
          events.map((id) => newEvent(`${id} of ${key}`)),
          'any',
          { tx: client },
        )
        await expect(late).rejects.toMatchObject({ code: '40001' })
        await client.query('ROLLBACK')
        await client.query(`BEGIN ISOLATION LEVEL ${level}`)
        expect(await log.append(key, [newEvent(`2 of ${key}`)], 1, { tx: client })).toMatchObject({ version: 2 })
        await client.query('COMMIT')
      }
    })
  })

  describe('and its horizon', () => {
    it('holds readers before a transaction that appended and is open, and says whose it is', async () => {
      const { log, other } = await open(2)
      await log.append('a', [newEvent('1')], 'new')
      const slow = await connect('BEGIN')
      const { position: gapAt } = appended(await log.append('slow', [newEvent('slow')], 'new', { tx: slow }))
      await slow.query("SELECT 'thinking about it'")
      const begun = Date.now()
      await log.append('b', [newEvent('2')], 'new')
      for (const reader of [log, other]) {
        expect(await ids(reader)).toEqual(['1'])
        expect(await reader.head()).toBe(gapAt - 1)
        const gap = await reader.gap()
        expect(gap).toMatchObject({
          after: gapAt - 1,
          holders: [{ pid: pidOf(slow), application: 'the user', query: "SELECT 'thinking about it'" }],
        })
        expect(Math.abs((gap?.holders[0]?.since ?? 0) - begun)).toBeLessThan(20_000)
        expect((await reader.lag(0)).events).toBe(2)
      }
      let woken = 0
      other.onAppend(() => woken++)
      await slow.query('COMMIT')
      await expect.poll(() => woken).toBeGreaterThan(0)
      for (const reader of [log, other]) {
        expect(await ids(reader)).toEqual(['1', 'slow', '2'])
        expect(await reader.gap()).toBeUndefined()
      }
    })

    it('wakes readers when the transaction that held them is gone without a word', async () => {
      const { log, other } = await open(2)
      const slow = await connect('BEGIN')
      await log.append('slow', [newEvent('slow')], 'new', { tx: slow })
      await log.append('b', [newEvent('2')], 'new')
      expect(await ids(other)).toEqual([])
      // Time for the notice of the append; one that is late finds nothing yet.
      await setTimeout(50)
      let readWhenWoken: string[] = []
      other.onAppend(() => {
        void ids(other).then((read) => (readWhenWoken = read))
      })
      await schemas.user.query('SELECT pg_terminate_backend($1)', [pidOf(slow)])
      await expect.poll(() => readWhenWoken).toEqual(['2'])
    })

    it('goes on while transactions that append nothing stay open', async () => {
      const { schema, log } = await open()
      const busy = await connect('BEGIN')
      await busy.query(`CREATE TABLE ${schema}.elsewhere (n integer)`)
      const reading = await connect('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await reading.query(`SELECT count(*) FROM ${schema}.holdfast_events`)
      const gone = await connect('BEGIN')
      await log.append('gone', [newEvent('gone')], 'new', { tx: gone })
      await gone.query('ROLLBACK')
      await log.append('a', [newEvent('1')], 'new')
      expect(await ids(log)).toEqual(['1'])
      expect(await log.gap()).toBeUndefined()
    })

    it('holds each log on its own', async () => {
      const { log } = await open()
      const { log: elsewhere } = await open()
      const slow = await connect('BEGIN')
      await elsewhere.append('slow', [newEvent('slow')], 'new', { tx: slow })
      const gone = await connect('BEGIN')
      await log.append('gone', [newEvent('gone')], 'new', { tx: gone })
      await gone.query('ROLLBACK')
      await log.append('a', [newEvent('1')], 'new')
      expect(await ids(log)).toEqual(['1'])
      expect(await log.gap()).toBeUndefined()
    })

    it('draws no position before it holds the lock', async () => {
      const { schema, log } = await open()
      await log.append('a', [newEvent('1')], 'new')
      const drawn = async () => {
        const { rows } = await schemas.user.query(`SELECT last_value FROM ${schema}.holdfast_events_position_seq`)
        return Number(rows[0].last_value)
      }
      const gate = await connect()
      const lock = [appendLock, schemaNumber(schema)]
      await gate.query('SELECT pg_advisory_lock($1, $2)', lock)
      const appends = [
        log.append('b', [newEvent('2')], 'new'),
        log.append('c', [newEvent('3'), newEvent('4')], 'new', { tx: await connect('BEGIN') }),
      ]
      await expect.poll(() => waiting(schema)).toBe(2)
      expect(await drawn()).toBe(1)
      await gate.query('SELECT pg_advisory_unlock($1, $2)', lock)
      await Promise.all(appends)
      expect(await drawn()).toBe(4)
    })

    it('reads a long log from the beginning, and passes holes that are larger than a page', async () => {
      const { schema, log } = await open()
      for (let batch = 0; batch < 4; batch++) {
        for (const key of ['a', 'b', 'c']) {
          const events = Array.from({ length: 300 }, (_, i) => newEvent(`${batch}-${key}-${i}`))
          await log.append(key, events, 'any')
        }
        await schemas.user.query(`SELECT setval('${schema}.holdfast_events_position_seq', $1)`, [(batch + 1) * 50_000])
      }
      const fresh = await schemas.open(schema)
      onTestFinished(() => fresh.close())
      const read = async (share: Share) => {
        const seen: string[] = []
        let after = 0
        for (let reads = 0; reads < 100; reads++) {
          const { events, through } = await fresh.log.readAll(after, { events: 250, bytes: 1_000_000 }, share)
          seen.push(...events.map(({ id }) => id))
          if (share.of === 1 && events.length === 0) break
          if (through === after) break
          after = through
        }
        expect(after).toBe(await fresh.log.head())
        return seen
      }
      const all = await read(whole)
      expect(all).toHaveLength(3_600)
      const shares = await Promise.all([0, 1, 2].map((partition) => read({ partition, of: 3 })))
      expect(shares.flat().toSorted()).toEqual(all.toSorted())
    })

    it('does not count a position beyond the log as settled', async () => {
      const { log } = await open()
      const slow = await connect('BEGIN')
      await log.append('slow', [newEvent('slow')], 'new', { tx: slow })
      await log.append('b', [newEvent('2')], 'new')
      expect(await log.readAll(1_000_000, limits)).toMatchObject({ events: [], through: 1_000_000 })
      expect(await log.head()).toBe(0)
      await slow.query('COMMIT')
      expect(await ids(log)).toEqual(['slow', '2'])
    })
  })

  describe('with several writers', () => {
    it('gives a key versions without gaps, and positions that grow with them', async () => {
      const { log, other } = await open(2)
      const client = await connect()
      let n = 0
      const events = () => Array.from({ length: 1 + (n % 3) }, () => newEvent(`e${n++}`))
      const viaStore = async (store: LogStore) => {
        for (let i = 0; i < 60; i++) expect((await store.append('hot', events(), 'any')).outcome).toBe('appended')
      }
      const viaTransactions = async () => {
        for (let i = 0; i < 40; i++) {
          await client.query('BEGIN')
          expect((await log.append('hot', events(), 'any', { tx: client })).outcome).toBe('appended')
          await client.query(i % 4 === 0 ? 'ROLLBACK' : 'COMMIT')
        }
      }
      await Promise.all([viaStore(log), viaStore(log), viaStore(other), viaStore(other), viaTransactions()])
      const all = await log.readKey('hot', 0, { events: 10_000, bytes: 10_000_000 })
      expect(all.map(({ version }) => version)).toEqual(all.map((_, i) => i + 1))
      const positions = all.map(({ position }) => position)
      expect(positions).toEqual(positions.toSorted((x, y) => x - y))
    })

    it('appends the same events once, whoever sends them at the same moment', async () => {
      const { log, other } = await open(2)
      for (let round = 0; round < 20; round++) {
        const events = Array.from({ length: 1 + (round % 3) }, (_, i) => newEvent(`${round}-${i}`))
        const outcomes = await Promise.all([log, other].map((store) => store.append(`k${round}`, events, 'new')))
        expect(outcomes.map(({ outcome }) => outcome).toSorted()).toEqual(['appended', 'repeated'])
      }
    })

    it('lets one of several have an id, also where it is not their first', async () => {
      const { log, other } = await open(2)
      for (let round = 0; round < 20; round++) {
        const shared = newEvent(`shared ${round}`)
        const outcomes = await Promise.all([
          log.append(`a${round}`, [newEvent(`a${round}`), shared], 'new'),
          other.append(`b${round}`, [newEvent(`b${round}`), shared], 'new'),
          other.append(`c${round}`, [shared], 'new'),
        ])
        const won = outcomes.filter(({ outcome }) => outcome === 'appended')
        expect(won).toHaveLength(1)
        expect(outcomes.filter(({ outcome }) => outcome === 'id-conflict')).toHaveLength(2)
      }
    })

    it('keeps the order of appends that are asked for one after the other', async () => {
      const { log } = await open()
      const order = Array.from({ length: 1_000 }, (_, i) => `e${i}`)
      await Promise.all(order.map((id, i) => log.append(`key-${i % 7}`, [newEvent(id)], 'any')))
      for (let key = 0; key < 7; key++) {
        const read = await log.readKey(`key-${key}`, 0, { events: 1_000, bytes: 1_000_000 })
        expect(read.map(({ id }) => id)).toEqual(order.filter((_, i) => i % 7 === key))
      }
    })

    it('lets the others go on when a transaction holds a key', async () => {
      const { log } = await open()
      const slow = await connect('BEGIN')
      await log.append('held', [newEvent('slow')], 'new', { tx: slow })
      const behind = ['1', '2', '3'].map((id) => log.append('held', [newEvent(id)], 'any'))
      let done = 0
      for (const one of behind) void one.then(() => done++)
      for (let round = 0; round < 5; round++) {
        const others = Array.from({ length: 50 }, (_, i) => log.append(`k${i}`, [newEvent(`${round}-${i}`)], 'any'))
        expect((await Promise.all(others)).every(({ outcome }) => outcome === 'appended')).toBe(true)
      }
      expect(done).toBe(0)
      await slow.query('COMMIT')
      expect((await Promise.all(behind)).map((one) => appended(one).version)).toEqual([2, 3, 4])
    })
  })

  it('lets nobody overtake an append that waits for its key', async () => {
    const { log } = await open()
    const slow = await connect('BEGIN')
    const keys = ['a', 'b', 'c']
    for (const key of keys) await log.append(key, [newEvent(`slow ${key}`)], 'new', { tx: slow })
    const first = keys.map((key) => log.append(key, [newEvent(`first ${key}`)], 'any'))
    // By then two of them wait with patience, and there is no room for the third.
    await setTimeout(1_000)
    const second = keys.map((key) => log.append(key, [newEvent(`second ${key}`)], 'any'))
    await setTimeout(100)
    await slow.query('COMMIT')
    expect((await Promise.all(first)).map((one) => appended(one).version)).toEqual([2, 2, 2])
    expect((await Promise.all(second)).map((one) => appended(one).version)).toEqual([3, 3, 3])
  })

  it('bounds a page by the bytes that are sent, however well they lie compressed', async () => {
    const { log } = await open()
    const body = (size: number) => JSON.stringify('x'.repeat(size - 2))
    for (let i = 0; i < 20; i++) await log.append('k', [{ ...newEvent(`e${i}`), body: body(100_000) }], 'any')
    const bytes = 350_000
    for (const share of [undefined, { partition: 0, of: 1 }]) {
      expect((await log.readAll(0, { events: 1_000, bytes }, share)).events).toHaveLength(3)
    }
    expect(await log.readKey('k', 0, { events: 1_000, bytes })).toHaveLength(3)
    expect((await log.readAll(0, { events: 1_000, bytes: 10 })).events).toHaveLength(1)
    let after = 0
    const seen: string[] = []
    for (let reads = 0; reads < 20; reads++) {
      const { events, through } = await log.readAll(after, { events: 1_000, bytes })
      seen.push(...events.map(({ id }) => id))
      after = through
    }
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => `e${i}`))
  })

  /** How many wait for an advisory lock. */
  async function waiting(schema: string): Promise<number> {
    const { rows } = await schemas.user.query(
      `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1::bigint::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [schemaNumber(schema) >>> 0],
    )
    return Number(rows[0].count)
  }
})

function pidOf(client: Client): number {
  return (client as unknown as { processID: number }).processID
}
