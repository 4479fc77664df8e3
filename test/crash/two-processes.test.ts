import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createSqliteStore } from 'holdfast/sqlite'
import { createRandom } from 'holdfast/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { compareWithOracle } from './compare.ts'
import { EngineProcess } from './engine-process.ts'
import { createWriter } from './writer.ts'

const rounds = 12
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 32)
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-two-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a process that was stopped past its lease commits nothing when it comes back', { timeout: 120_000 }, async () => {
  console.log(`seed ${seed}`)
  const file = join(folder, 'two.db')
  await using store = await createSqliteStore({ file })
  const writer = createWriter(store, seed)
  const random = createRandom(seed)
  // A page takes about 90 ms, nearly all of it between the read and the commit: that is where SIGSTOP will find it.
  const settings = { file, lease: '500ms', pageEvents: 60, spinMs: 1.5 } as const
  await using a = new EngineProcess({ ...settings, name: 'a' })
  await using b = new EngineProcess({ ...settings, name: 'b' })
  for (const engine of [a, b]) {
    engine.send('go')
    await engine.until('ready')
  }
  await Promise.any([a.until('claimed'), b.until('claimed')])

  const seen = { takeOvers: 0, stoppedInsideCommit: 0, changedHandsBefore: 0 }
  while (seen.takeOvers < rounds) {
    while ((await look()).behind < 1_000) await writer.appendSome()
    const { owner: name } = await look()
    const [owner, other] = name === 'a' ? [a, b] : [b, a]
    // Some time after a commit it is in the middle of the next page.
    const commit = owner.until('committed', undefined, owner.reports.length, 2_000)
    if (!(await commit.catch(() => undefined))) continue
    await setTimeout(10 + random.below(60))
    owner.signal('SIGSTOP')
    // A mark that it made before it stood still has to get here.
    await setTimeout(20)
    const stopped = await look()
    const [ownerBefore, otherBefore] = [owner.reports.length, other.reports.length]
    if (owner.isCommitting || stopped.owner !== owner.name) {
      // With the write lock in its hand it can't be taken over; and on a slow machine it may have been already.
      seen[owner.isCommitting ? 'stoppedInsideCommit' : 'changedHandsBefore']++
      owner.signal('SIGCONT')
      continue
    }
    const isNext = ({ epoch }: { epoch: number }) => epoch > stopped.epoch
    const { position } = await other.until('claimed', isNext, otherBefore)
    // Half of them come back before the new owner has committed anything: then only the epoch is in their way.
    if (seen.takeOvers % 2 === 1) await other.until('committed', (page) => page.position > position, otherBefore)
    owner.signal('SIGCONT')
    await owner.until('fenced', undefined, ownerBefore)
    const next = owner.reports.findIndex((report) => report.kind === 'claimed' && report.epoch > stopped.epoch)
    const late = owner.reports.slice(ownerBefore, next < 0 ? undefined : next)
    expect(late.filter((report) => report.kind === 'committed' && report.position > position)).toEqual([])
    seen.takeOvers++
  }
  const refusals = a.count('refused') + b.count('refused')
  const fenced = a.count('fenced') + b.count('fenced')
  console.log(JSON.stringify({ ...seen, refusals, fenced, events: writer.head }))
  // A page was at hand when it was stopped, and the store refused it.
  expect(refusals).toBeGreaterThan(rounds / 2)
  expect(fenced).toBeGreaterThanOrEqual(rounds)

  const last = (await look()).owner === 'a' ? a : b
  await (last === a ? b : a).stop()
  last.send('drain')
  await last.until('drained', undefined, 0, 60_000)
  await last.stop()
  const { problems } = await compareWithOracle(file, writer.written)
  expect(problems).toEqual([])

  async function look(): Promise<{ owner: string | undefined; epoch: number; behind: number }> {
    const state = await store.subscriptions.load('ledger', 0)
    if (!state) throw new Error('The subscription is not there.')
    return { owner: state.owner, epoch: state.epoch, behind: writer.head - state.checkpoint.position }
  }
})

test('two processes whose pages would take longer than the lease get on all the same', {
  timeout: 60_000,
}, async () => {
  const file = join(folder, 'slow.db')
  await using store = await createSqliteStore({ file })
  const writer = createWriter(store, seed)
  while (writer.head < 250) await writer.appendSome()
  // A full page would take 0.8 s.
  const settings = { file, lease: '300ms', pageEvents: 100, spinMs: 8 } as const
  await using a = new EngineProcess({ ...settings, name: 'a' })
  await using b = new EngineProcess({ ...settings, name: 'b' })
  for (const engine of [a, b]) engine.send('go')
  for (const engine of [a, b]) engine.send('drain')
  await Promise.all([a, b].map((engine) => engine.until('drained', undefined, 0, 40_000)))
  console.log(JSON.stringify({ events: writer.head, fenced: a.count('fenced') + b.count('fenced') }))
  await a.stop()
  await b.stop()
  expect((await compareWithOracle(file, writer.written)).problems).toEqual([])
})

test('when one process stops cleanly the other takes over at once', { timeout: 60_000 }, async () => {
  const file = join(folder, 'handover.db')
  await using store = await createSqliteStore({ file })
  const writer = createWriter(store, seed)
  for (let i = 0; i < 10; i++) await writer.appendSome()
  // With this lease, waiting for it to run out would be noticed.
  const settings = { file, lease: '60s', pageEvents: 20 } as const
  await using first = new EngineProcess({ ...settings, name: 'first' })
  await using second = new EngineProcess({ ...settings, name: 'second' })
  first.send('go')
  await first.until('committed')
  second.send('go')
  await second.until('ready')
  expect(second.count('claimed')).toBe(0)

  await first.stop()
  const stopped = performance.now()
  const { epoch } = await second.until('claimed')
  const waitedMs = performance.now() - stopped
  console.log(JSON.stringify({ waitedMs: Math.round(waitedMs) }))
  expect(epoch).toBe(2)
  expect(waitedMs).toBeLessThan(2_000)

  await writer.appendSome()
  second.send('drain')
  await second.until('drained')
  await second.stop()
  expect((await compareWithOracle(file, writer.written)).problems).toEqual([])
})

test('when one process is killed the other does not wait for its lease', { timeout: 60_000 }, async () => {
  const file = join(folder, 'killed.db')
  await using store = await createSqliteStore({ file })
  const writer = createWriter(store, seed)
  for (let i = 0; i < 10; i++) await writer.appendSome()
  const settings = { file, lease: '60s', pageEvents: 20 } as const
  await using first = new EngineProcess({ ...settings, name: 'first' })
  await using second = new EngineProcess({ ...settings, name: 'second' })
  first.send('go')
  await first.until('committed')
  second.send('go')
  await first.kill()
  await second.until('claimed', undefined, 0, 5_000)
  second.send('drain')
  await second.until('drained')
  await second.stop()
  expect((await compareWithOracle(file, writer.written)).problems).toEqual([])
})
