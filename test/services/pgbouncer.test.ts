import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createEngine, createLog, defineEvents, defineProjection, read } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { Client, Pool } from 'pg'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { sessionConfig } from '../../src/postgres/connection/database.ts'
import { createPlace } from '../cli/place.ts'
import { root } from '../docs/blocks.ts'
import { createDatabase, describeServers, type TestServer } from '../postgres/databases.ts'
import { startPgBouncer } from './pgbouncer.ts'
import { describeService } from './services.ts'

vi.setConfig({ testTimeout: 60_000 })

const counted = defineEvents({ Counted: z.object({ by: z.int() }) })
const totals = defineProjection('totals', {
  events: counted,
  initial: () => ({ total: 0 }),
  on: { Counted: (row, { data }) => ({ total: row.total + data.by }) },
})
const one = { type: 'Counted', data: { by: 1 } } as const

/** As the guide has it, with the role and the database of this test. */
async function setRole(url: string): Promise<void> {
  const { username, pathname } = new URL(url)
  const sql = await readFile(join(root, 'examples/pgbouncer/role.sql'), 'utf8')
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(sql.replaceAll('shop_engine IN DATABASE shop', `${username} IN DATABASE ${pathname.slice(1)}`))
  await client.end()
}

async function guideSettings(): Promise<Record<string, string>> {
  const ini = await readFile(join(root, 'examples/pgbouncer/pgbouncer.ini'), 'utf8')
  const region = /#region needed\n([\s\S]*?)^; #endregion/m.exec(ini)?.[1] ?? ''
  return Object.fromEntries([...region.matchAll(/^(\w+) = (.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
}

describeService('pgbouncer', 'between Holdfast and PostgreSQL', (found) => {
  const command = 'command' in found ? found.command : ''

  describeServers('through PgBouncer', (server: TestServer) => {
    test('in session mode, engines share the work, wake each other, and one that is killed is missed at once', async () => {
      await using database = await createDatabase(server)
      await setRole(database.url)
      await using bouncer = await startPgBouncer(command, database.url, await guideSettings())
      using place = createPlace({
        'holdfast.config.ts': `
          import { defineConfig, defineEvents, defineProjection } from 'holdfast'
          import { z } from 'zod'
          const events = defineEvents({ Counted: z.object({ by: z.int() }) })
          const totals = defineProjection('totals', {
            events,
            initial: () => ({ total: 0 }),
            on: { Counted: (row, { data }) => ({ total: row.total + data.by }) },
          })
          // Only a session that ended can tell of a death, and only a notification can wake.
          export default defineConfig({ subscriptions: [totals], engine: { lease: '10m', poll: '5m' } })`,
      })
      const other = place.spawn('start', '--store', bouncer.url)
      await vi.waitFor(() => expect(other.output.stderr).toContain('Running totals'), { timeout: 30_000 })

      await using store = await createPostgresStore({ connection: bouncer.url })
      const log = createLog({ store, events: counted })
      const total = async () => (await read(store, totals).get('a'))?.data.total
      await log.append('a', [one, one])
      await vi.waitFor(async () => expect(await total()).toBe(2), { timeout: 20_000 })

      other.process.kill('SIGKILL')
      await other.ended
      await using engine = createEngine({ store, subscriptions: [totals], lease: '10m', poll: '5m' })
      await engine.start()
      await log.append('a', [one])
      await engine.drain()
      expect(await total()).toBe(3)
      expect(await engine.verify('totals')).toMatchObject({ ok: true, events: 3 })
    })

    test('the role of the guide has every setting that a direct connection sends', async () => {
      await using database = await createDatabase(server)
      await setRole(database.url)
      await using bouncer = await startPgBouncer(command, database.url, await guideSettings())
      const { options } = sessionConfig({ connection: {} } as Parameters<typeof sessionConfig>[0])
      const names = [...String(options).matchAll(/-c (\w+)=/g)].map(([, name]) => name)
      expect(names.length).toBeGreaterThan(5)
      const ask = async (client: Client) => {
        await client.connect()
        const { rows } = await client.query(
          'SELECT name, setting FROM pg_settings WHERE name = ANY($1) ORDER BY name',
          [names.map((name) => (name === 'timezone' ? 'TimeZone' : name === 'datestyle' ? 'DateStyle' : name))],
        )
        await client.end()
        return rows
      }
      const direct = await ask(new Client({ connectionString: database.url, options: String(options) }))
      expect(direct).toHaveLength(names.length)
      expect(await ask(new Client({ connectionString: bouncer.url }))).toEqual(direct)
    })

    test('without ignore_startup_parameters the store is refused, and the message names the parameter', async () => {
      await using database = await createDatabase(server)
      await using bouncer = await startPgBouncer(command, database.url, { pool_mode: 'session' })
      await expect(createPostgresStore({ connection: bouncer.url })).rejects.toThrow(
        /unsupported startup parameter: options/,
      )
    })

    test('in transaction mode a store does not work: prepared statements are refused', async () => {
      await using database = await createDatabase(server)
      // With one connection to the server, two stores are sure to meet on it.
      const settings = { ...(await guideSettings()), pool_mode: 'transaction', default_pool_size: '1' }
      await using bouncer = await startPgBouncer(command, database.url, settings)
      const append = async () => {
        await using store = await createPostgresStore({ connection: bouncer.url })
        await createLog({ store, events: counted }).append('a', [one])
      }
      const refused = { code: 'STORE_REFUSED', message: expect.stringMatching(/prepared statement/) }
      await expect(append().then(append)).rejects.toMatchObject(refused)
    })

    test('an app whose own pool is in transaction mode appends in its transactions', async () => {
      await using database = await createDatabase(server)
      // Fewer connections to the server than clients, so that they are sure to share them.
      const settings = { ...(await guideSettings()), pool_mode: 'transaction', default_pool_size: '2' }
      await using bouncer = await startPgBouncer(command, database.url, settings)
      await using store = await createPostgresStore({ connection: database.url })
      const log = createLog({ store, events: counted })
      const pool = new Pool({ connectionString: bouncer.url, max: 8 })
      const append = async (key: string) => {
        const client = await pool.connect()
        await client.query('BEGIN')
        await log.append(key, [one], { tx: client })
        await client.query('COMMIT')
        client.release()
      }
      for (let round = 0; round < 20; round++) await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(append))
      await pool.end()
      await using engine = createEngine({ store, subscriptions: [totals] })
      await engine.start()
      await engine.drain()
      expect(await engine.verify('totals')).toMatchObject({ ok: true, events: 120 })
    })
  })
})
