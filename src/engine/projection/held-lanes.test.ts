import { describe, expect, it } from 'vitest'
import { balances, createWorld } from '../../../test/fixtures.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import { defineProjection, defineSubscription, type Projection } from '../../index.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { whole } from '../../source/share.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import { claimed, commitOf } from '../../testing/contracts/fixtures.ts'
import { createScriptedSource } from '../../testing/source.ts'
import { type LaneBatch, loadLanes, processLanes } from './held-lanes.ts'
import type { Partition } from '../ownership/partition.ts'
import { RowCache } from '../ownership/row-cache.ts'

interface Stored {
  readonly lane: string
  readonly type?: string
  readonly amount?: number
  readonly body?: string
  readonly ending?: { readonly by: string; readonly reason: string }
}

/** Lanes that are parked with these letters, at the positions 1, 2, 3 and so on. */
async function parked(letters: readonly Stored[], consumer: Projection = balances) {
  const world = await createWorld()
  const { store } = world
  const { name, table } = consumer
  await store.subscriptions.register({ name, table, start: 0, partitions: 1 })
  const lease = claimed(
    await store.subscriptions.claim({ subscription: name, partition: 0, owner: 'me', leaseMs: 1_000 }),
  )
  const holds = new Map<string, HeldLane>()
  const held = letters.map(({ lane, type = 'Credited', amount = 1, body = JSON.stringify({ amount }), ending }, i) => {
    const position = i + 1
    const isHead = !holds.has(lane)
    if (isHead)
      holds.set(lane, { lane, status: 'parked', since: 1, done: undefined, head: position, headPosition: position })
    const time = '2026-01-01T00:00:00.000Z'
    const event: RecordedEvent = {
      position,
      id: `e${position}`,
      type,
      key: lane,
      version: position,
      schemaVersion: 1,
      time,
      body,
      metadata: undefined,
    }
    const status = isHead ? ('parked' as const) : ('queued' as const)
    return { lane, sequence: position, status, logged: false, event, failure: undefined, ...(ending && { ending }) }
  })
  const lanes = Array.from(holds.values(), (hold) => ({ lane: hold.lane, hold, done: undefined }))
  await store.subscriptions.commit({ ...commitOf(lease), table, held, lanes })
  const partition: Partition = {
    store,
    subscription: defineSubscription(consumer, consumer === balances ? { source: createScriptedSource() } : {}),
    share: whole,
    watchesGaps: false,
    doneBefore: 0,
    logged: false,
    held: new Map(holds),
    rows: new RowCache(store, consumer, false, 1_000_000),
    now: () => 500,
  }
  const take = async (batch: LaneBatch) => {
    const loaded = await loadLanes(partition, batch)
    return { loaded, outcome: await processLanes(partition, batch, loaded) }
  }
  return { partition, take, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

const batchOf = (lanes: readonly string[], more: Partial<LaneBatch> = {}): LaneBatch => ({
  lanes,
  tasks: new Map(),
  passed: [],
  limits: { events: 100, bytes: 1_000_000, perLane: 100 },
  singles: new Set(),
  ...more,
})
const task = (lane: string, act: RedriveTask['act'], position = 1): RedriveTask => ({
  redrive: 'r',
  lane,
  position,
  act,
  by: 'ann',
  reason: 'x',
  rate: undefined,
})
const tasks = (...all: RedriveTask[]) => new Map(all.map((one) => [one.lane, one]))

describe('the letters of held lanes', () => {
  it('are taken in order, each lane to its end', async () => {
    await using setup = await parked([
      { lane: 'a', amount: 1 },
      { lane: 'b', amount: 10 },
      { lane: 'a', amount: 2 },
      { lane: 'c', amount: 100 },
    ])
    const { loaded, outcome } = await setup.take(batchOf(['b', 'a']))
    expect(loaded.map(({ lane, items, next }) => [lane, items.map(({ record }) => record.position), next])).toEqual([
      ['b', [2], undefined],
      ['a', [1, 3], undefined],
    ])
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 3, held: -3 })
    expect(outcome.rows.map(({ key, json }) => [key, json])).toEqual([
      ['b', '{"balance":10,"seen":1}'],
      ['a', '{"balance":3,"seen":2}'],
    ])
    expect(outcome.released).toEqual(['b', 'a'])
  })

  it('stop at the first that fails, and the other lanes go on', async () => {
    await using setup = await parked([
      { lane: 'a' },
      { lane: 'a', type: 'Debited', amount: 99 },
      { lane: 'a' },
      { lane: 'b' },
    ])
    const { outcome } = await setup.take(batchOf(['a', 'b']))
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 2, held: -2 })
    expect(outcome.stopped).toMatchObject([{ lane: 'a', record: { position: 2 } }])
    expect(outcome.released).toEqual(['b'])
    expect(setup.partition.held.get('a')).toMatchObject({ status: 'parked', head: 2, headPosition: 2 })
  })

  it('go on with the next one when there was no room for all', async () => {
    await using setup = await parked([{ lane: 'a' }, { lane: 'a' }, { lane: 'a' }])
    const limits = { events: 2, bytes: 1_000_000, perLane: 2 }
    const { outcome } = await setup.take(batchOf(['a'], { limits }))
    expect(outcome.letters.at(-1)).toEqual({ change: 'status', position: 3, status: 'retrying' })
    expect([outcome.counts.applied, outcome.released]).toEqual([2, []])
    expect(setup.partition.held.get('a')).toMatchObject({ head: 3, headPosition: 3 })
  })

  it('are taken one by one where it must be clear who is to blame', async () => {
    await using setup = await parked([{ lane: 'a' }, { lane: 'a' }, { lane: 'b' }, { lane: 'b' }, { lane: 'c' }])
    const { loaded, outcome } = await setup.take(batchOf(['a', 'b', 'c'], { singles: new Set(['a', 'c']) }))
    expect(loaded.map(({ items, next }) => [items.length, next])).toEqual([
      [1, { sequence: 2, position: 2 }],
      [2, undefined],
      [1, undefined],
    ])
    expect(outcome.released).toEqual(['b', 'c'])
  })

  it('of no lane are none', async () => {
    await using setup = await parked([{ lane: 'a' }])
    const { loaded, outcome } = await setup.take(batchOf([], { passed: [task('z', 'redrive')] }))
    expect(loaded).toEqual([])
    expect(outcome.redriven).toEqual([{ redrive: 'r', lane: 'z', letters: 0, state: 'passed' }])
  })

  it('of which one is of a type that nobody is subscribed to any more are let go', async () => {
    await using setup = await parked([
      { lane: 'a', type: 'Renamed', body: '{"owner":"x"}' },
      { lane: 'b', type: 'Mystery' },
      { lane: 'c', body: 'no json' },
    ])
    const { outcome } = await setup.take(batchOf(['a', 'b', 'c']))
    expect(outcome.counts).toEqual({ ...noCounts(), filtered: 2, held: -2 })
    expect(outcome.stopped).toMatchObject([{ lane: 'c', failure: { rule: 'read' } }])
  })

  it('go to the row they turn out to be about', async () => {
    const own = defineProjection('own', {
      events: balances.events,
      key: () => 'x',
      initial: () => ({ n: 0 }),
      on: { Credited: ({ n }: { n: number }) => ({ n: n + 1 }) },
    }) as Projection
    await using setup = await parked([{ lane: 'a' }, { lane: 'b' }], own)
    const { outcome } = await setup.take(batchOf(['a', 'b']))
    expect(outcome.rows).toMatchObject([{ key: 'x', json: '{"n":2}' }])
  })
})

