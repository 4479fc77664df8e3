import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { createSqliteStore } from 'holdfast/sqlite'
import { createRandom } from 'holdfast/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { EngineProcess, script } from './engine-process.ts'

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 32)
// HOLDFAST_ROUNDS=1000 for a longer form.
const rounds = Number(process.env.HOLDFAST_ROUNDS ?? 25)
const groundTables = [
  'holdfast_audit',
  'holdfast_breakers',
  'holdfast_events',
  'holdfast_inbox',
  'holdfast_incidents',
  'holdfast_lanes',
  'holdfast_letters',
  'holdfast_members',
  'holdfast_migrations',
  'holdfast_partitions',
  'holdfast_redrive_lanes',
  'holdfast_redrives',
  'holdfast_revisions',
  'holdfast_subscriptions',
  'holdfast_trials',
]
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-migration-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('killed in the middle of a long migration, nothing of it is there', { timeout: 120_000 }, async () => {
  console.log(`seed ${seed}`)
  const random = createRandom(seed)
  let largestWal = 0
  for (const begun of ['from nothing', 'from the version before']) {
    for (let round = 0; round < 5; round++) {
      const file = join(folder, `${begun} ${round}.db`)
      if (begun === 'from the version before') await (await createSqliteStore({ file })).close()
      const before = tablesOf(file)
      const child = fork(script('migrating.ts'), [file, 'endless'], { execArgv: ['--conditions=@holdfast/source'] })
      const told: unknown[] = []
      child.on('message', (message) => told.push(message))
      await once(child, 'message')
      await setTimeout(random.below(250))
      child.kill('SIGKILL')
      await once(child, 'close')
      expect(told).toEqual(['migrating'])
      largestWal = Math.max(largestWal, statSync(`${file}-wal`).size)
      expect(tablesOf(file)).toEqual(before)
      // And the program that doesn't know the long migration works on as before.
      await (await createSqliteStore({ file })).close()
      expect(tablesOf(file)).toEqual(groundTables)
    }
  }
  // Some of it had reached the disk, so it had to be taken back.
  console.log(JSON.stringify({ largestWal }))
  expect(largestWal).toBeGreaterThan(1_000_000)

  const file = join(folder, 'from nothing 0.db')
  const child = fork(script('migrating.ts'), [file], { execArgv: ['--conditions=@holdfast/source'] })
  const [code] = (await once(child, 'close')) as [number]
  expect(code).toBe(0)
  expect(tablesOf(file)).toEqual([...groundTables, 'holdfast_half', 'holdfast_whole'].toSorted())
  await expect(createSqliteStore({ file })).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
})

test('killed at any moment while a file is made, there is nothing or everything', {
  timeout: 60_000 + rounds * 1_500,
}, async () => {
  const random = createRandom(seed)
  const found = { noFile: 0, nothing: 0, everything: 0 }
  let next = prepare(0)
  try {
    for (let round = 1; round <= rounds; round++) {
      await using engine = next
      await engine.until('ready')
      next = prepare(round)
      const file = fileOf(round - 1)
      engine.send('go')
      // Opening, migrating and registering take about 25 ms, and twice as long where others are busy too: it is killed before, in the middle and after it.
      await setTimeout(random.below(120_000) / 1_000)
      await engine.kill()
      const own = tablesOf(file).filter((table) => table.startsWith('holdfast'))
      expect([[], groundTables]).toContainEqual(own)
      found[!existsSync(file) ? 'noFile' : own.length > 0 ? 'everything' : 'nothing']++
      await (await createSqliteStore({ file })).close()
      expect(tablesOf(file).filter((table) => table.startsWith('holdfast'))).toEqual(groundTables)
    }
  } finally {
    await next[Symbol.asyncDispose]()
  }
  console.log(JSON.stringify({ seed, ...found }))
  expect(found.noFile + found.nothing).toBeGreaterThan(0)
  expect(found.everything).toBeGreaterThan(0)
})

test('processes that make the same file together all get in', { timeout: 60_000 }, async () => {
  const engines = Array.from({ length: 6 }, (_, i) => new EngineProcess({ file: fileOf(0), name: `engine-${i}` }))
  try {
    for (const engine of engines) await engine.until('ready')
    for (const engine of engines) engine.send('go')
    await Promise.any(engines.map((engine) => engine.until('claimed')))
    for (const engine of engines) await engine.stop()
  } finally {
    await Promise.all(engines.map((engine) => engine[Symbol.asyncDispose]()))
  }
  expect(tablesOf(fileOf(0)).filter((table) => table.startsWith('holdfast'))).toEqual(groundTables)
})

function fileOf(round: number): string {
  return join(folder, `round-${round}.db`)
}

function prepare(round: number): EngineProcess {
  return new EngineProcess({ file: fileOf(round), name: `engine-${round}` })
}

/** Opened for writing, so that SQLite first takes back what was not committed, as it would for anybody who comes next. */
function tablesOf(file: string): string[] {
  if (!existsSync(file)) return []
  const db = new DatabaseSync(file)
  try {
    const integrity = db.prepare('PRAGMA integrity_check').get() as { integrity_check: string }
    expect(integrity.integrity_check).toBe('ok')
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all()
    return tables.map(({ name }) => String(name)).toSorted()
  } finally {
    db.close()
  }
}
