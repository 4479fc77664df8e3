import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Redrive, RedriveProgress, RedriveTask } from '../../redrive/redrive.ts'
import { whole } from '../../source/share.ts'
import type { LaneWrite } from '../../subscription/subscription-store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { LaneBatch } from './held-lanes.ts'
import { emptyOutcome } from '../outcome/ledger.ts'
import { HeldLaneBatches } from './held-lane-batches.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'

const limits = { lanes: 100, events: 1_000, bytes: 5_000 }

/** What is asked for by redrives, and how fast each of them may go. */
function releasing(rates: Record<string, number | undefined> = {}) {
  const runtime = createVirtualRuntime()
  const tasks: RedriveTask[] = []
  const asked: number[] = []
  const due = async (_name: string, _partition: number, limit: number) => {
    asked.push(limit)
    // The limit is for each of them.
    return [...Map.groupBy(tasks, ({ redrive }) => redrive).values()].flatMap((some) => some.slice(0, limit))
  }
  const find = async (id: string) => ({ id, rate: rates[id] }) as Redrive
  const advance = async () => undefined
  const parts = { store: { redrives: { advance, due, find } }, subscription: { name: 's' }, share: whole, runtime }
  const releases = new HeldLaneBatches(parts as unknown as WorkerParts)
  const held = new Map<string, HeldLane>()
  const hold = (lane: string, more: Partial<HeldLane> = {}) =>
    held.set(lane, { lane, status: 'retrying', since: 0, done: undefined, head: 1, headPosition: 1, ...more })
  /** Somebody asks for a lane that is parked. */
  const want = (lane: string, redrive = 'r', more: Partial<RedriveTask> = {}) => {
    if (!held.has(lane)) hold(lane, { status: 'parked' })
    const rate = rates[redrive]
    tasks.push({ redrive, lane, position: 1, act: 'redrive', by: 'ann', reason: 'x', rate, ...more })
    releases.redriving.hear()
  }
  const next = (more: Partial<typeof limits> = {}) => releases.next({ held }, { ...limits, ...more })
  return { runtime, releases, held, hold, want, tasks, asked, next }
}

/** What a commit did: lanes as they are now, and letters that were let go. */
function done(lanes: readonly HeldLane[], letters = 0, redriven: readonly RedriveProgress[] = []) {
  const writes = lanes.map((hold): LaneWrite => ({ lane: hold.lane, hold, done: undefined }))
  return { ...emptyOutcome, lanes: writes, counts: { ...noCounts(), held: -letters }, redriven }
}

const lanesOf = (batch: LaneBatch | undefined) => batch?.lanes

describe('what is let go', () => {
  it('is what is due by itself, and nothing else', async () => {
    const { releases, held, hold, next } = releasing()
    hold('a')
    hold('b', { status: 'parked' })
    hold('c', { status: 'waiting' })
    hold('d')
    releases.adopt(held)
    expect(releases.isDue).toBe(true)
    expect(await next()).toEqual({
      lanes: ['a', 'd'],
      tasks: new Map(),
      wholes: new Map(),
      passed: [],
      limits: { events: 1_000, bytes: 5_000, perLane: 500 },
      singles: new Set(),
    })
    releases.adopt(new Map())
    // Whoever reads anew what is held may have missed what was asked for.
    expect(releases.isDue).toBe(true)
    expect(await next()).toBeUndefined()
    expect(releases.isDue).toBe(false)
  })

  it('is no more than there is room for, and a few lanes with some letters rather than many with one', async () => {
    const { releases, held, hold, next } = releasing()
    for (let i = 0; i < 150; i++) hold(`lane-${i}`)
    releases.adopt(held)
    expect((await next({ lanes: 500 }))?.lanes).toHaveLength(100)
    expect((await next({ lanes: 3 }))?.lanes).toEqual(['lane-0', 'lane-1', 'lane-2'])
    expect(await next({ events: 45 })).toMatchObject({
      lanes: ['lane-0', 'lane-1', 'lane-2', 'lane-3', 'lane-4'],
      limits: { events: 45, perLane: 9 },
    })
    expect(await next({ lanes: 1, events: 1 })).toMatchObject({
      lanes: ['lane-0'],
      limits: { events: 1, perLane: 1 },
    })
  })

  it('goes behind the others when it has more, and is not due any more when it has not', async () => {
    const { releases, held, hold, next } = releasing()
    for (const lane of ['a', 'b', 'c']) hold(lane)
    releases.adopt(held)
    const parked = { ...(held.get('b') as HeldLane), status: 'parked' } as const
    releases.accept(done([held.get('a') as HeldLane, parked], 4), true)
    expect(lanesOf(await next())).toEqual(['c', 'a'])
    // A page makes lanes due as well.
    releases.accept(done([{ ...parked, status: 'retrying' }]), false)
    expect(lanesOf(await next())).toEqual(['c', 'a', 'b'])
    releases.accept({ ...emptyOutcome, lanes: [{ lane: 'c', hold: undefined, done: undefined }] }, true)
    expect(lanesOf(await next())).toEqual(['a', 'b'])
  })
})

