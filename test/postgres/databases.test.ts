import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { canStartServers } from './binaries.ts'
import { migrations } from '../../src/postgres/migrations/index.ts'
import { cloneDatabase, createDatabase, describeServers, servers } from './databases.ts'
import { useSchemas } from './schemas.ts'
import { offer } from './setup.ts'
import { readySchemas } from './template.ts'

describeServers('a database for a test', (server) => {
  it('is empty, is nobody else’s, and goes even while somebody is connected', async () => {
    const database = await createDatabase(server)
    await using other = await createDatabase(server)
    expect(database.url).not.toBe(other.url)
    const client = await connect(database.url)
    const { rows } = await client.query(`SELECT current_database() AS name, count(*)::int AS tables
      FROM pg_class WHERE relnamespace = 'public'::regnamespace`)
    expect(rows).toEqual([{ name: database.name, tables: 0 }])

    await database[Symbol.asyncDispose]()
    await expect(client.query('SELECT 1')).rejects.toThrow(/not queryable/)
    await expect(connect(database.url)).rejects.toMatchObject({ code: '3D000' })
  })

  it('has the newest schema and no row, as a clone of the template', async () => {
    await using database = await cloneDatabase(server)
    const client = await connect(database.url)
    expect(await contentsOf(client, 'holdfast')).toEqual(untouched)
    await client.query(`INSERT INTO holdfast.holdfast_migrations VALUES (1000, 'mine', 'mine')`)
    await using another = await cloneDatabase(server)
    const elsewhere = await connect(another.url)
    expect(await contentsOf(elsewhere, 'holdfast')).toEqual(untouched)
    await client.end()
    await elsewhere.end()
  })

  it('is on the server that the name says', async () => {
    const client = await connect(server.url)
    const { rows } = await client.query('SHOW server_version')
    await client.end()
    expect(server.name).toContain(`PostgreSQL ${rows[0].server_version.split(' ')[0]}`)
  })
})

describeServers('the schemas of a test file', (server) => {
  const schemas = useSchemas(server, { perTest: true })

  // More tests than schemas, so that some of them get the first of another clone.
  it.each([...readySchemas, 'one more'])('are ready, and no test gets one that another had: %s', async () => {
    const schema = schemas.readySchema()
    expect(await contentsOf(schemas.user, schema)).toEqual(untouched)
    await schemas.user.query(`INSERT INTO ${schema}.holdfast_migrations VALUES (1000, 'mine', 'mine')`)
  })

  it('are absent when a test asks for a new one', async () => {
    const { rows } = await schemas.user.query('SELECT to_regnamespace($1) AS found', [schemas.newSchema()])
    expect(rows).toEqual([{ found: null }])
  })
})

describe('the servers of a test run', () => {
  it.runIf(canStartServers())('are the newest and the oldest major', () => {
    expect(servers.map(({ name }) => name)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^PostgreSQL 18\./), expect.stringMatching(/^PostgreSQL 15\./)]),
    )
  })

  it.runIf(canStartServers())('do not count one whose role may not create databases, and say so', async () => {
    const url = new URL(servers[0]?.url ?? '')
    const client = await connect(url.href)
    await client.query(`CREATE ROLE holdfast_modest LOGIN PASSWORD 'modest'`)
    try {
      url.username = 'holdfast_modest'
      url.password = 'modest'
      expect(await offer('given', () => Promise.resolve(url.href))).toEqual({
        name: 'given',
        missing: expect.stringMatching(/holdfast_modest may not create databases/),
      })
    } finally {
      await client.query('DROP ROLE holdfast_modest')
      await client.end()
    }
  })

  it('do not count one that is not there, and say why', async () => {
    expect(await offer('given', () => Promise.resolve('postgres://127.0.0.1:1/postgres'))).toEqual({
      name: 'given',
      missing: expect.stringContaining('ECONNREFUSED'),
    })
  })
})

const untouched = { migrations: migrations.map(({ name }) => name), rows: 0 }

/** The migrations of a store, and how many rows all its other tables have. */
async function contentsOf(client: Client, schema: string) {
  const { rows } = await client.query<{ name: string }>(
    `SELECT name FROM ${schema}.holdfast_migrations ORDER BY number`,
  )
  const { rows: counted } = await client.query<{ rows: number }>(
    `SELECT coalesce(sum((xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %I.%I', schemaname, tablename), false, true, '')))[1]::text::int), 0)::int AS rows
       FROM pg_tables WHERE schemaname = $1 AND tablename <> 'holdfast_migrations'`,
    [schema],
  )
  return { migrations: rows.map(({ name }) => name), rows: counted[0]?.rows }
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}
