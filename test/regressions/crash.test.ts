import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from './open.ts'
import { type Server, startServer } from '../postgres/server.ts'

const limits = { events: 1_000, bytes: 1_048_576 }
const event = (n: number | string) => ({
  id: randomUUID() as string,
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

async function untilUp(url: string): Promise<Client> {
  for (let i = 0; i < 100; i++) {
    try {
      return await client(url)
    } catch {
      await sleep(50)
    }
  }
  throw new Error('did not come back')
}

describe.each(['newest', 'oldest'] as const)('%s', (version) => {
  // One for both: to make a cluster takes longer than the tests.
  let server: Server
  beforeAll(async () => {
    server = await startServer({
      version,
      inMemory: true,
      settings: { wal_writer_delay: '10s', max_prepared_transactions: '5' },
    })
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  it('what a reader knows is forgotten when the server recovers from the crash of a backend', async () => {
    const url = await server.createDatabase()
    const opened = await openLog(url)
    const a = await client(url)
    for (;;) {
      await opened.log.append('a', [event(1)], 'any')
      const { rows } = await a.query('SELECT log_cnt::int AS n FROM holdfast.holdfast_events_position_seq')
      if (rows[0].n === 0) break
    }
    await a.query('SET synchronous_commit = off')
    const started = (await a.query('SELECT pg_postmaster_start_time()::text AS t')).rows[0].t
    await a.query('BEGIN')
    const lost = event('lost')
    const at = (await opened.log.append('b', [lost], 'any', { tx: a })) as { position: number }
    await a.query('COMMIT')
    const before = await opened.log.readAll(at.position - 1, limits)
    expect(before.events.map(({ id }) => id)).toEqual([lost.id])
    // The out-of-memory killer.
    process.kill((a as unknown as { processID: number }).processID, 'SIGKILL')
    await sleep(500)
    const b = await untilUp(url)
    const startedNow = (await b.query('SELECT pg_postmaster_start_time()::text AS t')).rows[0].t
    const kept = event('kept')
    await using other = await openLog(url)
    const again = (await other.log.append('c', [kept], 'any')) as { position: number }
    let after: Awaited<ReturnType<typeof opened.log.readAll>> | undefined
    for (let i = 0; i < 50 && !after; i++)
      after = await opened.log.readAll(at.position - 1, limits).catch(() => undefined)
    const inLog = (
      await b.query(`SELECT id FROM holdfast.holdfast_events WHERE position >= $1`, [at.position])
    ).rows.map(({ id }) => id)
    await b.end()
    await opened[Symbol.asyncDispose]()
    console.log({ version, lostAt: at.position, keptAt: again.position, started, startedNow })
    expect(inLog).toEqual([kept.id])
    expect(after?.events.map(({ id }) => id)).toEqual(inLog)
  }, 60_000)

  it('a gap that a prepared transaction holds says which, and since when', async () => {
    const url = await server.createDatabase()
    await using opened = await openLog(url)
    const c = await client(url)
    await c.query('BEGIN')
    await opened.log.append('a', [event(1)], 'any', { tx: c })
    await c.query(`PREPARE TRANSACTION 'forgotten'`)
    await opened.log.append('b', [event(2)], 'any')
    await opened.log.readAll(0, limits)
    const gap = await opened.log.gap?.()
    const shown = (
      await c.query(`SELECT pid, virtualtransaction FROM pg_locks WHERE locktype = 'advisory' AND pid IS NULL`)
    ).rows
    await c.query(`ROLLBACK PREPARED 'forgotten'`)
    await c.end()
    console.log(version, shown, gap?.holders)
    expect(gap?.holders).toMatchObject([
      { pid: 0, query: expect.stringContaining('forgotten'), since: expect.any(Number) },
    ])
  }, 60_000)
})
