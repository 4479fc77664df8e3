import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld } from '../../../test/fixtures.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import { StoreError } from '../../errors.ts'
import type { Event, RecordedEvent } from '../../event/event.ts'
import { describeFailure } from '../../failure/failure.ts'
import { defineProjection } from '../../index.ts'
import { defineSqlProjection } from '../../sqlite/index.ts'
import type { Reducer } from '../../projection/projection.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { whole } from '../../source/share.ts'
import { type Counts, noCounts } from '../../subscription/checkpoint.ts'
import { defineSubscription } from '../../subscription/subscription.ts'
import { createScriptedSource } from '../../testing/source.ts'
import type { Partition } from '../ownership/partition.ts'
import { RowCache } from '../ownership/row-cache.ts'
import { functionOf, GuiltyEvent, type Item, noRefusals, type Performing, type Refusals, Work } from './work.ts'

const journal = defineSqlProjection('journal', { events: bank, on: { Credited: () => undefined } })
const totals = defineProjection('totals', {
  events: bank,
  key: () => 'x',
  initial: () => ({ total: 0 }),
  on: { Credited: (row, { data }) => ({ total: row.total + data.amount }) },
})

interface Kind {
  readonly consumer?: typeof balances | typeof journal | typeof totals
  readonly watchesGaps?: boolean
  readonly held?: readonly HeldLane[]
  readonly refusals?: Refusals
}

