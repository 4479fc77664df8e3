import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createSqliteStore } from 'holdfast/sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { compareWithOracle } from './compare.ts'
import { EngineProcess } from './engine-process.ts'
import { createWriter } from './writer.ts'

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 32)
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-outage-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('while somebody else holds the lock nothing is held, and then all of it is done', {
  timeout: 60_000,
}, async () => {
  const file = join(folder, 'locked.db')
  await using store = await createSqliteStore({ file })
  const writer = createWriter(store, seed)
  await writer.append('poor', 5, -1_000, 7)
  for (let i = 0; i < 20; i++) await writer.appendSome()

  const stranger = new DatabaseSync(file)
  await using engine = new EngineProcess({ file, name: 'engine', busyTimeout: '50ms', pageEvents: 100, spinMs: 1 })
  engine.send('go')
  await engine.until('claimed')
  await engine.until('committed')
  stranger.exec('PRAGMA busy_timeout = 10000; BEGIN EXCLUSIVE')
  const before = look(file)
  const seen = engine.reports.length
  await engine.until('state', ({ state }) => state === 'blocked', seen)
  await engine.until('store-failed', ({ attempt }) => attempt >= 5, seen)
  expect(look(file)).toEqual(before)
  expect(before.position).toBeLessThan(writer.head)

  stranger.exec('ROLLBACK')
  await engine.until('state', ({ state }) => state !== 'blocked', engine.reports.length)
  engine.send('drain')
  await engine.until('drained')
  await engine.stop()
  stranger.close()
  expect(engine.reports.filter((report) => report.kind === 'store-failed').map(({ code }) => code)).toContain(
    'STORE_BUSY',
  )
  // The poor account is held, by its own event, at its first and only attempt; nobody else is.
  const { problems, heldLanes } = await compareWithOracle(file, writer.written)
  expect(problems).toEqual([])
  expect(heldLanes).toBeGreaterThan(0)
})

test.skipIf(!canLimitFiles())(
  'while the disk is full nothing is held, and then all of it is done',
  { timeout: 60_000 },
  async () => {
    const file = join(folder, 'full.db')
    await using store = await createSqliteStore({ file })
    const writer = createWriter(store, seed)
    await writer.append('poor', 5, -1_000, 7)
    for (let i = 0; i < 20; i++) await writer.appendSome()
    // A limit on the size of files, in blocks of 512 bytes, stands in for the end of the disk: writes beyond it fail.
    const blocks = Math.ceil((statSync(`${file}-wal`).size + 200_000) / 512)
    const settings = { file, name: 'engine', pageEvents: 100 }
    await using engine = new EngineProcess(settings, { shell: `ulimit -Sf ${blocks}` })
    engine.send('go')
    await engine.until('store-failed')
    const before = look(file)
    expect(before.position).toBeGreaterThan(0)
    expect(before.position).toBeLessThan(writer.head)
    await engine.until('store-failed', ({ attempt }) => attempt >= 4)
    expect(look(file)).toEqual(before)
    const codes = engine.reports.filter((report) => report.kind === 'store-failed').map(({ code }) => code)
    expect(new Set(codes)).toEqual(new Set(['STORE_UNAVAILABLE']))

    execFileSync('prlimit', ['--pid', String(engine.pid), '--fsize=unlimited:unlimited'])
    engine.send('drain')
    await engine.until('drained')
    await engine.stop()
    const { problems } = await compareWithOracle(file, writer.written)
    expect(problems).toEqual([])
  },
)

/** Readable at any time: in WAL mode readers need no lock. */
function look(file: string): { position: number; applied: number; letters: number } {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const sql = `SELECT coalesce(sum(position), 0) AS position, coalesce(sum(applied), 0) AS applied,
      (SELECT count(*) FROM holdfast_letters) AS letters FROM holdfast_partitions`
    return { ...db.prepare(sql).get() } as { position: number; applied: number; letters: number }
  } finally {
    db.close()
  }
}

function canLimitFiles(): boolean {
  try {
    execFileSync('prlimit', ['--version'])
    return process.platform === 'linux'
  } catch {
    return false
  }
}
