import { setTimeout } from 'node:timers/promises'
import { createEngine, createLog, defineSubscription, type Engine, type EngineOptions, type Store } from 'holdfast'
import { createPostgresStore, defineSqlProjection } from 'holdfast/postgres'
import { Client, type ClientBase } from 'pg'
import { expect, it, vi } from 'vitest'
import { balances, bank, countsOf, credited, debited, heldOf, rowOf } from '../fixtures.ts'
import { cloneDatabase, describeServers, type TestServer } from './databases.ts'
import { operatorOf } from '../acts.ts'

// The engine on a real server. What the store owes it is in the contract suite; what happens to it when things break in the worst
// moments is in test/chaos.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const patience = { timeout: 15_000, interval: 20 }

interface World extends AsyncDisposable {
  readonly url: string
  readonly store: Store
  readonly client: Client
  /** Another process would have a store of its own; so do these. */
  open(): Promise<Store>
  engine(options?: Partial<EngineOptions>): Engine
}

async function createWorld(server: TestServer): Promise<World> {
  const database = await cloneDatabase(server)
  const { url } = database
  const ends: (() => Promise<unknown>)[] = []
  const open = async () => {
    const store = await createPostgresStore({ connection: url })
    ends.unshift(() => store.close())
    return store
  }
  const client = new Client(url)
  client.on('error', () => undefined)
  await client.connect()
  ends.unshift(() => client.end())
  const store = await open()
  return {
    url,
    store,
    client,
    open,
    engine: (options = {}) => {
      const engine = createEngine({ store, subscriptions: [balances], logger: silent, ...options })
      ends.unshift(() => engine.stop())
      return engine
    },
    [Symbol.asyncDispose]: async () => {
      for (const end of ends) await end()
      await database[Symbol.asyncDispose]()
    },
  }
}

async function ownersOf(engine: Engine): Promise<string[]> {
  const { subscriptions } = await engine.status()
  return subscriptions[0]?.stored?.partitions.map(({ owner }) => owner ?? 'nobody') ?? []
}

