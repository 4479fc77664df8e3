import type { Store } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { balances, bank, createWorld } from '../../../test/fixtures.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import { defineEvents, defineProjection, defineSubscription, type Projection, type SqlProjection } from '../../index.ts'
import { defineSqlProjection } from '../../sqlite/index.ts'
import type { Decision } from '../../rebuild/rebuild-store.ts'
import { whole } from '../../source/share.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { SubscriptionOptions } from '../../subscription/subscription.ts'
import { claimed, commitOf, letter } from '../../testing/contracts/fixtures.ts'
import { createScriptedSource } from '../../testing/source.ts'
import { performPage, processPage } from './page.ts'
import type { Partition } from '../ownership/partition.ts'
import { RowCache } from '../ownership/row-cache.ts'

interface Kind extends SubscriptionOptions {
  readonly consumer?: Projection | SqlProjection
  readonly watchesGaps?: boolean
  readonly held?: readonly HeldLane[]
  readonly decided?: readonly Decision[]
}

/** A partition of a store that notes which rows it is asked for, and which letters. */
async function sorting({ consumer = balances, watchesGaps = false, held = [], decided, ...options }: Kind = {}) {
  const world = await createWorld()
  const { name, table } = consumer
  await world.store.subscriptions.register({ name, table, start: 0, partitions: 1 })
  const asked: unknown[] = []
  const { rows, letters } = world.store
  const store: Store = {
    ...world.store,
    rows: {
      ...rows,
      load: (spec, keys) => {
        asked.push(keys)
        return rows.load(spec, keys)
      },
    },
    letters: {
      ...letters,
      present: (subscription, refs) => {
        asked.push(refs)
        return letters.present(subscription, refs)
      },
    },
  }
  const partition: Partition = {
    store,
    subscription: defineSubscription(consumer, options),
    share: whole,
    watchesGaps,
    doneBefore: 0,
    logged: true,
    held: new Map(held.map((hold) => [hold.lane, hold])),
    rows: new RowCache(store, consumer, watchesGaps, 1_000_000),
    now: () => 500,
    ...(decided && { decided: new Map(decided.map((decision) => [decision.position, decision])) }),
  }
  return { partition, asked, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

function recorded(position: number, key: string, { type = 'Credited', version = 1, body = '{"amount":1}' } = {}) {
  const time = '2026-01-01T00:00:00.000Z'
  return { position, id: `e${position}`, type, key, version, schemaVersion: 1, time, body, metadata: undefined }
}

const held = (lane: string, status: HeldLane['status'], done = 0): HeldLane => ({
  lane,
  status,
  since: 1,
  done,
  head: done + 2,
  headPosition: 1,
})
const renamed = { type: 'Renamed', body: '{"owner":"x"}' }
const statuses = (letters: readonly { lane: string; status: string }[]) =>
  letters.map(({ lane, status }) => [lane, status])

describe('the events of a page', () => {
  it('that nobody is subscribed to are counted, and their rows are not loaded', async () => {
    await using setup = await sorting({ filter: { keyPrefix: 'a' } })
    const page = [
      recorded(1, 'a', { version: 2 }),
      recorded(2, 'b', { version: 2 }),
      recorded(3, 'a2', { ...renamed, version: 2 }),
      recorded(4, 'a3', { type: 'Mystery', version: 2 }),
    ]
    const outcome = await processPage(setup.partition, page)
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 1, filtered: 3 })
    expect(outcome.unknown).toEqual([page[3]])
    expect(setup.asked).toEqual([['a']])
  })

  it('count by their versions where those are watched, but not beyond the keys that the filter is about', async () => {
    const source = createScriptedSource()
    await using setup = await sorting({ watchesGaps: true, source, filter: { keyPrefix: 'a' } })
    const page = [
      recorded(1, 'a', renamed),
      recorded(2, 'a', { version: 2 }),
      recorded(3, 'b', { version: 9 }),
      // Nobody reads what is in these.
      recorded(4, 'a', { version: 3, type: 'Mystery' }),
      recorded(5, 'a', { version: 4, type: 'Renamed', body: 'no json' }),
    ]
    const outcome = await processPage(setup.partition, page)
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 1, filtered: 4 })
    expect(outcome.held).toEqual([])
    expect(outcome.lanes).toEqual([{ lane: 'a', hold: undefined, done: 4 }])
    expect(setup.asked).toEqual([['a']])
  })

  it('ask for no row where they are the first of their key, which only our own log can tell', async () => {
    const page = [
      recorded(1, 'a'),
      recorded(2, 'a', { version: 2 }),
      recorded(3, 'b', { version: 2 }),
      recorded(4, 'c'),
    ]
    await using own = await sorting()
    const outcome = await processPage(own.partition, page)
    expect(outcome.rows.map(({ key, version }) => [key, version])).toEqual([
      ['a', 2],
      ['b', 2],
      ['c', 1],
    ])
    expect(own.asked).toEqual([['b']])
    await using foreign = await sorting({ source: createScriptedSource() })
    await processPage(foreign.partition, page)
    expect(foreign.asked).toEqual([['a', 'b', 'c']])
    const consumer = defineProjection('by-owner', {
      events: bank,
      key: () => 'everybody',
      initial: () => ({ events: 0 }),
      on: { Credited: (row) => ({ events: row.events + 1 }) },
    })
    await using keyed = await sorting({ consumer })
    await processPage(keyed.partition, page)
    expect(keyed.asked).toEqual([['everybody']])
  })

  it('of an unknown type hold their lane where that is wanted', async () => {
    await using setup = await sorting({ unknown: 'hold' })
    const outcome = await processPage(setup.partition, [recorded(1, 'a', { type: 'Mystery' }), recorded(2, 'b')])
    expect(outcome).toMatchObject({
      counts: { applied: 1, held: 1, filtered: 0 },
      held: [{ lane: 'a', status: 'parked', failure: { code: 'EVENT_TYPE_UNKNOWN' } }],
    })
  })

  it('queue behind what is held without being read, and without their row', async () => {
    await using setup = await sorting({ held: [held('a', 'parked'), held('b', 'retrying')] })
    const page = [
      recorded(5, 'a', { body: 'no json', version: 2 }),
      recorded(6, 'b', { version: 2 }),
      recorded(7, 'c', { version: 2 }),
    ]
    const outcome = await processPage(setup.partition, page)
    expect(statuses(outcome.held)).toEqual([
      ['a', 'queued'],
      ['b', 'queued'],
    ])
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 1, held: 2 })
    expect(setup.asked).toEqual([['c']])
  })

  it('of a lane that waits are read, for it may be what it waits for', async () => {
    const source = createScriptedSource()
    await using setup = await sorting({ watchesGaps: true, source, held: [held('a', 'waiting')] })
    const page = [recorded(5, 'a', { version: 3 }), recorded(6, 'a', { version: 1 }), recorded(7, 'c')]
    const outcome = await processPage(setup.partition, page)
    expect(statuses(outcome.held)).toEqual([['a', 'queued']])
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 2, held: 1 })
    expect(setup.asked).toEqual([
      ['a', 'c'],
      [
        { lane: 'a', sequence: 3, eventId: 'e5' },
        { lane: 'a', sequence: 1, eventId: 'e6' },
      ],
    ])
  })

  it('that are held already are not held twice', async () => {
    const source = createScriptedSource()
    await using setup = await sorting({ watchesGaps: true, source, held: [held('a', 'parked')] })
    const { subscriptions } = setup.partition.store
    const claim = { subscription: 'balances', partition: 0, owner: 'me', leaseMs: 1_000 }
    const lease = claimed(await subscriptions.claim(claim))
    const known = letter('a', 3, 'queued')
    await subscriptions.commit({ ...commitOf(lease), table: balances.table, held: [known] })
    const again = { ...known.event, position: 500 }
    const outcome = await processPage(setup.partition, [again, recorded(501, 'a', { version: 3 })])
    expect(outcome.counts).toEqual({ ...noCounts(), duplicate: 1, held: 1 })
    expect(outcome.held).toMatchObject([{ event: { position: 501 } }])
  })

  it('need no look at the letters where no lane is held', async () => {
    const source = createScriptedSource()
    await using setup = await sorting({ watchesGaps: true, source })
    await processPage(setup.partition, [recorded(1, 'a')])
    // And the row is at hand from now on.
    await processPage(setup.partition, [recorded(2, 'a', { version: 2 })])
    expect(setup.asked).toEqual([['a']])
  })

  it('go to the row of their own key, where the projection has one', async () => {
    const owners = defineProjection('owners', {
      events: bank,
      key: (event) => (event.type === 'Renamed' ? event.data.owner : 'nobody'),
      initial: () => ({ keys: '' }),
      on: { Renamed: (row, { key }) => ({ keys: `${row.keys} ${key}` }) },
    })
    await using setup = await sorting({ consumer: owners, held: [held('a', 'parked'), held('z', 'parked')] })
    const to = (owner: string) => ({ type: 'Renamed', body: JSON.stringify({ owner }) })
    const outcome = await processPage(setup.partition, [recorded(1, 'a', to('x')), recorded(2, 'b', to('z'))])
    // The lane `a` is that of a row, not of the key of an event.
    expect(outcome.rows).toMatchObject([{ key: 'x', json: '{"keys":" a"}' }])
    expect(statuses(outcome.held)).toEqual([['z', 'queued']])
    expect(setup.asked).toEqual([['x']])
  })

  it('may be checked by a schema that takes its time', async () => {
    const Slow = z.object({ n: z.number() }).refine(() => Promise.resolve(true))
    const sums = defineProjection('sums', {
      events: defineEvents({ Slow }),
      initial: () => ({ n: 0 }),
      on: { Slow: (row, { data }) => ({ n: row.n + data.n }) },
    })
    await using setup = await sorting({ consumer: sums })
    const outcome = await processPage(setup.partition, [recorded(1, 'a', { type: 'Slow', body: '{"n":5}' })])
    expect(outcome.rows).toMatchObject([{ key: 'a', json: '{"n":5}' }])
  })
})

