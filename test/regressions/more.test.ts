import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { appendLock, schemaNumber } from '../../src/postgres/connection/locks.ts'
import { openLog } from './open.ts'
import { cloneDatabase, describeServers } from '../postgres/databases.ts'

const event = (n: number | string, metadata?: string) => ({
  id: randomUUID() as string,
  type: 'E',
  schemaVersion: 1,
  time: '2026-01-01T00:00:00.000Z',
  body: JSON.stringify({ n }),
  metadata,
})

async function client(url: string): Promise<Client> {
  const one = new Client({ connectionString: url })
  one.on('error', () => undefined)
  await one.connect()
  return one
}

describeServers('the log', (server) => {
  it('a page is bounded in bytes, metadata and all', async () => {
    await using database = await cloneDatabase(server)
    await using opened = await openLog(database.url)
    const metadata = JSON.stringify({ note: 'x'.repeat(60_000) })
    for (let i = 0; i < 4; i++)
      await opened.log.append(
        'a',
        Array.from({ length: 250 }, (_, n) => event(n, metadata)),
        'any',
      )
    const { events } = await opened.log.readAll(0, { events: 1_000, bytes: 1_048_576 })
    const bytes = events.reduce((sum, one) => sum + (one.metadata?.length ?? 0) + (one.body?.length ?? 0), 0)
    expect(bytes).toBeLessThan(4 * 1_048_576)
  })

  it('a client whose prepared statements were thrown away (DISCARD ALL, DEALLOCATE ALL) can append', async () => {
    await using database = await cloneDatabase(server)
    await using opened = await openLog(database.url)
    const c = await client(database.url)
    await c.query('BEGIN')
    await opened.log.append('a', [event(1)], 'any', { tx: c })
    await c.query('COMMIT')
    await c.query('DISCARD ALL')
    await c.query('BEGIN')
    const outcome = await opened.log.append('a', [event(2)], 'any', { tx: c }).catch((error: Error) => error.message)
    await c.query('ROLLBACK')
    await c.end()
    expect(outcome).toMatchObject({ outcome: 'appended' })
  })

  it('no position is drawn before the append lock is taken, in either form, with generic plans', async () => {
    await using database = await cloneDatabase(server)
    await using opened = await openLog(database.url)
    const c = await client(database.url)
    const drawn = async () =>
      (await c.query('SELECT last_value::int AS n FROM holdfast.holdfast_events_position_seq')).rows[0].n
    const t = await client(database.url)
    await t.query('SET plan_cache_mode = force_generic_plan')
    for (const events of [[event(1)], [event(2), event(3)]]) {
      for (let i = 0; i < 8; i++) {
        await t.query('BEGIN')
        await opened.log.append('w', [event(i)], 'any', { tx: t })
        await t.query('COMMIT')
      }
      const before = await drawn()
      await c.query('SELECT pg_advisory_lock($1, $2)', [appendLock, schemaNumber('holdfast')])
      await t.query('BEGIN')
      const appending = opened.log.append('a', events, 'any', { tx: t })
      await sleep(200)
      const during = await drawn()
      await c.query('SELECT pg_advisory_unlock_all()')
      await appending
      await t.query('COMMIT')
      expect(during).toBe(before)
    }
    await Promise.all([c.end(), t.end()])
  })
})