describe('what a person wants of a lane', () => {
  it.for([
    ['discard', 'discarded'],
    ['resolve', 'resolved'],
  ] as const)('by %s leaves out its head, and tries what is behind it', async ([act, change]) => {
    await using setup = await parked([
      { lane: 'a', type: 'Debited', amount: 99 },
      { lane: 'a', amount: 2 },
    ])
    const { outcome } = await setup.take(batchOf(['a'], { tasks: tasks(task('a', act)) }))
    expect(outcome.letters).toMatchObject([
      { change, position: 1 },
      { change: 'resolved', position: 2, by: 'engine' },
    ])
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 1, discarded: 1, held: -2 })
    expect(outcome.redriven).toEqual([{ redrive: 'r', lane: 'a', letters: 2, state: 'done' }])
  })

  it('by redrive tries all of it, and of no other lane', async () => {
    await using setup = await parked([{ lane: 'a' }, { lane: 'b', type: 'Debited', amount: 99 }])
    const { outcome } = await setup.take(batchOf(['a', 'b'], { tasks: tasks(task('a', 'redrive')) }))
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 1, held: -1 })
    expect(outcome.redriven).toEqual([{ redrive: 'r', lane: 'a', letters: 1, state: 'done' }])
  })

  it('was said in another version before: such letters are left out when their turn comes', async () => {
    await using setup = await parked([
      { lane: 'a' },
      { lane: 'a', type: 'Debited', amount: 99, ending: { by: 'bob', reason: 'a test' } },
      { lane: 'a', amount: 5 },
      { lane: 'b', ending: { by: 'bob', reason: '' } },
    ])
    const { outcome } = await setup.take(batchOf(['a', 'b']))
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 2, discarded: 2, held: -4 })
    expect(outcome.letters).toMatchObject([
      { change: 'resolved', position: 1 },
      { change: 'discarded', position: 2, ending: { by: 'bob', reason: 'a test' } },
      { change: 'resolved', position: 3 },
      { change: 'discarded', position: 4, ending: { by: 'bob', reason: '' } },
    ])
    expect(outcome.released).toEqual(['a', 'b'])
  })
})
