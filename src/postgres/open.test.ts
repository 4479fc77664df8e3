import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase, describeServers } from '../../test/postgres/databases.ts'
import type { Transaction } from '../subscription/subscription-store.ts'
import { begin, commitOf, table } from '../testing/contracts/fixtures.ts'
import { createPostgresStore, type PostgresStoreOptions } from './index.ts'
import { checkFacts, type ServerFacts, warningsOf } from './connection/server.ts'

describe('the options of a PostgreSQL store', () => {
  it.each([
    [{ connection: 'localhost' }, /not a URL/],
    [{ connection: 'mysql://me:secret@localhost/x' }, /starts with mysql:/],
    [{ connection: 'postgres://me:se/cr#et@[x' }, /not a URL/],
    [{ connection: 7 }, /of type number/],
    [{}, /of type undefined/],
    [{ connection: [] }, /of type object/],
    [{ connection: 'postgres://x/y', connections: 1 }, /connections is 1/],
    [{ connection: 'postgres://x/y', connections: '4' }, /connections is 4/],
    [{ connection: 'postgres://x/y', schema: 'a"b' }, /schema/],
    [{ connection: 'postgres://x/y', schema: 'pg_x' }, /schema/],
    [{ connection: 'postgres://x/y', migrate: 'no' }, /migrate is no/],
    [{ connection: 'postgres://x/y', pool: 3 }, /no option "pool"/],
  ])('are checked before anything is opened: %j', async (options, message) => {
    const opening = createPostgresStore(options as unknown as PostgresStoreOptions)
    await expect(opening).rejects.toThrow(message)
    await expect(opening).rejects.not.toThrow(/secret|se\/cr/)
  })
})

describe('a server', () => {
  const good: ServerFacts = {
    version: 150_000,
    encoding: 'UTF8',
    isReplica: false,
    fsync: 'on',
    fullPageWrites: 'on',
    synchronousCommit: 'on',
  }

  it('is refused when it is too old, a replica, or can not hold every text', () => {
    expect(() => checkFacts(good, 'here')).not.toThrow()
    expect(() => checkFacts({ ...good, version: 140_012 }, 'here')).toThrow(/here is older than PostgreSQL 15/)
    expect(() => checkFacts({ ...good, encoding: 'LATIN1' }, 'here')).toThrow(/LATIN1/)
    expect(() => checkFacts({ ...good, isReplica: true }, 'here')).toThrow(
      expect.objectContaining({ code: 'STORE_REPLICA' }),
    )
  })

  it('is warned about when it would lose what it has committed', () => {
    expect(warningsOf(good, 'here')).toEqual([])
    expect(warningsOf({ ...good, fsync: 'off', fullPageWrites: 'off' }, 'here')).toEqual([
      expect.stringContaining('fsync = off'),
      expect.stringContaining('full_page_writes = off'),
    ])
  })
})

