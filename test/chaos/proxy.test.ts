import { Socket } from 'node:net'
import { Client, type ClientConfig } from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase, type Database, describeNewest } from '../postgres/databases.ts'
import { createProxy, type Proxy } from './proxy.ts'

/** How a client tells of it depends on whether it was just writing. */
const lost = /terminated|ECONNRESET|not queryable/

describeNewest('a network that fails on demand', (server) => {
  it('lets through what it is not told to stop', async () => {
    await using world = await createWorld()
    const big = 'x'.repeat(3_000_000)
    const clients = await Promise.all([1, 2, 3].map(() => world.connect()))
    const answers = await Promise.all(clients.map((client) => client.query('SELECT $1::text AS big', [big])))
    expect(answers.every(({ rows }) => rows[0].big === big)).toBe(true)
    expect(world.proxy.counts).toEqual({ accepted: 3, cut: 0, cutBefore: 0, cutAfter: 0 })
  })

  it('cuts every connection, and takes new ones', async () => {
    await using world = await createWorld()
    const [idle, busy] = [await world.connect(), await world.connect()]
    const sleeping = busy.query('SELECT pg_sleep(60)')
    world.proxy.cut()
    await expect(sleeping).rejects.toThrow(lost)
    await expect(idle.query('SELECT 1')).rejects.toThrow(lost)
    expect(world.proxy.counts.cut).toBe(2)
    const client = await world.connect()
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  it('refuses new connections, and the old ones go on', async () => {
    await using world = await createWorld()
    const old = await world.connect()
    await world.proxy.refuse(true)
    await expect(world.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect((await old.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await world.proxy.refuse(false)
    const young = await world.connect()
    expect((await young.query('SELECT 2 AS two')).rows).toEqual([{ two: 2 }])
  })

  it('swallows all in a black hole, and delivers it when that is gone', async () => {
    await using world = await createWorld()
    const socket = new Socket()
    const client = await world.connect({ query_timeout: 100 })
    await world.connect({ stream: () => socket })
    world.proxy.blackhole(true)
    await expect(client.query(`INSERT INTO kept VALUES ('late')`)).rejects.toThrow(/timeout/)
    await expect(world.connect({ connectionTimeoutMillis: 100 })).rejects.toThrow(/timeout/)
    await client.end()
    socket.destroy()
    expect(await world.connected()).toBe(2)
    expect(await world.kept()).toEqual([])

    world.proxy.blackhole(false)
    expect(await world.keptAtLast()).toEqual(['late'])
  })

  it('can be cut while it is a black hole', async () => {
    await using world = await createWorld()
    const client = await world.connect()
    world.proxy.blackhole(true)
    const asked = client.query('SELECT 1')
    world.proxy.cut()
    await expect(asked).rejects.toThrow(lost)
  })

  it('takes its time', async () => {
    await using world = await createWorld()
    const client = await world.connect()
    world.proxy.delay(50)
    const start = performance.now()
    await client.query('SELECT 1')
    expect(performance.now() - start).toBeGreaterThanOrEqual(99)
  })

  describe.each([
    ['before', []],
    ['after', ['row']],
  ] as const)('cuts %s a commit', (kind, kept) => {
    const count = kind === 'before' ? 'cutBefore' : 'cutAfter'

    it('that ends a transaction', async () => {
      await using world = await createWorld()
      const client = await world.connect()
      world.proxy.cutAtCommit(kind)
      await client.query('BEGIN')
      await client.query('INSERT INTO kept VALUES ($1)', ['row'])
      await expect(client.query('COMMIT')).rejects.toThrow(lost)
      expect(await world.keptAtLast()).toEqual(kept)
      expect(world.proxy.counts[count]).toBe(1)
    })

    it('once, and the next one gets through', async () => {
      await using world = await createWorld()
      world.proxy.cutAtCommit(kind)
      const client = await world.connect()
      await expect(client.query('COMMIT')).rejects.toThrow(lost)
      const next = await world.connect()
      expect((await next.query('BEGIN; COMMIT')) as unknown).toMatchObject([{}, { command: 'COMMIT' }])
      expect(world.proxy.counts[count]).toBe(1)
    })

    it('that is a statement with parameters', async () => {
      await using world = await createWorld(/INTO kept/)
      const client = await world.connect()
      world.proxy.cutAtCommit(kind)
      await expect(client.query('INSERT INTO kept VALUES ($1)', ['row'])).rejects.toThrow(lost)
      expect(await world.keptAtLast()).toEqual(kept)
      expect(world.proxy.counts[count]).toBe(1)
    })

    it('that is a statement prepared long ago', async () => {
      await using world = await createWorld(/INTO kept/)
      const client = await world.connect()
      const insert = { name: 'insert', text: 'INSERT INTO kept SELECT $1::text WHERE $1 <> $2' }
      await client.query({ ...insert, values: ['row', 'row'] })
      await client.query('SELECT 1')
      world.proxy.cutAtCommit(kind)
      await expect(client.query({ ...insert, values: ['row', ''] })).rejects.toThrow(lost)
      expect(await world.keptAtLast()).toEqual(kept)
      expect(world.proxy.counts[count]).toBe(1)
    })

    it('that is sent together with what comes before and after it', async () => {
      await using world = await createWorld()
      const client = await world.connect({ pipeline: true })
      world.proxy.cutAtCommit(kind)
      const outcomes = await Promise.allSettled([
        client.query('BEGIN'),
        client.query('INSERT INTO kept VALUES ($1)', ['row']),
        client.query('COMMIT'),
        client.query('SELECT 1'),
      ])
      expect(outcomes.slice(2).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      expect(await world.keptAtLast()).toEqual(kept)
      expect(world.proxy.counts[count]).toBe(1)
    })
  })

  it('gives the client the answers to what came before the commit that it cuts after', async () => {
    await using world = await createWorld()
    const client = await world.connect({ pipeline: true })
    world.proxy.cutAtCommit('after')
    const statements = ['BEGIN', 'SELECT 1', 'COMMIT', 'SELECT 2']
    const outcomes = await Promise.allSettled(statements.map((sql) => client.query(sql)))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
  })

  it('lets the server finish what came before the commit that it cuts before', async () => {
    await using world = await createWorld()
    const client = await world.connect({ pipeline: true })
    world.proxy.cutAtCommit('before')
    const statements = [`INSERT INTO kept VALUES ('row')`, `SELECT repeat('x', 20000000)`, 'COMMIT']
    const outcomes = await Promise.allSettled(statements.map((sql) => client.query(sql)))
    expect(outcomes[2]?.status).toBe('rejected')
    expect(await world.keptAtLast()).toEqual(['row'])
  })

  /** A table `kept` in an empty database, and a proxy in front of it. */
  async function createWorld(marker?: RegExp) {
    const stack = new AsyncDisposableStack()
    const database: Database = stack.use(await createDatabase(server))
    const proxy: Proxy = stack.use(await createProxy({ url: database.url, ...(marker && { marker }) }))
    const open = async (config: ClientConfig) => {
      const client = new Client(config)
      client.on('error', () => undefined)
      await client.connect()
      return client
    }
    const direct = stack.adopt(await open({ connectionString: database.url }), (client) => client.end())
    await direct.query('CREATE TABLE kept (name text)')
    const kept = async () => {
      const { rows } = await direct.query<{ name: string }>('SELECT name FROM kept')
      return rows.map(({ name }) => name)
    }
    const connected = async () => {
      const others = 'datname = current_database() AND pid <> pg_backend_pid()'
      const { rowCount } = await direct.query(`SELECT FROM pg_stat_activity WHERE ${others}`)
      return rowCount
    }
    return {
      proxy,
      connect: (config: ClientConfig = {}) => open({ connectionString: proxy.url, ...config }),
      kept,
      connected,
      /** When the server has nothing more to do for anybody. */
      keptAtLast: async () => {
        await expect.poll(connected, { timeout: 10_000 }).toBe(0)
        return kept()
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    }
  }
})