describe('what a redrive is to begin', () => {
  it('goes with what is due, as far as there is room', async () => {
    const { releases, held, hold, want, asked, next } = releasing()
    hold('a')
    releases.adopt(held)
    for (const lane of ['b', 'c', 'd']) want(lane)
    const batch = await next({ lanes: 3 })
    expect(lanesOf(batch)).toEqual(['a', 'b', 'c'])
    expect([...(batch?.tasks.keys() ?? [])]).toEqual(['b', 'c'])
    expect(asked).toEqual([2])
    for (const lane of ['e', 'f', 'g']) want(lane, 'another')
    expect(lanesOf(await next({ lanes: 3 }))).toEqual(['a', 'b', 'c'])
    asked.pop()
    // There is no room, so nobody is asked.
    await next({ lanes: 1 })
    expect(asked).toEqual([2])
  })

  it('is passed over when it does not stand where it stood', async () => {
    const { releases, held, hold, want, next } = releasing()
    hold('moved', { status: 'parked', headPosition: 2 })
    hold('waits', { status: 'waiting' })
    releases.adopt(held)
    for (const lane of ['gone', 'moved', 'waits', 'stands']) want(lane)
    held.delete('gone')
    const batch = await next()
    expect(batch).toMatchObject({ lanes: ['stands'] })
    expect(batch?.passed.map(({ lane }) => lane)).toEqual(['gone', 'moved', 'waits'])
    want('skipped', 'r', { act: 'skip' })
    hold('skipped', { status: 'waiting' })
    expect(lanesOf(await next())).toEqual(['stands', 'skipped'])
  })

  it('is told of also when nothing else is to be done', async () => {
    const { releases, want, held, asked, next } = releasing()
    want('gone')
    held.clear()
    expect(await next()).toMatchObject({
      lanes: [],
      passed: [{ lane: 'gone' }],
      limits: { events: 1_000, perLane: 1_000 },
    })
    // The redrive may be over with that, and somebody has to find out.
    expect(releases.isDueNow(held)).toBe(true)
    await next()
    expect(asked).toHaveLength(2)
  })

  it('is asked for again when something of a redrive has come to an end, and not before', async () => {
    const { releases, asked, next, held } = releasing()
    expect(releases.isDueNow(held)).toBe(true)
    await next()
    expect([releases.isDue, releases.nextAt(held), releases.isDueNow(held)]).toEqual([false, undefined, false])
    await next()
    expect(asked).toHaveLength(1)
    const progress = { redrive: 'r', lane: 'a', letters: 1 }
    releases.accept(done([], 1, [{ ...progress, state: 'running' }]), true)
    expect(releases.isDue).toBe(false)
    releases.accept(
      done([], 1, [
        { ...progress, state: 'running' },
        { ...progress, state: 'failed' },
      ]),
      false,
    )
    expect(releases.isDue).toBe(true)
    await next()
    expect(asked).toHaveLength(2)
  })
})

