import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Server, type ServerOptions, startServer } from '../../test/postgres/server.ts'
import type { LogStore } from '../log/log-store.ts'
import { limits, newEvent } from '../testing/contracts/fixtures.ts'
import { createPostgresStore } from './index.ts'

// What needs a server of its own: one that is restarted, crashes, becomes a replica or knows prepared transactions.

describe.each(['newest', 'oldest'] as const)('the safe horizon on the %s server', (version) => {
  it('waits for a prepared transaction, whatever it is called by then', async () => {
    const server = await start({ version, settings: { max_prepared_transactions: '5' } })
    const { log } = await open(server)
    const slow = await connect(server)
    await slow.query('BEGIN')
    await log.append('slow', [newEvent('slow')], 'new', { tx: slow })
    await log.append('b', [newEvent('1')], 'new')
    expect(await ids(log)).toEqual([])
    await slow.query("PREPARE TRANSACTION 'later'")
    await expect.poll(() => log.gap()).toMatchObject({ holders: [{ pid: 0, query: "PREPARE TRANSACTION 'later'" }] })
    expect(await ids(log)).toEqual([])
    await slow.query("COMMIT PREPARED 'later'")
    await expect.poll(() => ids(log)).toEqual(['slow', '1'])
    expect(await log.gap()).toBeUndefined()
  })

  it('forgets what it knew of commits that a crash has lost', async () => {
    const settings = { synchronous_commit: 'off', wal_writer_delay: '10s', autovacuum: 'off' }
    const server = await start({ version, settings })
    const { log } = await open(server)
    await log.append('safe', [newEvent('safe')], 'new')
    // What is on full pages of the write-ahead log is on the disk all the same, and so it may take more than one try.
    let head = 0
    for (let tries = 1; ; tries++) {
      const client = await connect(server)
      await client.query('BEGIN')
      // After a crash a sequence goes on up to 32 positions ahead of where it was; it has to lose more than that.
      await client.query(`SELECT nextval('holdfast.holdfast_events_position_seq') FROM generate_series(1, 80)`)
      await log.append('lost', [newEvent(`lost-${tries}`)], 'any', { tx: client })
      await client.query('COMMIT')
      expect(await ids(log)).toContain(`lost-${tries}`)
      head = await log.head()
      await server.restart('kill')
      const after = await connect(server)
      const { rows } = await after.query('SELECT last_value FROM holdfast.holdfast_events_position_seq')
      if (Number(rows[0].last_value) < head - 1) break
      expect(tries).toBeLessThan(10)
    }
    const kept = (await ids(log)).filter((id) => !id.startsWith('lost'))
    expect(kept).toEqual(['safe'])
    const slow = await connect(server)
    await slow.query('BEGIN')
    const drawn = await log.append('slow', [newEvent('slow')], 'new', { tx: slow })
    expect(drawn).toMatchObject({ outcome: 'appended' })
    expect((drawn as { position: number }).position).toBeLessThanOrEqual(head)
    await log.append('b', [newEvent('1')], 'new')
    expect((await ids(log)).at(-1)).not.toBe('1')
    await slow.query('COMMIT')
    await expect.poll(async () => (await ids(log)).slice(-2)).toEqual(['slow', '1'])
  })

  it('is not to be had from a replica', async () => {
    const server = await start({ version })
    const { log } = await open(server)
    await log.append('a', [newEvent('1')], 'new')
    expect(await log.head()).toBe(1)
    await server.stop()
    await writeFile(join(server.folder, 'data', 'standby.signal'), '')
    await server.start()
    for (const read of [() => log.readAll(0, limits), () => log.head(), () => log.gap()]) {
      await expect(read()).rejects.toMatchObject({ code: 'STORE_REPLICA' })
    }
  })
})

async function start(options: ServerOptions): Promise<Server> {
  const server = await startServer({ ...options, inMemory: true })
  onTestFinished(() => server[Symbol.asyncDispose]())
  return server
}

async function open(server: Server) {
  const store = await createPostgresStore({ connection: server.url, connections: 4 })
  onTestFinished(() => store.close())
  return store
}

async function connect(server: Server): Promise<Client> {
  const client = new Client({ connectionString: server.url })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

async function ids(log: LogStore): Promise<readonly string[]> {
  return (await log.readAll(0, limits)).events.map(({ id }) => id)
}