describeServers('opening and closing a PostgreSQL store', (server) => {
  it('needs a schema that is up to date where it may not make one', async () => {
    await using database = await createDatabase(server)
    const open = (migrate: boolean) => createPostgresStore({ connection: database.url, migrate })
    await expect(open(false)).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    await expect.poll(() => sessionsOf(database)).toBe(0)
    await (await open(true)).close()
    await using store = await open(false)
    expect(await store.log.head()).toBe(0)
  })

  it('leaves nothing open when it fails', async () => {
    await using database = await createDatabase(server)
    await run(server.url, `ALTER DATABASE ${database.name} SET default_transaction_read_only = on`)
    await expect(createPostgresStore({ connection: database.url })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect.poll(() => sessionsOf(database)).toBe(0)
    const url = new URL(database.url)
    url.password = 'not-this-one'
    const refused = createPostgresStore({ connection: url.href })
    await expect(refused).rejects.toMatchObject({ code: 'STORE_MISCONFIGURED' })
    await expect(refused).rejects.not.toThrow(/not-this-one/)
    const nowhere = createPostgresStore({ connection: 'postgres://me:secret@127.0.0.1:1/x' })
    await expect(nowhere).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.not.stringContaining('secret'),
    })
  })

  it('refuses a database that can not hold every text', async () => {
    const name = `ascii_${Date.now()}`
    await run(
      server.url,
      `CREATE DATABASE ${name} ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0`,
    )
    const url = new URL(server.url)
    url.pathname = name
    await expect(createPostgresStore({ connection: url.href })).rejects.toThrow(/SQL_ASCII/)
    await run(server.url, `DROP DATABASE ${name}`)
  })

  it('waits for the disk even where the database would not, and keeps the settings of both', async () => {
    await using database = await createDatabase(server)
    await run(
      server.url,
      `ALTER DATABASE ${database.name} SET synchronous_commit = off;
       ALTER DATABASE ${database.name} SET default_transaction_isolation = serializable`,
    )
    const url = new URL(database.url)
    url.searchParams.set('options', '-c work_mem=5MB -c synchronous_commit=off')
    await using store = await createPostgresStore({ connection: url.href })
    const settings = ['synchronous_commit', 'work_mem', 'statement_timeout', 'transaction_isolation']
    const found = await within(store, async (client) => {
      const { rows } = await client.query({
        text: `SELECT ${settings.map((name) => `current_setting('${name}')`).join(', ')}`,
        rowMode: 'array',
      })
      return rows[0] as string[]
    })
    expect(found).toEqual(['on', '5MB', '30s', 'read committed'])
  })

  it('ends every connection at once, whatever is under way, and as often as it is asked to', async () => {
    await using database = await createDatabase(server)
    const store = await createPostgresStore({ connection: database.url })
    const lease = await begin(store.subscriptions)
    const begun = Promise.withResolvers<void>()
    const closed = { name: 'StoreError', code: 'STORE_CLOSED' }
    const performing = store.subscriptions.perform(lease, async (tx) => {
      begun.resolve()
      await tx.run(() => (tx.handle as Client).query('SELECT pg_sleep(60)'))
      return commitOf(lease)
    })
    const reading = store.snapshot(async (moment) => {
      await begun.promise
      await new Promise((resolve) => setTimeout(resolve, 800))
      return moment.partitions('s')
    })
    const outcomes = Promise.allSettled([performing, reading])
    await begun.promise
    const start = performance.now()
    await Promise.all([store.close(), store.close()])
    await store.close()
    expect(performance.now() - start).toBeLessThan(5_000)
    expect(await outcomes).toMatchObject([
      { status: 'rejected', reason: closed },
      { status: 'rejected', reason: { name: 'StoreError' } },
    ])
    await expect.poll(() => sessionsOf(database)).toBe(0)
    await expect(store.rows.load(table, ['a'])).rejects.toMatchObject(closed)
    await expect(store.subscriptions.load('s', 0)).rejects.toMatchObject(closed)
    await expect(store.snapshot(async () => 1)).rejects.toMatchObject(closed)
  })

  it('survives the end of its connections, idle or busy, on the side of the server', async () => {
    await using database = await createDatabase(server)
    await using store = await createPostgresStore({ connection: database.url })
    await begin(store.subscriptions)
    const sleeping = within(store, (client) => client.query('SELECT pg_sleep(60)')).catch((error: unknown) => error)
    await expect.poll(() => sessionsOf(database, `AND query LIKE '%pg_sleep%'`)).toBe(1)
    await run(server.url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database.name}'`)
    expect(await sleeping).toMatchObject({ name: 'StoreError', code: 'STORE_UNAVAILABLE' })
    await expect.poll(() => store.subscriptions.load('s', 0).catch(() => undefined)).toMatchObject({ partition: 0 })
  })

  async function sessionsOf({ name }: { name: string }, more = ''): Promise<number> {
    return (await run(server.url, `SELECT FROM pg_stat_activity WHERE datname = '${name}' ${more}`)) ?? 0
  }
})

/** Runs something on a connection of the store. */
async function within<T>(
  { subscriptions }: Awaited<ReturnType<typeof createPostgresStore>>,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
  const claim = await subscriptions.claim({ subscription: 's', partition: 0, owner: 'one', leaseMs: 10_000 })
  if (claim.outcome !== 'claimed') throw new Error('owned')
  let result: T | undefined
  await subscriptions.perform(claim.lease, async (tx: Transaction) => {
    await tx.run(async () => {
      result = await work(tx.handle as Client)
    })
    return { ...commitOf(claim.lease), table: undefined }
  })
  return result as T
}

async function run(url: string, sql: string): Promise<number | null> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rowCount
  } finally {
    await client.end()
  }
}