describe('the pace of a redrive', () => {
  it('is kept by those it has begun: no more letters than it may have, and none before their time', async () => {
    const { runtime, releases, held, want, tasks, next } = releasing({ slow: 2 })
    want('a', 'slow')
    want('b', 'slow')
    const first = await next()
    expect(first).toMatchObject({ lanes: ['a'], limits: { events: 1, perLane: 1 } })
    tasks.length = 0
    for (const lane of ['a', 'b'])
      held.set(lane, { ...(held.get(lane) as HeldLane), status: 'retrying', redrive: 'slow' })
    releases.accept(done([...held.values()], 1), true)
    expect(await next()).toBeUndefined()
    expect([releases.isDue, releases.nextAt(held), releases.isDueNow(held)]).toEqual([true, 500, false])
    await runtime.advance(499)
    expect(await next()).toBeUndefined()
    expect(releases.isDueNow(held)).toBe(false)
    await runtime.advance(1)
    expect([releases.nextAt(held), releases.isDueNow(held)]).toEqual([500, true])
    expect(lanesOf(await next())).toEqual(['a'])
  })

  it('counts what failed as tried, and what a page held not at all', async () => {
    const { runtime, releases, held, want, tasks, next } = releasing({ quick: 8 })
    want('a', 'quick')
    await next()
    tasks.length = 0
    held.set('a', { ...(held.get('a') as HeldLane), status: 'retrying', redrive: 'quick' })
    await runtime.advance(1_000)
    releases.accept(done([...held.values()]), true)
    expect(await next()).toMatchObject({ limits: { events: 2 } })
    // One was let go, one failed: nothing is left of the two.
    const stopped = [{ lane: 'a', status: 'parked', record: {}, failure: undefined }]
    releases.accept({ ...done([...held.values()], 1), stopped } as never, true)
    expect(releases.nextAt(held)).toBe(1_125)
    releases.accept({ ...emptyOutcome, counts: { ...noCounts(), held: 5 } }, false)
    expect(releases.nextAt(held)).toBe(1_125)
    await runtime.advance(1_000)
    releases.accept({ ...done([...held.values()]), counts: { ...noCounts(), held: 5 } }, false)
    expect(await next()).toMatchObject({ limits: { events: 2 } })
  })

  it('keeps those together that have the same one', async () => {
    const { releases, held, hold, want, next } = releasing({ slow: 1, other: 1 })
    hold('free')
    releases.adopt(held)
    want('a', 'slow')
    want('b', 'fast')
    expect(lanesOf(await next())).toEqual(['free', 'b'])
    held.delete('free')
    releases.accept({ ...emptyOutcome, lanes: [{ lane: 'free', hold: undefined, done: undefined }] }, true)
    want('c', 'slow')
    want('d', 'other')
    const batch = await next({ lanes: 10 })
    expect([...(batch?.tasks.keys() ?? [])]).toEqual(['a', 'c'])
  })

  it('of one that must wait keeps nobody asking until it may go on', async () => {
    const { runtime, releases, held, want, asked, next } = releasing({ slow: 2, slower: 1 })
    want('a', 'slow')
    await next()
    releases.accept(done([], 1), true)
    want('b', 'slow')
    expect(await next()).toBeUndefined()
    expect([asked.length, releases.nextAt(held)]).toEqual([2, 500])
    await runtime.advance(499)
    expect([await next(), asked.length]).toEqual([undefined, 2])
    await runtime.advance(1)
    expect(lanesOf(await next())).toEqual(['a'])
    expect(asked).toHaveLength(3)
  })

  it('of one that another process had begun is learned, once', async () => {
    const { releases, held, hold, next } = releasing({ slow: 2 })
    hold('a', { redrive: 'slow' })
    hold('b', { redrive: 'slow' })
    hold('c')
    releases.adopt(held)
    // The first says how fast the others of its batch go.
    expect(await next()).toMatchObject({ lanes: ['a'], limits: { events: 1 } })
    releases.accept(done([held.get('a') as HeldLane], 1), true)
    expect(lanesOf(await next())).toEqual(['c'])
  })

  it('that comes first says when there is something to do', async () => {
    const { releases, held, hold, next } = releasing({ slow: 2, slower: 1 })
    hold('a', { redrive: 'slower' })
    hold('b', { redrive: 'slow' })
    releases.adopt(held)
    for (const lane of ['a', 'b']) {
      expect(lanesOf(await next())).toEqual([lane])
      releases.accept(done([held.get(lane) as HeldLane], 1), true)
    }
    expect(releases.nextAt(held)).toBe(500)
  })

  it('does not hold up what is due without one', async () => {
    const { releases, held, hold, next } = releasing({ slow: 2 })
    hold('a', { redrive: 'slow' })
    releases.adopt(held)
    await next()
    releases.accept(done([held.get('a') as HeldLane], 1), true)
    expect(releases.nextAt(held)).toBe(500)
    hold('b')
    releases.accept(done([held.get('b') as HeldLane]), false)
    expect(releases.nextAt(held)).toBe(0)
    expect(lanesOf(await next())).toEqual(['b'])
  })
})

