import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank, countsOf, createWorld, credited, debited, heldOf, rowOf, type World } from '../fixtures.ts'
import { createLog, defineSubscription, type Engine } from '../../src/index.ts'

// Several partitions in several engines. Here they share one process and virtual time; with real processes it is test/chaos.

const parted = defineSubscription(balances, { partitions: 5 })

async function ownersOf(engine: Engine): Promise<(string | undefined)[]> {
  const { subscriptions } = await engine.status()
  return subscriptions[0]?.stored?.partitions.map(({ owner }) => owner) ?? []
}

async function sharesOf(engine: Engine): Promise<Record<string, number>> {
  const shares: Record<string, number> = {}
  for (const owner of await ownersOf(engine)) shares[owner ?? 'nobody'] = (shares[owner ?? 'nobody'] ?? 0) + 1
  return shares
}

/** The same, smallest first. */
async function sizesOf(engine: Engine): Promise<number[]> {
  return Object.values(await sharesOf(engine)).toSorted((a, b) => a - b)
}

async function fill(world: World, events: number): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  for (let i = 0; i < events; i++) await log.append(`key-${i % 17}`, [credited(1)])
}

describe('a subscription in partitions', () => {
  it('applies everything, and its counts add up over all of them', async () => {
    await using world = await createWorld()
    await fill(world, 100)
    const engine = world.engine([parted], { page: { events: 4 } })
    await world.settle(engine)
    expect(await countsOf(engine)).toMatchObject({ applied: 100, filtered: 0, held: 0 })
    expect(await rowOf(engine, 'key-0')).toMatchObject({ version: 6, data: { balance: 6 } })
    expect(await engine.verify('balances')).toMatchObject({ ok: true, events: 100, rows: 17 })
    const status = (await engine.status()).subscriptions[0]
    expect(status?.stored).toMatchObject({ lag: { events: 0, seconds: 0 }, counts: { applied: 100 } })
  })

  it('leaves its checkpoints at the end when it stops, though nothing for them was there', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('one-key', [credited(1)])
    await log.append('one-key', [credited(1)])
    const engine = world.engine([parted])
    await world.settle(engine)
    await engine.stop()
    const states = await world.store.subscriptions.partitions('balances')
    expect(states.map(({ checkpoint }) => checkpoint.position)).toEqual([2, 2, 2, 2, 2])
  })

  it('holds a lane in its partition, and finds its letters there', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c', 'd', 'e']) await log.append(key, [debited(1), credited(1)])
    await fill(world, 20)
    const engine = world.engine([parted])
    await world.settle(engine)
    const held = await heldOf(engine)
    expect(held.map(({ lane, status }) => [lane, status])).toEqual(
      ['a', 'b', 'c', 'd', 'e'].flatMap((lane) => [
        [lane, 'parked'],
        [lane, 'queued'],
      ]),
    )
    expect(new Set(held.map(({ partition }) => partition)).size).toBeGreaterThan(1)
    expect(await engine.verify('balances')).toMatchObject({ ok: true })
    await engine.stop()
    const after = world.engine([parted])
    await log.append('a', [credited(1)])
    await world.settle(after)
    expect(await heldOf(after)).toHaveLength(11)
    expect((await after.status()).subscriptions[0]?.stored?.held).toMatchObject({ lanes: 5, letters: 11 })
  })

  it('is shared fairly by the processes that are there, as they come and go', async () => {
    await using world = await createWorld()
    const engine = async (name: string) => {
      const made = world.engine([parted], { name })
      await made.start()
      await world.runtime.advance(2_000)
      return made
    }
    const one = await engine('one')
    expect(await sharesOf(one)).toEqual({ one: 5 })
    const two = await engine('two')
    expect(await sizesOf(one)).toEqual([2, 3])
    const three = await engine('three')
    expect(await sharesOf(one)).toMatchObject({ one: expect.any(Number), two: expect.any(Number), three: 1 })
    expect(await sizesOf(one)).toEqual([1, 2, 2])
    await fill(world, 60)
    const drained = Promise.all([one, two, three].map((each) => each.drain()))
    await world.runtime.advance(5_000)
    await drained
    await two.stop()
    await world.runtime.advance(2_000)
    expect(await sizesOf(one)).toEqual([2, 3])
    await fill(world, 60)
    const again = one.drain()
    await world.runtime.advance(5_000)
    await again
    expect(await one.verify('balances')).toMatchObject({ ok: true, events: 120 })
    expect(await countsOf(one)).toMatchObject({ applied: 120 })
    await one.stop()
    await world.runtime.advance(2_000)
    expect(await sharesOf(three)).toEqual({ three: 5 })
  })

  it('can not be cut anew', async () => {
    await using world = await createWorld()
    await world.settle(world.engine([parted]))
    const other = world.engine([defineSubscription(balances, { partitions: 2 })])
    await expect(other.start()).rejects.toMatchObject({ code: 'PARTITIONS_CHANGED' })
    // Not to say is to take what is there.
    await world.settle(world.engine([balances]))
  })

  it.for([0, 257, 1.5, Number.NaN])('can not have %d partitions', (partitions) => {
    expect(() => defineSubscription(balances, { partitions })).toThrow(/partitions is/)
  })
})

