import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { canStartServers } from './binaries.ts'
import { createDatabase, describeServers, servers } from './databases.ts'
import { offer } from './setup.ts'

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

  it('is on the server that the name says', async () => {
    const client = await connect(server.url)
    const { rows } = await client.query('SHOW server_version')
    await client.end()
    expect(server.name).toContain(`PostgreSQL ${rows[0].server_version.split(' ')[0]}`)
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

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}