describe('a batch that the database refuses', () => {
  it('is tried with fewer lanes and one letter of who was refused, and only then is that one to blame', async () => {
    const { releases, held, hold, next } = releasing()
    for (let i = 0; i < 100; i++) hold(`lane-${i}`)
    releases.adopt(held)
    const first = (await next()) as LaneBatch
    expect(releases.reject(first, 'lane-1')).toBeUndefined()
    // A page that goes through says nothing about lanes.
    releases.accept(emptyOutcome, false)
    const second = (await next()) as LaneBatch
    expect(second.lanes).toHaveLength(25)
    expect(second.singles).toEqual(new Set(['lane-1']))
    expect(releases.reject(second, 'lane-1')).toBe('lane-1')
    expect(lanesOf(await next())).toHaveLength(6)
    releases.reject(first, 'lane-1')
    releases.reject(first, 'lane-1')
    expect(lanesOf(await next())).toHaveLength(1)
    // It is through: the others go on as before, step by step.
    releases.accept(done([{ ...(held.get('lane-1') as HeldLane), status: 'parked' }], 0), true)
    const after = (await next()) as LaneBatch
    expect([after.lanes.length, after.singles.size]).toEqual([2, 0])
    for (let i = 0; i < 9; i++) releases.accept(done([], 1), true)
    expect(lanesOf(await next())).toHaveLength(99)
  })

  it('keeps whom it has refused apart for as long as it has letters', async () => {
    const { releases, held, hold, next } = releasing()
    hold('a')
    releases.adopt(held)
    releases.reject((await next()) as LaneBatch, 'a')
    releases.accept(done([held.get('a') as HeldLane], 1), true)
    expect((await next())?.singles).toEqual(new Set(['a']))
    // Where it flows, nothing is known against it.
    releases.accept({ ...emptyOutcome, lanes: [{ lane: 'a', hold: undefined, done: undefined }] }, false)
    expect((await next())?.singles ?? new Set()).toEqual(new Set())
  })

  it('is taken one lane at a time when it is not clear whose row it is', async () => {
    const { releases, held, hold, next } = releasing()
    for (const lane of ['a', 'b', 'c']) hold(lane)
    releases.adopt(held)
    const first = (await next()) as LaneBatch
    expect(releases.reject(first, 'elsewhere')).toBeUndefined()
    const second = (await next()) as LaneBatch
    expect([second.lanes, second.singles]).toEqual([['a'], new Set(['a'])])
    expect(releases.reject(first, 'elsewhere')).toBeUndefined()
    expect(releases.reject(second, 'elsewhere')).toBe('a')
    expect(releases.reject({ ...second, lanes: [] }, 'elsewhere')).toBeUndefined()
  })
})