describe('a rule of the user on the table of a projection', () => {
  const withRule = async () => {
    const world = await createWorld()
    await world.engine([parted]).prepare()
    const db = new DatabaseSync(world.store.file)
    db.exec('CREATE UNIQUE INDEX no_two_alike ON balances (balance) WHERE balance >= 100')
    db.close()
    return world
  }

  it('holds the lane of the event that breaks it, and no other', async () => {
    await using world = await withRule()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(100)])
    const engine = world.engine()
    await world.settle(engine)
    await log.append('b', [credited(1), credited(1)])
    await log.append('c', [credited(1)])
    await log.append('c', [credited(99)])
    await log.append('c', [credited(7)])
    await log.append('b', [credited(1)])
    await log.append('d', [credited(100)])
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ data: { balance: 100 } })
    expect(await rowOf(engine, 'b')).toMatchObject({ data: { balance: 3 } })
    expect((await heldOf(engine)).map(({ lane, status, failure }) => [lane, status, failure?.rule])).toEqual(
      expect.arrayContaining([['d', 'parked', 'row']]),
    )
    // 'c' had 100 for a moment only, inside a page: what counts is what would be written.
    const { counts } = await engine.verify('balances')
    expect(counts.applied + counts.held).toBe(8)
    expect(await engine.verify('balances')).toMatchObject({ ok: true })
  })

  it('lets the lane go on up to the event that breaks it', async () => {
    await using world = await withRule()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(100)])
    const engine = world.engine([balances], { page: { events: 4 } })
    await world.settle(engine)
    await log.append('c', [credited(1), credited(2), credited(97)])
    await log.append('e', [credited(1)])
    await world.settle(engine)
    await log.append('c', [credited(5)])
    await world.settle(engine)
    expect(await rowOf(engine, 'c')).toMatchObject({ version: 2, data: { balance: 3 } })
    expect(await rowOf(engine, 'e')).toMatchObject({ version: 1 })
    expect((await heldOf(engine)).map(({ lane, sequence, status }) => [lane, sequence, status])).toEqual([
      ['c', 3, 'parked'],
      ['c', 4, 'queued'],
    ])
    expect(await engine.verify('balances')).toMatchObject({ ok: true })
  })
})

describe('a reset', () => {
  it('begins a projection anew while an engine runs, and takes its letters with it', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await fill(world, 40)
    await log.append('poor', [debited(1)])
    const engine = world.engine([parted])
    await world.settle(engine)
    const operator = world.operator([parted])
    await operator.reset('balances', 'a test')
    expect(await countsOf(engine)).toMatchObject({ applied: 0, held: 0 })
    expect(await heldOf(engine)).toEqual([])
    await world.runtime.advance(1_000)
    await world.settle(engine)
    expect(await countsOf(engine)).toMatchObject({ applied: 40, held: 1 })
    expect(await engine.verify('balances')).toMatchObject({ ok: true, rows: 17 })
    await expect(operator.reset('nobody', 'a test')).rejects.toMatchObject({ code: 'SUBSCRIPTION_UNKNOWN' })
  })
})