describe('what people decided in the live version', () => {
  const revision = { number: 1, body: '{"amount":70}', by: 'ann', reason: 'a word', at: 3 }
  const ending = { by: 'ann', reason: 'a test' }
  const decided: Decision[] = [
    { decision: 'discarded', position: 1, ending },
    { decision: 'revised', position: 2, revision },
    { decision: 'revised', position: 4, revision },
  ]

  it('holds for one that is built beside it', async () => {
    await using setup = await sorting({ decided, held: [held('b', 'parked')] })
    const outcome = await processPage(setup.partition, [
      recorded(1, 'a', { body: 'no json' }),
      recorded(2, 'a', { version: 2, body: 'no json' }),
      recorded(3, 'a', { version: 3 }),
      recorded(4, 'b', { version: 7 }),
    ])
    expect(outcome.rows).toMatchObject([{ key: 'a', version: 3, json: '{"balance":71,"seen":2}' }])
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 2, discarded: 1, held: 1 })
    expect(outcome.held).toMatchObject([
      { lane: 'a', status: 'discarded', ending, event: { position: 1 } },
      { lane: 'a', status: 'resolved', revision, event: { position: 2, body: 'no json' } },
      { lane: 'b', status: 'queued', revision, event: { position: 4 } },
    ])
  })

  it('is kept in the lane of the row that it is about', async () => {
    const own = defineProjection('own', { events: bank, key: () => 'one', initial: () => 0, on: { Credited: () => 1 } })
    await using setup = await sorting({ consumer: own, decided })
    const outcome = await processPage(setup.partition, [recorded(1, 'a')])
    expect(outcome.held).toMatchObject([{ lane: 'one', status: 'discarded', sequence: 1 }])
  })
})

describe('a page in SQL', () => {
  it('is performed event by event, in order, and stops at none', async () => {
    const seen: string[] = []
    const journal = defineSqlProjection('journal', {
      events: bank,
      on: {
        Credited: ({ id }) => {
          seen.push(id)
          if (id === 'e2') throw new TypeError('no')
        },
      },
    })
    await using setup = await sorting({ consumer: journal })
    const run = async (work: () => unknown) => void (await work())
    const page = [recorded(1, 'a'), recorded(2, 'b'), recorded(3, 'b'), recorded(4, 'c', renamed), recorded(5, 'c')]
    const outcome = await performPage(setup.partition, page, {
      tx: { handle: undefined, run, attempt: run },
      way: 'careful',
    })
    expect(seen).toEqual(['e1', 'e2', 'e5'])
    expect(outcome.counts).toEqual({ ...noCounts(), applied: 2, held: 2, filtered: 1 })
    expect(statuses(outcome.held)).toEqual([
      ['b', 'parked'],
      ['b', 'queued'],
    ])
  })
})