/** Some work in a partition with the rows `a`, `b` and `x` at hand, none of which is in the store. */
async function atWork({ consumer = balances, watchesGaps = false, held = [], refusals = noRefusals }: Kind = {}) {
  const world = await createWorld()
  const { name, table } = consumer
  await world.store.subscriptions.register({ name, table, start: 0, partitions: 1 })
  const rows = new RowCache(world.store, consumer, watchesGaps, 1_000_000)
  await rows.load(['a', 'b', 'x'])
  const source = watchesGaps ? createScriptedSource() : undefined
  const partition: Partition = {
    store: world.store,
    subscription: defineSubscription(consumer, source ? { source } : {}),
    share: whole,
    watchesGaps,
    doneBefore: 0,
    logged: !watchesGaps,
    held: new Map(held.map((hold) => [hold.lane, hold])),
    rows,
    now: () => 500,
  }
  const work = new Work(partition, refusals)
  const present = new Set<string>()
  return {
    partition,
    rows,
    work,
    take: (one: Item) => work.take(one, present),
    /** All that is not as it was at first, without the events that the counts count. */
    changes: () =>
      Object.fromEntries(Object.entries({ ...work.outcome(), applied: [] }).filter(([, part]) => !isNothing(part))),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

function isNothing(part: Counts | readonly unknown[] | string | undefined): boolean {
  if (part === undefined || typeof part === 'string') return part === undefined
  return Array.isArray(part) ? part.length === 0 : Object.values(part).every((count) => count === 0)
}

const counted = (counts: Partial<Counts>) => ({ ...noCounts(), ...counts })

function recorded(position: number, { version = position, type = 'Credited', key = 'a', id = `e${position}` } = {}) {
  const time = '2026-01-01T00:00:00.000Z'
  return { position, id, type, key, version, schemaVersion: 1, time, body: '{}', metadata: undefined } as RecordedEvent
}

/** An event with its reading. A debit is poison: there is nothing to take it from. */
function item(record: RecordedEvent, more: Partial<Item> & { readonly amount?: number } = {}): Item {
  const { amount = record.position, ...rest } = more
  const { id, type, key, version, time } = record
  const event = { id, type, key, version, time, data: { amount }, metadata: {} } as Event
  const apply = balances.reducers.get(type)
  return { record, lane: key, apply, reading: { lane: key, event }, folding: undefined, ...rest }
}

/** One that is not subscribed to. */
const passed = (record: RecordedEvent): Item => item(record, { apply: undefined, reading: undefined })
const poison = { rule: 'fold', class: 'permanent', errorType: 'RangeError' }
const parked = (position: number, more: Partial<HeldLane> = {}): HeldLane => ({
  lane: 'a',
  status: 'parked',
  since: 1,
  done: undefined,
  head: position,
  headPosition: position,
  ...more,
})
const task = (more: Partial<RedriveTask> = {}): RedriveTask => ({
  redrive: 'r',
  lane: 'a',
  position: 1,
  act: 'redrive',
  by: 'ann',
  reason: 'fixed',
  rate: undefined,
  ...more,
})
const revision = { number: 1, body: '{"amount":7}', by: 'ann', reason: 'a word', at: 3 }

describe('an event of the source', () => {
  it('is applied to its row, and that is all that is written', async () => {
    await using setup = await atWork()
    setup.take(item(recorded(1)))
    setup.take(item(recorded(2)))
    expect(setup.changes()).toEqual({
      counts: counted({ applied: 2 }),
      rows: [{ key: 'a', version: 2, position: 2, json: '{"balance":3,"seen":2}', columns: [3] }],
    })
  })

  it('that changes nothing, or is not subscribed to, has no row to write', async () => {
    await using setup = await atWork()
    setup.take(item(recorded(1), { apply: ((row) => row) as Reducer }))
    // The row that `initial` made is in memory only when something was made of it.
    setup.take(passed(recorded(2)))
    expect(setup.changes()).toMatchObject({ counts: { applied: 1, filtered: 1 } })
    expect(setup.rows.get('a')?.done).toBe(2)
    expect(setup.changes()['lanes']).toBeUndefined()
  })

  it('that is poison holds its lane, and the next one queues behind it', async () => {
    await using setup = await atWork()
    const [first, second] = [recorded(1, { type: 'Debited' }), recorded(2)]
    setup.take(item(first))
    setup.take(item(second))
    const held = { lane: 'a', logged: true }
    expect(setup.changes()).toStrictEqual({
      counts: counted({ held: 2 }),
      lanes: [{ lane: 'a', hold: parked(1, { since: 500 }), done: undefined }],
      held: [
        { ...held, sequence: 1, status: 'parked', event: first, failure: expect.objectContaining(poison) },
        { ...held, sequence: 2, status: 'queued', event: second, failure: undefined },
      ],
      stopped: [{ lane: 'a', status: 'parked', record: first, failure: expect.objectContaining(poison) }],
    })
  })

  it('that was refused before is not tried', async () => {
    const refusal = describeFailure(new Error('no'), 'permanent', 'row')
    await using setup = await atWork({ refusals: new Map([[1, refusal]]) })
    setup.take(item(recorded(1), { apply: undefined, reading: undefined }))
    setup.take(item(recorded(2, { key: 'b' })))
    expect(setup.changes()).toMatchObject({ counts: { applied: 1, filtered: 1 } })
    await using other = await atWork({ refusals: new Map([[1, refusal]]) })
    other.take(item(recorded(1)))
    expect(other.changes()).toMatchObject({ counts: { applied: 0, held: 1 }, held: [{ failure: refusal }] })
  })

  it('that can not be read holds its lane for that', async () => {
    await using setup = await atWork()
    const failure = describeFailure(new Error('no'), 'permanent', 'read')
    setup.take(item(recorded(1), { reading: { lane: 'a', failure } }))
    setup.take(item(recorded(2, { key: 'b' }), { apply: undefined, reading: { lane: 'b', failure } }))
    expect(setup.changes()).toMatchObject({ counts: { held: 2, filtered: 0 }, held: [{ failure }, { failure }] })
  })

  it('in a form that a person gave it leaves a letter that says so, whatever becomes of it', async () => {
    await using setup = await atWork()
    const [first, second] = [recorded(1), recorded(2, { type: 'Debited' })]
    setup.take(item(first, { revision }))
    setup.take(item(second, { revision, amount: 100 }))
    expect(setup.changes()).toMatchObject({ counts: { applied: 1, held: 1 } })
    expect(setup.work.outcome().held).toStrictEqual([
      { lane: 'a', sequence: 1, status: 'resolved', logged: true, event: first, failure: undefined, revision },
      {
        lane: 'a',
        sequence: 2,
        status: 'parked',
        logged: true,
        event: second,
        failure: expect.objectContaining(poison),
        revision,
      },
    ])
  })

  it('that a person left out in another version is left out here, and stands in nobody’s way', async () => {
    await using setup = await atWork()
    const record = recorded(1)
    const ending = { by: 'ann', reason: 'a test' }
    setup.work.discard(record, 'a', ending)
    expect(setup.changes()).toStrictEqual({
      counts: counted({ discarded: 1 }),
      held: [{ lane: 'a', sequence: 1, status: 'discarded', logged: true, event: record, failure: undefined, ending }],
    })
  })
})

describe('where versions are watched', () => {
  const watching = { watchesGaps: true }

  it('how far a lane is, is written where its row does not tell', async () => {
    await using setup = await atWork(watching)
    setup.take(item(recorded(1)))
    setup.take(passed(recorded(2, { version: 1, key: 'b' })))
    expect(setup.changes()).toMatchObject({ lanes: [{ lane: 'b', hold: undefined, done: 1 }], rows: [{ key: 'a' }] })
    setup.take(passed(recorded(3, { version: 2 })))
    expect(setup.work.outcome().lanes).toEqual([
      { lane: 'a', hold: undefined, done: 2 },
      { lane: 'b', hold: undefined, done: 1 },
    ])
  })

  it('a lane waits for what is missing, whatever comes behind it, and the lowest that waits is its head', async () => {
    await using setup = await atWork(watching)
    setup.take(item(recorded(1)))
    for (const [position, version] of [
      [2, 5],
      [3, 4],
      [4, 6],
    ] as const)
      setup.take(item(recorded(position, { version })))
    const waiting = { lane: 'a', status: 'waiting', since: 500, done: 1 }
    expect(setup.changes()).toMatchObject({
      counts: counted({ applied: 1, held: 3 }),
      lanes: [{ lane: 'a', hold: { ...waiting, head: 4, headPosition: 3 }, done: 1 }],
      letters: [{ change: 'status', position: 2, status: 'queued' }],
      stopped: [{ lane: 'a', status: 'waiting', record: { position: 2 }, failure: undefined }],
    })
    expect(setup.work.outcome().held.map(({ sequence, status }) => [sequence, status])).toEqual([
      [5, 'waiting'],
      [4, 'waiting'],
      [6, 'queued'],
    ])
    // Another one that claims the version of the head is behind it.
    setup.take(item(recorded(5, { version: 4, id: 'other' })))
    expect(setup.partition.held.get('a')).toMatchObject({ head: 4, headPosition: 3 })
    expect(setup.work.outcome().held.at(-1)).toMatchObject({ status: 'queued' })
  })

  it('the last that was missing lets the lane go', async () => {
    const hold = parked(9, { status: 'waiting', head: 4, done: 1 })
    await using setup = await atWork({ ...watching, held: [hold] })
    setup.take(item(recorded(10, { version: 2 })))
    expect(setup.work.outcome()).toMatchObject({ letters: [], lanes: [{ hold: { ...hold, done: 2 }, done: 2 }] })
    setup.take(item(recorded(11, { version: 3 })))
    expect(setup.work.outcome()).toMatchObject({
      counts: counted({ applied: 2 }),
      letters: [{ change: 'status', position: 9, status: 'retrying' }],
      lanes: [{ hold: { ...hold, done: 3, status: 'retrying' }, done: 3 }],
    })
  })

  it('what was missing is the new head when it is poison, and what waited is behind it', async () => {
    const hold = parked(9, { status: 'waiting', head: 3, done: 1 })
    await using setup = await atWork({ ...watching, held: [hold] })
    setup.take(item(recorded(10, { version: 2, type: 'Debited' })))
    expect(setup.changes()).toMatchObject({
      letters: [{ change: 'status', position: 9, status: 'queued' }],
      lanes: [{ hold: { status: 'parked', head: 2, headPosition: 10, done: 1, since: 1 }, done: 1 }],
    })
  })

  it('what is held already is a duplicate, from the store or from the same page', async () => {
    const hold = parked(9, { head: 2, done: 1 })
    await using setup = await atWork({ ...watching, held: [hold] })
    setup.take(item(recorded(10, { version: 3, id: 'twice' })))
    setup.take(item(recorded(11, { version: 3, id: 'twice' })))
    setup.take(item(recorded(12, { version: 1 })))
    expect(setup.changes()).toMatchObject({ counts: { held: 1, duplicate: 2 } })
    const poisoned = recorded(13, { version: 1, key: 'b', type: 'Debited', id: 'poison' })
    setup.take(item(poisoned))
    setup.take(item({ ...poisoned, position: 14 }))
    expect(setup.changes()).toMatchObject({ counts: { held: 2, duplicate: 3 } })
    expect(setup.work.outcome().held).toHaveLength(2)
    expect(setup.partition.held.get('a')).toEqual(hold)
  })

  it('what comes late to a lane that is parked never takes the place of its head', async () => {
    const hold = parked(9, { head: 5, done: 1 })
    await using setup = await atWork({ ...watching, held: [hold] })
    setup.take(item(recorded(10, { version: 3 })))
    expect(setup.changes()).toMatchObject({ held: [{ status: 'queued', sequence: 3 }] })
    expect(setup.partition.held.get('a')).toEqual(hold)
  })
})

describe('a letter whose turn has come', () => {
  it('is applied, and ends the hold of its lane when nothing is behind it', async () => {
    await using setup = await atWork({ held: [parked(1, { status: 'retrying' })] })
    setup.work.begin(undefined)
    expect(await setup.work.release(item(recorded(1), { folding: setup.rows.get('a') }))).toBe(true)
    setup.work.ledger.advance('a', undefined)
    expect(setup.changes()).toMatchObject({
      counts: counted({ applied: 1, held: -1 }),
      letters: [{ change: 'resolved', position: 1, by: 'engine' }],
      lanes: [{ lane: 'a', hold: undefined, done: undefined }],
      released: ['a'],
    })
    expect(setup.changes()).not.toHaveProperty('redriven')
    expect(setup.partition.held.size).toBe(0)
  })

  it('hands over to the next one', async () => {
    await using setup = await atWork({ held: [parked(1)] })
    setup.work.begin(task())
    await setup.work.release(item(recorded(1), { folding: setup.rows.get('a') }))
    setup.work.ledger.advance('a', { sequence: 8, position: 80 })
    expect(setup.changes()).toMatchObject({
      letters: [
        { change: 'resolved', position: 1 },
        { change: 'status', position: 80, status: 'retrying' },
      ],
      lanes: [{ hold: { status: 'retrying', head: 8, headPosition: 80, redrive: 'r', since: 1 } }],
      redriven: [{ redrive: 'r', lane: 'a', letters: 1, state: 'running' }],
    })
    expect(setup.changes()).not.toHaveProperty('released')
  })

  it('that fails is parked again, and its lane goes no further', async () => {
    await using setup = await atWork({ held: [parked(1)] })
    setup.work.begin(task())
    const row = { folding: setup.rows.get('a') }
    expect(await setup.work.release(item(recorded(1), row))).toBe(true)
    const second = recorded(2, { type: 'Debited' })
    expect(await setup.work.release(item(second, { ...row, amount: 100 }))).toBe(false)
    const failure = expect.objectContaining(poison)
    expect(setup.changes()).toMatchObject({
      counts: counted({ applied: 1, held: -1 }),
      letters: [{ change: 'resolved' }, { change: 'failed', position: 2, status: 'parked', failure }],
      lanes: [{ hold: { status: 'parked', since: 1, head: 2, headPosition: 2, redrive: undefined } }],
      redriven: [{ redrive: 'r', lane: 'a', letters: 1, state: 'failed' }],
      stopped: [{ lane: 'a', status: 'parked', record: second, failure }],
    })
  })

  it('begins a lane anew for each redrive, and counts what it ends by lane', async () => {
    await using setup = await atWork({ held: [parked(1), parked(5, { lane: 'b', done: 2 })] })
    setup.work.begin(task())
    await setup.work.release(item(recorded(1), { folding: setup.rows.get('a') }))
    setup.work.ledger.advance('a', undefined)
    setup.work.begin(task({ lane: 'b', position: 5 }))
    expect(setup.partition.held.get('b')).toEqual(parked(5, { lane: 'b', status: 'retrying', redrive: 'r', done: 2 }))
    setup.work.ledger.advance('b', undefined)
    setup.work.ledger.notStarted(task({ lane: 'c' }))
    expect(setup.work.outcome().redriven).toEqual([
      { redrive: 'r', lane: 'a', letters: 1, state: 'done' },
      { redrive: 'r', lane: 'b', letters: 0, state: 'done' },
      { redrive: 'r', lane: 'c', letters: 0, state: 'passed' },
    ])
  })

  it('waits when the version before it is missing, and applies nothing', async () => {
    const hold = parked(9, { status: 'retrying', head: 2, done: 1, redrive: 'r' })
    await using setup = await atWork({ watchesGaps: true, held: [hold] })
    const row = { folding: setup.rows.get('a') }
    expect(await setup.work.release(item(recorded(9, { version: 2 }), row))).toBe(true)
    expect(await setup.work.release(item(recorded(7, { version: 4 }), row))).toBe(false)
    expect(setup.changes()).toMatchObject({
      counts: counted({ applied: 1, held: -1 }),
      letters: [
        { change: 'resolved', position: 9 },
        { change: 'status', position: 7, status: 'waiting' },
      ],
      lanes: [{ hold: { status: 'waiting', head: 4, headPosition: 7, done: 2, redrive: undefined }, done: 2 }],
      redriven: [{ letters: 1, state: 'done' }],
    })
    expect(setup.changes()).not.toHaveProperty('stopped')
  })

  it('whose version was done meanwhile is a duplicate', async () => {
    const hold = parked(9, { status: 'retrying', head: 2, done: 2 })
    await using setup = await atWork({ watchesGaps: true, held: [hold] })
    const row = { folding: setup.rows.get('a') }
    expect(await setup.work.release(item(recorded(9, { version: 2 }), row))).toBe(true)
    expect(await setup.work.release(item(recorded(10, { version: 3 }), row))).toBe(true)
    expect(setup.work.outcome()).toMatchObject({
      counts: counted({ applied: 1, duplicate: 1, held: -2 }),
      letters: [
        { change: 'resolved', position: 9 },
        { change: 'resolved', position: 10 },
      ],
    })
    expect(setup.partition.held.get('a')).toMatchObject({ done: 3 })
  })

  it('without versions to watch is never a duplicate, and never waits', async () => {
    await using setup = await atWork({ held: [parked(3, { status: 'retrying', done: 3 })] })
    const row = { folding: setup.rows.get('a') }
    expect(await setup.work.release(item(recorded(3), row))).toBe(true)
    expect(await setup.work.release(item(recorded(9), row))).toBe(true)
    expect(setup.changes()).toMatchObject({ counts: { applied: 2, duplicate: 0, held: -2 } })
  })

  it('that turns out to be about another row is applied there, unless that lane is held', async () => {
    const own = { consumer: totals, held: [parked(1)] } as const
    await using setup = await atWork(own)
    const apply = totals.reducers.get('Credited') as Reducer
    setup.work.begin(task())
    expect(await setup.work.release(item(recorded(1), { apply, folding: setup.rows.get('x') }))).toBe(true)
    expect(setup.changes()).toMatchObject({ rows: [{ key: 'x', json: '{"total":1}' }] })

    await using behind = await atWork({ ...own, held: [parked(1), parked(2, { lane: 'x' })] })
    behind.work.begin(task())
    expect(await behind.work.release(item(recorded(1), { apply, folding: behind.rows.get('x') }))).toBe(false)
    expect(behind.changes()).toMatchObject({ letters: [{ failure: { code: 'LANE_HELD' } }] })
    // Its own lane is held, of course.
    behind.work.begin(task({ lane: 'x' }))
    const first = recorded(2, { key: 'x' })
    expect(await behind.work.release(item(first, { apply, folding: behind.rows.get('x') }))).toBe(true)
  })
})

describe('what a person leaves out', () => {
  it.for(['discard', 'resolve'] as const)('by %s ends as that, and is counted', async (act) => {
    await using setup = await atWork({ held: [parked(1)] })
    setup.work.begin(task({ act }))
    setup.work.leaveOut(item(recorded(1)), task({ act }), act)
    setup.work.ledger.advance('a', undefined)
    const ending = { by: 'ann', reason: 'fixed' }
    expect(setup.changes()).toEqual({
      counts: counted({ held: -1, discarded: 1 }),
      letters: [
        act === 'discard'
          ? { change: 'discarded', position: 1, ending }
          : { change: 'resolved', position: 1, ...ending },
      ],
      lanes: [{ lane: 'a', hold: undefined, done: undefined }],
      released: ['a'],
      redriven: [{ redrive: 'r', lane: 'a', letters: 1, state: 'done' }],
    })
  })

  it('is done with in its row, also where another was further', async () => {
    await using setup = await atWork({ held: [parked(3)] })
    const folding = setup.rows.get('a')
    setup.work.begin(undefined)
    setup.work.leaveOut(item(recorded(3), { folding }), { by: 'ann', reason: '' })
    expect(folding?.done).toBe(3)
    setup.work.leaveOut(item(recorded(4, { version: 2 }), { folding }), { by: 'ann', reason: '' })
    expect(folding?.done).toBe(3)
    expect(setup.changes()['letters']).toMatchObject([{ change: 'discarded' }, { change: 'discarded' }])
    expect(setup.changes()).not.toHaveProperty('lanes')
  })

  it('makes no gap, where versions are watched', async () => {
    await using setup = await atWork({ watchesGaps: true, held: [parked(9, { head: 2, done: 1 })] })
    setup.work.begin(task({ act: 'discard' }))
    setup.work.leaveOut(item(recorded(9, { version: 2 }), { folding: setup.rows.get('a') }), task())
    expect(setup.partition.held.get('a')).toMatchObject({ done: 2, redrive: 'r' })
    setup.work.leaveOut(item(recorded(8, { version: 1 }), { folding: setup.rows.get('a') }), task())
    expect(setup.partition.held.get('a')).toMatchObject({ done: 2 })
    setup.work.ledger.advance('a', undefined)
    expect(setup.work.outcome().lanes).toEqual([{ lane: 'a', hold: undefined, done: 2 }])
  })

  it('without a version stays as it is', async () => {
    await using setup = await atWork({ consumer: totals, held: [parked(9)] })
    const folding = setup.rows.get('a')
    setup.work.leaveOut(item(recorded(9), { folding }), { by: 'ann', reason: '' })
    expect(folding?.done).toBeUndefined()
    expect(setup.changes()).not.toHaveProperty('lanes')
  })

  it('is a version that never comes, when it is skipped', async () => {
    await using setup = await atWork({ watchesGaps: true, held: [parked(9, { status: 'waiting', head: 4, done: 1 })] })
    setup.work.begin(task({ act: 'skip' }))
    expect(setup.partition.held.get('a')).toMatchObject({ status: 'retrying', done: 3, head: 4, headPosition: 9 })
    expect(await setup.work.release(item(recorded(9, { version: 4 }), { folding: setup.rows.get('a') }))).toBe(true)
  })
})

describe('in SQL of the user’s own', () => {
  const performing = (way: Performing['way'], seen: unknown[] = []): Performing => {
    const run = (name: string) => async (effect: () => unknown) => {
      seen.push(name)
      await effect()
    }
    return { way, tx: { handle: 'handle', run: run('run'), attempt: run('attempt') } }
  }
  const doing = (effect: (event: Event, tx: unknown) => unknown): Partial<Item> => ({ apply: effect })

  it.for([
    ['bold', 'run'],
    ['careful', 'attempt'],
  ] as const)('an event is performed, %sly', async ([way, method]) => {
    await using setup = await atWork({ consumer: journal })
    const seen: unknown[] = []
    const tell = doing((event, tx) => seen.push(event.id, tx))
    await setup.work.perform(item(recorded(1), tell), performing(way, seen))
    await setup.work.perform(item(recorded(2), { apply: undefined, reading: undefined }), performing(way, seen))
    await setup.work.perform(item(recorded(3), { ...tell, revision }), performing(way, seen))
    expect(seen).toEqual([method, 'e1', 'handle', method, 'e3', 'handle'])
    expect(setup.changes()).toMatchObject({ counts: counted({ applied: 2, filtered: 1 }) })
    expect(setup.work.outcome().held).toMatchObject([{ sequence: 3, status: 'resolved', revision }])
  })

  it('queues behind what is held, and is not tried', async () => {
    await using setup = await atWork({ consumer: journal, held: [parked(1)] })
    const seen: unknown[] = []
    await setup.work.perform(
      item(
        recorded(2),
        doing(() => seen.push(1)),
      ),
      performing('bold', seen),
    )
    expect(seen).toEqual([])
    expect(setup.changes()).toMatchObject({ counts: { held: 1 }, held: [{ status: 'queued', sequence: 2 }] })
  })

  it('ends a bold transaction where it fails, and holds its lane in a careful one', async () => {
    await using setup = await atWork({ consumer: journal })
    const failing = () =>
      item(
        recorded(1),
        doing(() => {
          throw new TypeError('no')
        }),
      )
    const bold = setup.work.perform(failing(), performing('bold'))
    await expect(bold).rejects.toBeInstanceOf(GuiltyEvent)
    await expect(bold).rejects.toMatchObject({ record: { position: 1 }, cause: { message: 'no' } })
    expect(setup.changes()).toEqual({})
    await setup.work.perform(failing(), performing('careful'))
    expect(setup.changes()).toMatchObject({
      counts: counted({ held: 1 }),
      held: [{ status: 'parked', failure: { rule: 'sql', class: 'permanent', errorType: 'TypeError' } }],
    })
    expect(setup.work.outcome().held).toHaveLength(1)
  })

  it.for(['bold', 'careful'] as const)('is nobody’s fault when it is the store that fails, %sly', async (way) => {
    await using setup = await atWork({ consumer: journal })
    const away = new StoreError('STORE_UNAVAILABLE', 'away')
    const one = item(
      recorded(1),
      doing(() => Promise.reject(away)),
    )
    await expect(setup.work.perform(one, performing(way))).rejects.toBe(away)
    expect(setup.changes()).toEqual({})
  })

  it('is not tried when it was refused, or can not be read', async () => {
    const refusal = describeFailure(new Error('no'), 'permanent', 'row')
    await using setup = await atWork({ consumer: journal, refusals: new Map([[1, refusal]]) })
    const seen: unknown[] = []
    const tell = doing(() => seen.push(1))
    const failure = describeFailure(new Error('what'), 'permanent', 'read')
    await setup.work.perform(item(recorded(1, { key: 'b' }), tell), performing('bold'))
    await setup.work.perform(item(recorded(2), { ...tell, reading: { lane: 'a', failure } }), performing('bold'))
    expect(seen).toEqual([])
    expect(setup.changes()).toMatchObject({ counts: { held: 2 }, held: [{ failure: refusal }, { failure }] })
    await using other = await atWork({ consumer: journal, refusals: new Map([[1, refusal]]) })
    await other.work.perform(item(recorded(1), { apply: undefined, reading: undefined }), performing('bold'))
    expect(other.changes()).toMatchObject({ counts: { filtered: 1 } })
  })

  it('a letter is performed too', async () => {
    await using setup = await atWork({ consumer: journal, held: [parked(1)] })
    const seen: unknown[] = []
    setup.work.begin(task())
    const one = item(
      recorded(1),
      doing((event) => seen.push(event.id)),
    )
    expect(await setup.work.release(one, performing('bold'))).toBe(true)
    expect(seen).toEqual(['e1'])
    expect(setup.changes()).toMatchObject({ counts: { applied: 1, held: -1 } })
  })
})

it('an unknown type is held only where the subscription says so', () => {
  const holding = defineSubscription(balances, { unknown: 'hold' })
  const ignoring = defineSubscription(balances, {})
  const reducer = balances.reducers.get('Credited') as Reducer
  expect([functionOf(holding, reducer), functionOf(ignoring, reducer)]).toEqual([reducer, reducer])
  expect([functionOf(holding, 'unknown'), functionOf(ignoring, 'unknown')]).toEqual(['none', undefined])
  expect([functionOf(holding, 'filtered'), functionOf(holding, 'outside')]).toEqual([undefined, undefined])
})
