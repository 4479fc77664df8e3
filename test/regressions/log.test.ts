import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, createLog } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { balances, bank, credited } from '../fixtures.ts'
import { openLog } from './open.ts'
import { cloneDatabase, createDatabase, describeServers } from '../postgres/databases.ts'
import { startProxy } from './proxy.ts'

const limits = { events: 1_000, bytes: 1_048_576 }
const event = (n: number | string, id = randomUUID() as string) => ({
  id,
  type: 'E',
  schemaVersion: 1,
  time: '2026-01-01T00:00:00.000Z',
  body: JSON.stringify({ n }),
  metadata: undefined,
})

async function client(url: string): Promise<Client> {
  const one = new Client({ connectionString: url })
  one.on('error', () => undefined)
  await one.connect()
  return one
}

/** Reads on from a position until nothing comes for a while, as a worker would; returns the positions it saw. */
async function follow(
  log: { readAll: Awaited<ReturnType<typeof openLog>>['log']['readAll'] },
  seen: number[],
  from: number,
) {
  let after = from
  for (let quiet = 0; quiet < 20; quiet++) {
    const page = await log.readAll(after, limits)
    for (const { position } of page.events) seen.push(position)
    if (page.through > after) quiet = 0
    after = page.through
    await sleep(5)
  }
  return after
}