describeServers('an engine', (server) => {
  it('applies everything once, in order, and holds what it must, in four partitions', async () => {
    await using world = await createWorld(server)
    const log = createLog({ store: world.store, events: bank })
    const accounts = Array.from({ length: 40 }, (_, i) => `account-${i}`)
    for (const round of [1, 2, 3]) await Promise.all(accounts.map((key) => log.append(key, [credited(round)])))
    await log.append('account-7', [debited(1_000), credited(1)])
    await log.append('account-8', [credited(4)])
    const engine = world.engine({ page: { events: 7 } })
    await engine.start()
    await engine.drain()
    expect(await rowOf(engine, 'account-8')).toMatchObject({ version: 4, data: { balance: 10, seen: 4 } })
    expect(await rowOf(engine, 'account-7')).toMatchObject({ version: 3, data: { balance: 6 } })
    expect((await heldOf(engine)).map(({ lane, status }) => [lane, status])).toEqual([
      ['account-7', 'parked'],
      ['account-7', 'queued'],
    ])
    expect(await countsOf(engine)).toMatchObject({ applied: 121, held: 2 })
    expect(await engine.verify('balances')).toMatchObject({ ok: true, events: 123, rows: 40 })
  })

  it('shares its partitions with the processes that come, and takes over from those that go, at once', async () => {
    await using world = await createWorld(server)
    const [first, second] = await Promise.all(
      ['first', 'second'].map(async (name) => world.engine({ name, store: await world.open(), lease: '1h' })),
    )
    if (!first || !second) return
    await first.start()
    await vi.waitFor(async () => expect(await ownersOf(first)).toEqual(Array(4).fill('first')), patience)
    await second.start()
    await vi.waitFor(
      async () => expect((await ownersOf(first)).toSorted()).toEqual(['first', 'first', 'second', 'second']),
      patience,
    )
    await first.stop()
    // Long before its lease would have ended.
    await vi.waitFor(async () => expect(await ownersOf(second)).toEqual(Array(4).fill('second')), patience)
  })

  it('takes over from a process that the server sees no more, long before its lease ends', async () => {
    await using world = await createWorld(server)
    const dying = await world.open()
    const first = world.engine({ name: 'first', store: dying, lease: '1h' })
    await first.start()
    await vi.waitFor(async () => expect(await ownersOf(first)).toEqual(Array(4).fill('first')), patience)
    // To the server, a process that closes all its connections without a word looks like one that was killed.
    await dying.close()
    const second = world.engine({ name: 'second', lease: '1h' })
    await second.start()
    await vi.waitFor(async () => expect(await ownersOf(second)).toEqual(Array(4).fill('second')), patience)
  })

  it('blocks while its connections are cut, blames nobody, and goes on', async () => {
    await using world = await createWorld(server)
    const log = createLog({ store: world.store, events: bank })
    const engine = world.engine({ page: { events: 3 } })
    await engine.start()
    for (let i = 0; i < 60; i++) {
      await log.append(`account-${i % 6}`, [credited(1)])
      if (i % 15 === 0) {
        await world.client.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast' AND datname = current_database()",
        )
      }
    }
    await engine.drain()
    expect(await countsOf(engine)).toMatchObject({ applied: 60, held: 0 })
    expect(await engine.verify('balances')).toMatchObject({ ok: true })
  })

  it('waits at the gap of a transaction that appended, says whose it is, and passes what was rolled back', async () => {
    await using world = await createWorld(server)
    const log = createLog({ store: world.store, events: bank })
    const engine = world.engine()
    await engine.start()
    await world.client.query("BEGIN; SET application_name = 'the slow one'")
    await log.append('slow', [credited(1)], { tx: world.client })
    const { position } = await log.append('quick', [credited(2)])
    await setTimeout(300)
    expect(await rowOf(engine, 'quick')).toBeUndefined()
    const { gap } = await engine.status()
    const [pid] = (await world.client.query('SELECT pg_backend_pid() AS pid')).rows as [{ pid: number }]
    expect(gap).toMatchObject({ after: position - 2, holders: [{ pid: pid.pid, application: 'the slow one' }] })
    expect(gap?.holders[0]?.query).toContain('holdfast_append')
    await world.client.query('ROLLBACK')
    await vi.waitFor(async () => expect(await rowOf(engine, 'quick')).toMatchObject({ version: 1 }), patience)
    expect((await engine.status()).gap).toBeUndefined()
    expect(await countsOf(engine)).toMatchObject({ applied: 1 })
  })

  it('keeps business row and event together in the transaction of a user', async () => {
    await using world = await createWorld(server)
    const log = createLog({ store: world.store, events: bank })
    const { client } = world
    await client.query('CREATE TABLE orders (id integer PRIMARY KEY)')
    const order = async (id: number, end: 'COMMIT' | 'ROLLBACK') => {
      await client.query('BEGIN')
      await client.query('INSERT INTO orders VALUES ($1)', [id])
      await log.append('orders', [credited(id)], { tx: client })
      await client.query(end)
    }
    await order(1, 'COMMIT')
    await order(2, 'ROLLBACK')
    await order(3, 'COMMIT')
    const engine = world.engine()
    await engine.start()
    await engine.drain()
    expect(await rowOf(engine, 'orders')).toMatchObject({ version: 2, data: { balance: 4 } })
    expect((await client.query('SELECT id FROM orders ORDER BY id')).rows).toEqual([{ id: 1 }, { id: 3 }])
    await expect(log.append('orders', [credited(9)], { tx: client })).rejects.toMatchObject({
      code: 'TRANSACTION_INVALID',
    })
  })

  it('runs SQL of the user in its transaction, and holds only the lane of what fails there', async () => {
    await using world = await createWorld(server)
    const { client } = world
    await client.query('CREATE TABLE entries (n serial, key text, amount integer CHECK (amount <> 13))')
    const journal = defineSqlProjection('journal', {
      events: bank,
      on: {
        Credited: async ({ key, data }, tx: ClientBase) => {
          await tx.query('INSERT INTO entries (key, amount) VALUES ($1, $2)', [key, data.amount])
          if (data.amount === 99) await tx.query('/* now */ COMMIT')
        },
      },
      reset: (tx: ClientBase) => tx.query('DELETE FROM entries'),
    })
    const log = createLog({ store: world.store, events: bank })
    await log.append('good', [credited(1)])
    await log.append('bad', [credited(13), credited(2)])
    await log.append('worse', [credited(99)])
    await log.append('good', [credited(3)])
    const engine = world.engine({ subscriptions: [journal] })
    await engine.start()
    await engine.drain()
    const entries = async () => (await client.query('SELECT key, amount FROM entries ORDER BY n')).rows
    expect(await entries()).toEqual([
      { key: 'good', amount: 1 },
      { key: 'good', amount: 3 },
    ])
    expect((await heldOf(engine, 'journal')).map(({ lane, failure }) => [lane, failure?.code])).toEqual([
      ['bad', '23514'],
      ['bad', undefined],
      ['worse', 'TRANSACTION_BROKEN'],
    ])
    expect(await engine.verify('journal')).toMatchObject({ ok: true })
    await client.query('ALTER TABLE entries DROP CONSTRAINT entries_amount_check')
    await operatorOf(world.store, [journal]).reset('journal', 'a test')
    await vi.waitFor(
      async () => expect(await countsOf(engine, 'journal')).toMatchObject({ applied: 4, held: 1 }),
      patience,
    )
    expect(await entries()).toHaveLength(4)
  })

  it('holds the lane of a row that breaks a rule of the user on its table', async () => {
    await using world = await createWorld(server)
    await world.engine().prepare()
    await world.client.query('ALTER TABLE holdfast.balances ADD CHECK (balance < 100)')
    const log = createLog({ store: world.store, events: bank })
    const engine = world.engine()
    await engine.start()
    await log.append('rich', [credited(60), credited(60), credited(1)])
    await log.append('poor', [credited(1)])
    await engine.drain()
    expect(await rowOf(engine, 'rich')).toMatchObject({ version: 1, data: { balance: 60 } })
    expect(await rowOf(engine, 'poor')).toMatchObject({ version: 1 })
    expect((await heldOf(engine)).map(({ sequence, status, failure }) => [sequence, status, failure?.code])).toEqual([
      [2, 'parked', '23514'],
      [3, 'queued', undefined],
    ])
    expect(await engine.verify('balances')).toMatchObject({ ok: true })
  })

  it('wakes for what another process appended, without waiting for the next look', async () => {
    await using world = await createWorld(server)
    const engine = world.engine({ poll: '1h', subscriptions: [defineSubscription(balances, { partitions: 1 })] })
    await engine.start()
    await engine.drain()
    await setTimeout(50)
    const elsewhere = createLog({ store: await world.open(), events: bank })
    await elsewhere.append('a', [credited(1)])
    await vi.waitFor(async () => expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 }), patience)
    await world.client.query('BEGIN')
    await elsewhere.append('a', [credited(1)], { tx: world.client })
    await setTimeout(50)
    await world.client.query('COMMIT')
    await vi.waitFor(async () => expect(await rowOf(engine, 'a')).toMatchObject({ version: 2 }), patience)
  })
})
