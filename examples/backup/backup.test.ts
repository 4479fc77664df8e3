import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import {
  createEngine,
  createLog,
  createOperator,
  defineEvents,
  defineHandler,
  defineProjection,
  type Store,
} from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createDatabase, servers } from '../../test/postgres/databases.ts'
import { describeService } from '../../test/services/services.ts'
import { run } from '../run.ts'

vi.setConfig({ testTimeout: 60_000 })

const folder = mkdtempSync(join(tmpdir(), 'holdfast-backup-'))
afterAll(() => rmSync(folder, { recursive: true }))

const shop = defineEvents({ OrderPlaced: z.object({ total: z.int() }) })
const revenue = defineProjection('revenue', {
  events: shop,
  initial: () => ({ total: 0 }),
  on: { OrderPlaced: (row, { data }) => ({ total: row.total + data.total }) },
})
const placed = (id: string) => ({ id, type: 'OrderPlaced', data: { total: 1 } }) as const

/** A backup is made while an engine and a writer are at work. Then the backup must be whole, and continue from its own moment. */
async function expectRestored(store: Store, backup: () => Promise<Store>): Promise<void> {
  const sent: string[] = []
  const mails = defineHandler('mails', {
    events: shop,
    on: { OrderPlaced: (_event, { idempotencyKey }) => void sent.push(idempotencyKey) },
  })
  const subscriptions = [revenue, mails]
  const log = createLog({ store, events: shop })
  // The backup has the leases of its moment in it, and they must run out first.
  const engine = createEngine({ store, subscriptions, lease: '1s' })
  await engine.start()
  await log.append('first', [placed('before')])
  await engine.drain()
  const isOver = new AbortController()
  const writer = (async () => {
    for (let n = 0; n < 500 && !isOver.signal.aborted; n++) await log.append(`order-${n % 7}`, [placed(`e${n}`)])
  })()
  await using restored = await backup()
  isOver.abort()
  await writer
  await engine.drain()
  await engine.stop()
  const sentByOriginal = new Set(sent.splice(0))

  const copy = createEngine({ store: restored, subscriptions })
  await copy.start()
  await copy.drain()
  for (const { name } of subscriptions) expect(await copy.verify(name)).toMatchObject({ ok: true })
  await copy.stop()
  const operator = createOperator({ store: restored, subscriptions, by: 'ada' })
  expect(await operator.verifyAudit()).toMatchObject({ ok: true })
  // What was handled before the backup is not handled again, and what comes again has the key that it had.
  expect(sent).not.toContain('mails/before')
  expect(sent.filter((key) => !sentByOriginal.has(key))).toEqual([])
}

describe('a backup of SQLite', () => {
  test('that is made beside a running engine is whole', async () => {
    const file = join(folder, 'shop.db')
    const target = join(folder, 'backup.db')
    await using store = await createSqliteStore({ file })
    await expectRestored(store, async () => {
      expect((await run('backup/sqlite.ts', [file, target])).code).toBe(0)
      return createSqliteStore({ file: target })
    })
  })
})

describeService('pgdump', 'a backup of PostgreSQL', (found) => {
  const command = 'command' in found ? found.command : ''
  // pg_dump refuses a server that is newer than itself.
  const major = Number(/ (\d+)/.exec(found.name)?.[1])
  const fit = servers.filter(({ name }) => Number(/ (\d+)/.exec(name)?.[1]) <= major)
  test.each(fit)('with pg_dump, beside a running engine, is whole: $name', async (server) => {
    await using from = await createDatabase(server)
    await using to = await createDatabase(server)
    await using store = await createPostgresStore({ connection: from.url })
    const execute = promisify(execFile)
    await expectRestored(store, async () => {
      const dump = join(folder, `${from.name}.dump`)
      await execute(command, ['--format=custom', '--schema=holdfast', `--file=${dump}`, from.url])
      await execute(join(dirname(command), 'pg_restore'), ['--exit-on-error', '--no-owner', `--dbname=${to.url}`, dump])
      return createPostgresStore({ connection: to.url })
    })
  })
})