describeServers('the log', (server) => {
  it('an answer about the holders that is older than the wait does not end the wait (client of another make)', async () => {
    await using database = await cloneDatabase(server)
    await using proxy = await startProxy(database.url)
    await using opened = await openLog(proxy.url)
    await using other = await openLog(database.url)
    const { log } = opened
    // A client that is no pg.Client with a `connection`: pg-native, a wrapper of an ORM, a Proxy.
    const [w, c] = [await client(database.url), await client(database.url)]
    const wrapper = { query: (q: never) => w.query(q), processID: (w as unknown as { processID: number }).processID }
    await w.query('BEGIN')
    const caught = proxy.hold('holdfast_look')
    await log.append('w', [event(1)], 'any', { tx: wrapper })
    await caught
    await w.query('COMMIT')
    await c.query('BEGIN')
    const late = await other.log.append('c', [event(2)], 'any', { tx: c })
    await other.log.append('d', [event(3)], 'any')
    const seen: number[] = []
    // The gap is seen, and that c holds it.
    let after = (await log.readAll(0, limits)).through
    seen.push(...(await log.readAll(0, limits)).events.map(({ position }) => position))
    expect(await log.readAll(after, limits)).toMatchObject({ events: [], through: after })
    proxy.release()
    after = await follow(log, seen, after)
    await c.query('COMMIT')
    await follow(log, seen, after)
    await Promise.all([w.end(), c.end()])
    expect(late).toMatchObject({ position: 2 })
    expect(seen).toEqual([1, 2, 3])
  })

  it('the same, with plain pg clients, after the listening session was lost', async () => {
    await using database = await cloneDatabase(server)
    await using proxy = await startProxy(database.url)
    await using opened = await openLog(proxy.url)
    await using other = await openLog(database.url)
    const { log, listener } = opened
    log.onAppend(() => undefined)
    await listener.ready()
    const [a, c] = [await client(database.url), await client(database.url)]
    await a.query('BEGIN')
    await other.log.append('a', [event(1)], 'any', { tx: a })
    await other.log.append('b', [event(2)], 'any')
    const caught = proxy.hold('holdfast_look')
    const seen: number[] = []
    await log.readAll(0, limits)
    await caught
    // An ordinary loss of the one session that listens.
    const lost = new Promise<void>((resolve) => listener.onLost(resolve))
    await c.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid()`,
    )
    await lost
    await a.query('COMMIT')
    await c.query('BEGIN')
    await other.log.append('c', [event(3)], 'any', { tx: c })
    await other.log.append('d', [event(4)], 'any')
    const page = await log.readAll(0, limits)
    const first = page.events.length > 0 ? page : await log.readAll(0, limits)
    seen.push(...first.events.map(({ position }) => position))
    proxy.release()
    const after = await follow(log, seen, first.through)
    await c.query('COMMIT')
    await follow(log, seen, after)
    await Promise.all([a.end(), c.end()])
    expect(seen).toEqual([1, 2, 3, 4])
  })

  it('the head of a process that has just begun is not below what is solid, while somebody appends', async () => {
    await using database = await cloneDatabase(server)
    await using one = await openLog(database.url)
    await one.log.append(
      'a',
      Array.from({ length: 5_000 }, (_, n) => event(n)),
      'any',
    )
    const c = await client(database.url)
    await c.query('BEGIN')
    await one.log.append('c', [event('open')], 'any', { tx: c })
    await one.log.append('d', [event('after')], 'any')
    await using two = await openLog(database.url)
    const events = (await two.log.readAll(3_000, limits)).events.length
    await using three = await openLog(database.url)
    const head = await three.log.head()
    await c.query('ROLLBACK')
    await c.end()
    expect({ head, events }).toEqual({ head: 5_000, events: 1_000 })
  })

  it('a sequence that stands behind the log (logical replication, a restored table) is refused: it would fill holes that were passed', async () => {
    await using database = await cloneDatabase(server)
    const c = await client(database.url)
    {
      await using one = await openLog(database.url)
      await one.log.append('a', [event(1)], 'any')
      await c.query('BEGIN')
      await one.log.append('b', [event(2)], 'any', { tx: c })
      await c.query('ROLLBACK')
      await one.log.append('a', [event(3)], 'any')
    }
    await c.query(`SELECT setval(pg_get_serial_sequence('holdfast.holdfast_events', 'position'), 1, false)`)
    await c.end()
    await expect(createPostgresStore({ connection: database.url })).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })

  it('a cache on the sequence is refused: sessions would draw positions below those of others', async () => {
    await using database = await cloneDatabase(server)
    await using one = await openLog(database.url)
    await one.log.append('a', [event(1)], 'any')
    const c = await client(database.url)
    await c.query('ALTER SEQUENCE holdfast.holdfast_events_position_seq CACHE 10')
    await c.end()
    await expect(createPostgresStore({ connection: database.url })).rejects.toMatchObject({ code: 'STORE_REFUSED' })
  })

  it('one client can append to two stores in one transaction', async () => {
    await using database = await createDatabase(server)
    await using one = await openLog(database.url, 'one')
    await using two = await openLog(database.url, 'two')
    const c = await client(database.url)
    await c.query('BEGIN')
    await one.log.append('a', [event(1)], 'any', { tx: c })
    const outcome = await two.log.append('a', [event(1)], 'any', { tx: c }).catch((error: Error) => error.message)
    await c.query('COMMIT')
    await c.end()
    expect(outcome).toMatchObject({ outcome: 'appended' })
  })

  it('a repeated append is told as repeated, also when the server was not there at the first try', async () => {
    await using database = await cloneDatabase(server)
    await using direct = await openLog(database.url)
    const once = event(1)
    await direct.log.append('a', [once], 'any')
    await using proxy = await startProxy(database.url)
    await using opened = await openLog(proxy.url)
    proxy.cut()
    await sleep(50)
    proxy.refuseNext(1)
    expect(await opened.log.append('a', [once], 'any')).toMatchObject({ outcome: 'repeated' })
  })

  it('an append that is too large for one message is refused at the door, and not taken for an outage', async () => {
    await using database = await cloneDatabase(server)
    await using opened = await openLog(database.url)
    const text = 'x'.repeat(1_000_000)
    const drafts = Array.from({ length: 40 }, () => ({ type: 'E', data: { text } }))
    const append = createLog({ store: opened }).append('a', drafts)
    await expect(append).rejects.toMatchObject({ code: 'EVENT_TOO_LARGE' })
  })

  it('an engine that comes to a running one starts, though somebody appends and another partition is behind', async () => {
    await using database = await cloneDatabase(server)
    await using store = await createPostgresStore({ connection: database.url })
    const log = createLog({ store, events: bank })
    // What a first process leaves: one partition is slow, the others passed all that is not theirs.
    for (let i = 0; i < 5; i++)
      await log.append(
        'account-1',
        Array.from({ length: 1_000 }, () => credited(1)),
      )
    const first = createEngine({ store, subscriptions: [balances], name: 'first', page: { events: 100 } })
    await first.start()
    await first.drain()
    await first.stop()
    const c = await client(database.url)
    // The slow one, as its own commit would have left it after a page of 100 events.
    const { rows } = await c.query(`UPDATE holdfast.holdfast_partitions SET position = 100, applied = 100,
      event_id = (SELECT id FROM holdfast.holdfast_events WHERE position = 100)
      WHERE applied > 0 RETURNING partition`)
    expect(rows).toHaveLength(1)
    await c.query(`DELETE FROM holdfast.balances`)
    const positions = await c.query('SELECT partition, position FROM holdfast.holdfast_partitions ORDER BY 1')
    await c.query('BEGIN')
    await log.append('x', [credited(1)], { tx: c })
    await log.append('y', [credited(1)])
    await using fresh = await createPostgresStore({ connection: database.url })
    const second = createEngine({
      store: fresh,
      subscriptions: [balances],
      name: 'second',
      logger: { info() {}, warn() {}, error() {} },
    })
    await second.start()
    await sleep(1_500)
    const { subscriptions } = await second.status()
    await c.query('ROLLBACK')
    await second.stop()
    await c.end()
    const state = subscriptions[0]?.state as { state: string; error?: Error } | undefined
    expect({ state: state?.state, error: state?.error?.message, positions: positions.rows }).toMatchObject({
      error: undefined,
    })
  })
})
