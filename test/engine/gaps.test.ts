import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { balances, bank, countsOf, createWorld, heldOf, rowOf } from '../fixtures.ts'
import {
  defineEvents,
  defineProjection,
  defineSubscription,
  evolved,
  HoldfastError,
  type Projection,
  type Source,
} from '../../src/index.ts'
import { createScriptedSource, type ScriptedEvent } from '../../src/testing/source.ts'

const credit = (key: string, version: number, amount = version): ScriptedEvent => ({
  key,
  type: 'Credited',
  version,
  data: { amount },
})
const debit = (key: string, version: number, amount: number): ScriptedEvent => ({
  key,
  type: 'Debited',
  version,
  data: { amount },
})
const statuses = (letters: { status: string; sequence: number }[]) =>
  letters.map(({ status, sequence }) => `${status} ${sequence}`)

/** Remembers the order in which it was told. */
const trails = defineProjection('trails', {
  events: bank,
  initial: () => ({ trail: [] as number[] }),
  on: { Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }) },
})

async function createScripted(from: 'beginning' | { position: number } = 'beginning') {
  const world = await createWorld()
  const source = createScriptedSource()
  const subscription = defineSubscription(balances, { source, from })
  return {
    world,
    source,
    subscription,
    engine: world.engine([subscription]),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

describe('a source that repeats, reorders and withholds versions', () => {
  it('skips what it has done before', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 1), credit('a', 2), credit('a', 1), credit('a', 2), credit('a', 3))
    await world.settle(engine)
    source.deliver(credit('a', 2), credit('a', 3))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 3, data: { balance: 6, seen: 3 } })
    expect(await countsOf(engine)).toEqual({ applied: 3, duplicate: 4, filtered: 0, held: 0, discarded: 0 })
  })

  it('holds only the lane with a gap, and lets it go by itself when the missing version comes', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    const told: string[] = []
    engine.on('lane.held', ({ lane, status }) => told.push(`${lane} ${status}`))
    engine.on('lane.released', ({ lane }) => told.push(`${lane} flows`))
    source.deliver(credit('a', 1), credit('a', 3), credit('b', 1), credit('a', 4))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
    expect(await rowOf(engine, 'b')).toMatchObject({ version: 1 })
    expect(statuses(await heldOf(engine))).toEqual(['waiting 3', 'queued 4'])

    source.deliver(credit('a', 2))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 4, data: { balance: 10, seen: 4 } })
    expect(await heldOf(engine)).toEqual([])
    expect(await countsOf(engine)).toEqual({ applied: 5, duplicate: 0, filtered: 0, held: 0, discarded: 0 })
    expect(told).toEqual(['a waiting', 'a flows'])

    source.deliver(credit('a', 5))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 5 })
  })

  it('sorts what comes the wrong way round, and absorbs repeats of what is queued', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 5), credit('a', 4), credit('a', 2))
    await world.settle(engine)
    source.deliver(credit('a', 4), credit('a', 5), credit('a', 3))
    await world.settle(engine)
    expect(statuses((await heldOf(engine)).toSorted((x, y) => x.sequence - y.sequence))).toEqual([
      'waiting 2',
      'queued 3',
      'queued 4',
      'queued 5',
    ])
    source.deliver(credit('a', 1))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 5, data: { balance: 15, seen: 5 } })
    expect(await countsOf(engine)).toEqual({ applied: 5, duplicate: 2, filtered: 0, held: 0, discarded: 0 })
  })

  it('shows a gap that never heals, with what is missing and its age', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 1), credit('a', 4))
    await world.settle(engine)
    await world.runtime.advance(90_000)
    const held = (await engine.status()).subscriptions[0]?.stored?.held
    expect(held).toMatchObject({ lanes: 1, letters: 1, byStatus: { waiting: 1, queued: 0 } })
    expect(held?.oldest).toMatchObject([
      { lane: 'a', status: 'waiting', missingVersion: 2, ageSeconds: 90, letters: 1 },
    ])
  })

  it('waits on through restarts, and heals after one', async () => {
    await using setup = await createScripted()
    const { world, source, subscription, engine } = setup
    source.deliver(credit('a', 1), credit('a', 3))
    await world.settle(engine)
    await engine.stop()
    const second = world.engine([subscription])
    source.deliver(credit('a', 5), credit('a', 2))
    await world.settle(second)
    expect(await rowOf(second, 'a')).toMatchObject({ version: 3 })
    expect(statuses(await heldOf(second))).toEqual(['waiting 5'])
    source.deliver(credit('a', 4))
    await world.settle(second)
    expect(await rowOf(second, 'a')).toEqual({ version: 5, data: { balance: 15, seen: 5 } })
  })

  it('counts the versions of events it is not subscribed to', async () => {
    await using setup = await createScripted()
    const { world, source, subscription, engine } = setup
    const renamed = (version: number): ScriptedEvent => ({ key: 'a', type: 'Renamed', version, data: { owner: 'x' } })
    source.deliver(renamed(1), credit('a', 2), renamed(4))
    await world.settle(engine)
    expect(statuses(await heldOf(engine))).toEqual(['waiting 4'])
    source.deliver(renamed(3), renamed(5), renamed(1))
    await world.settle(engine)
    expect(await heldOf(engine)).toEqual([])
    expect(await countsOf(engine)).toEqual({ applied: 1, duplicate: 1, filtered: 4, held: 0, discarded: 0 })
    await engine.stop()
    // How far the lane is does not show in its row; it must be known all the same.
    const second = world.engine([subscription])
    source.deliver(credit('a', 6))
    await world.settle(second)
    expect(await rowOf(second, 'a')).toEqual({ version: 6, data: { balance: 8, seen: 2 } })
  })

  it('parks the lane when the missing version is poison, and keeps the rest in order behind it', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 2), credit('a', 3), debit('a', 1, 5))
    await world.settle(engine)
    expect(statuses((await heldOf(engine)).toSorted((x, y) => x.sequence - y.sequence))).toEqual([
      'parked 1',
      'queued 2',
      'queued 3',
    ])
    source.deliver(debit('a', 1, 5), credit('a', 4))
    await world.settle(engine)
    expect(await countsOf(engine)).toEqual({ applied: 0, duplicate: 1, filtered: 0, held: 4, discarded: 0 })
    expect(await rowOf(engine, 'a')).toBeUndefined()
  })

  it('parks poison that is delivered twice in one page once, and goes on', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(debit('a', 1, 5), debit('a', 1, 5), credit('b', 1), credit('a', 2), debit('a', 1, 5), credit('a', 2))
    await world.settle(engine)
    expect(statuses(await heldOf(engine))).toEqual(['parked 1', 'queued 2'])
    expect(await countsOf(engine)).toEqual({ applied: 1, duplicate: 3, filtered: 0, held: 2, discarded: 0 })
  })

  it('applies one of two events that claim the same version, the first that came', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 2, 10), { ...credit('a', 2, 20), id: 'other' }, credit('a', 3, 1))
    await world.settle(engine)
    expect(statuses(await heldOf(engine))).toEqual(['waiting 2', 'queued 2', 'queued 3'])
    source.deliver(credit('a', 1, 0))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 3, data: { balance: 11, seen: 3 } })
    expect(await countsOf(engine)).toEqual({ applied: 3, duplicate: 1, filtered: 0, held: 0, discarded: 0 })
  })

  it('does not hold keys that its filter is not about', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const engine = world.engine([defineSubscription(balances, { source, filter: { keyPrefix: 'a' } })])
    source.deliver(credit('b', 7), credit('a', 1))
    await world.settle(engine)
    expect(await heldOf(engine)).toEqual([])
    expect(await countsOf(engine)).toMatchObject({ applied: 1, filtered: 1 })
  })

  it.for([
    [
      'a position that does not grow',
      [
        { ...credit('a', 1), position: 1 },
        { ...credit('a', 2), position: 1 },
      ],
    ],
    ['a version below 1', [credit('a', 0)]],
    ['half a version', [credit('a', 1.5)]],
    ['no version', [{ key: 'a', type: 'Credited', data: { amount: 1 } }]],
    ['half a character in a key', [credit('a\ud800', 1)]],
    ['half a character in metadata', [{ ...credit('a', 1), metadata: '{"tenant":"\ud800"}' }]],
    ['a schema version below 1', [{ ...credit('a', 1), schemaVersion: 0 }]],
    ['a time that is none', [{ ...credit('a', 1), time: '' }]],
  ] as const)('stops loudly, with nothing taken, at %s', async ([, events]) => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(...events)
    await engine.start()
    await world.runtime.advance(1_000)
    const [status] = (await engine.status()).subscriptions
    expect(status?.state).toMatchObject({ state: 'failed', error: { code: 'SOURCE_INVALID' } })
    expect(status?.stored?.partitions[0]?.checkpoint.position).toBe(0)
  })

  it('absorbs a repeat in a held lane, also from a source that promised none', async () => {
    await using world = await createWorld()
    const source = { ...createScriptedSource(), versions: 'contiguous' as const }
    const engine = world.engine([defineSubscription(balances, { source })])
    source.deliver(debit('a', 1, 5), credit('a', 2))
    await world.settle(engine)
    source.deliver(debit('a', 1, 5), credit('a', 2), credit('b', 1))
    await world.settle(engine)
    expect(statuses(await heldOf(engine))).toEqual(['parked 1', 'queued 2'])
    expect(await countsOf(engine)).toEqual({ applied: 1, duplicate: 2, filtered: 0, held: 2, discarded: 0 })
  })

  it('keeps the head of a lane that was held at its very first event', async () => {
    await using setup = await createScripted({ position: 1 })
    const { world, source, engine } = setup
    source.deliver(credit('z', 1), debit('a', 5, 9), credit('a', 4), credit('a', 6))
    await world.settle(engine)
    expect(statuses(await heldOf(engine))).toEqual(['parked 5', 'queued 6'])
  })

  it('heals a lane that takes longer than a lease, beside a process that would like to have it', {
    timeout: 60_000,
  }, async () => {
    await using world = await createWorld()
    const { runtime } = world
    const slow = z.object({ n: z.number() }).refine(() => runtime.timers.sleep(40).then(() => true))
    const sums = defineProjection('sums', {
      events: defineEvents({ Slow: slow }),
      initial: () => ({ n: 0 }),
      on: { Slow: (row, { data }) => ({ n: row.n + data.n }) },
    })
    const source = createScriptedSource()
    const make = (name: string) =>
      world.engine([defineSubscription(sums, { source })], { name, lease: '1s', page: { events: 100 } })
    const [first, second] = [make('first'), make('second')]
    const event = (version: number): ScriptedEvent => ({ key: 'k', type: 'Slow', version, data: { n: 1 } })
    for (let version = 2; version <= 100; version++) source.deliver(event(version))
    await first.start()
    await second.start()
    await runtime.advance(60_000)
    source.deliver(event(1))
    await runtime.advance(120_000)
    expect(await countsOf(first, 'sums')).toMatchObject({ applied: 100, held: 0 })
    const stopped = Promise.all([first.stop(), second.stop()])
    await runtime.advance(60_000)
    await stopped
  })

  it('takes events without versions in order of position, where the source has none', async () => {
    await using world = await createWorld()
    const source = { ...createScriptedSource(), versions: 'none' as const }
    const engine = world.engine([defineSubscription(balances, { source })])
    const event = (amount: number): ScriptedEvent => ({
      key: 'a',
      type: amount > 0 ? 'Credited' : 'Debited',
      data: { amount: Math.abs(amount) },
    })
    source.deliver(event(1), event(2), event(-9), event(3))
    await world.settle(engine)
    await engine.stop()
    const second = world.engine([defineSubscription(balances, { source })])
    source.deliver(event(4))
    await world.settle(second)
    expect(await rowOf(second, 'a')).toEqual({ version: 2, data: { balance: 3, seen: 2 } })
    expect((await heldOf(second)).map(({ status }) => status)).toEqual(['parked', 'queued', 'queued'])
  })

  it('is refused for a projection with a key of its own', () => {
    const own = defineProjection('own', { events: bank, key: () => 'one', initial: () => 0, on: {} })
    expect(() => defineSubscription(own, { source: createScriptedSource() })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })

  it('stops at poison in the queue of a lane that heals, and keeps the rest', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 2), debit('a', 3, 1_000), credit('a', 4), credit('a', 1))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 2 })
    const held = await heldOf(engine)
    expect(statuses(held)).toEqual(['parked 3', 'queued 4'])
    expect(held[0]).toMatchObject({ failure: { errorType: 'RangeError' }, attempts: [{}] })
    expect(await countsOf(engine)).toEqual({ applied: 2, duplicate: 0, filtered: 0, held: 2, discarded: 0 })
  })

  it('drains a long queue in several commits, and live events stay behind it', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(...Array.from({ length: 1_234 }, (_, i) => credit('a', i + 2, 1)))
    await world.settle(engine)
    source.deliver(credit('a', 1, 1), credit('a', 1_236, 1))
    let commits = 0
    engine.on('page.committed', () => commits++)
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 1_236, data: { balance: 1_236, seen: 1_236 } })
    expect(commits).toBeGreaterThanOrEqual(3)
    expect(await heldOf(engine)).toEqual([])
  })

  it('brings held events up to the newest schema when their turn comes', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const make = <T extends { readonly Priced: Parameters<typeof defineEvents>[0][string] }>(types: T) =>
      defineSubscription(
        defineProjection('prices', {
          events: defineEvents({ Priced: types.Priced }),
          initial: () => ({ list: [] as unknown[] }),
          on: { Priced: (row, { data }) => ({ list: [...row.list, data] }) },
        }),
        { source },
      )
    const priced = (version: number): ScriptedEvent => ({ key: 'a', type: 'Priced', version, data: { price: version } })
    const before = world.engine([make({ Priced: z.object({ price: z.number() }) })])
    source.deliver(priced(2))
    await world.settle(before)
    await before.stop()
    const upcast = (data: { price: number }) => ({ amount: data.price })
    const subscription = make({ Priced: evolved(z.object({ amount: z.number() }), [upcast]) })
    const after = world.engine([subscription])
    source.deliver(priced(1))
    await world.settle(after)
    expect((await rowOf(after, 'a', subscription.consumer as Projection))?.data).toEqual({
      list: [{ amount: 1 }, { amount: 2 }],
    })
  })

  it('takes the first version it sees as the beginning when it began in the middle', async () => {
    await using setup = await createScripted({ position: 1 })
    const { world, source, engine } = setup
    source.deliver(credit('a', 1), credit('a', 7), credit('a', 9))
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 7 })
    expect(statuses(await heldOf(engine))).toEqual(['waiting 9'])
  })

  it('holds what is not even text, to the byte', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    const bytes = new Uint8Array([0xff, 0xfe, 0x00, 0x7b])
    source.deliver(
      { key: 'a', type: 'Credited', version: 1, body: bytes },
      { key: 'b', type: 'Credited', version: 1, body: '{"amount":' },
    )
    source.deliver(credit('c', 1), { ...credit('d', 1), metadata: '{' })
    await world.settle(engine)
    const held = await heldOf(engine)
    expect(held.map(({ lane, failure }) => [lane, failure?.rule])).toEqual([
      ['a', 'read'],
      ['b', 'read'],
      ['d', 'read'],
    ])
    expect(new Uint8Array(held[0]?.event.body as Uint8Array)).toEqual(bytes)
    expect(await rowOf(engine, 'c')).toMatchObject({ version: 1 })
  })

  it('stops loudly when its source has lost what it had', async () => {
    await using setup = await createScripted()
    const { world, source, engine } = setup
    source.deliver(credit('a', 1), credit('a', 2))
    await world.settle(engine)
    await engine.stop()
    const shorter = createScriptedSource()
    shorter.deliver(credit('a', 1))
    const second = world.engine([defineSubscription(balances, { source: shorter })])
    await second.start()
    await world.runtime.advance(1_000)
    const { state } = (await second.status()).subscriptions[0] ?? {}
    expect(state).toMatchObject({ state: 'failed', error: { code: 'SOURCE_REGRESSED' } })
    await expect(second.drain()).rejects.toMatchObject({ code: 'SUBSCRIPTION_FAILED' })
  })

  it('stops loudly, and where it is, when its source has dropped what comes next', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const trimmed: Source = {
      ...source,
      read: async (after, ...rest) => {
        if (after !== 1) return source.read(after, ...rest)
        throw new HoldfastError('SOURCE_TRIMMED', 'Everything up to position 2 is gone.')
      },
    }
    const engine = world.engine([defineSubscription(balances, { source: trimmed })])
    source.deliver(credit('a', 1))
    await world.settle(engine)
    source.deliver(credit('b', 1), credit('c', 1))
    await world.runtime.advance(1_000)
    const [status] = (await engine.status()).subscriptions
    expect(status?.state).toMatchObject({ state: 'failed', error: { code: 'SOURCE_TRIMMED' } })
    expect(status?.stored?.partitions[0]?.checkpoint.position).toBe(1)
  })

  it('ends with the fold in order, whatever the order, the repeats, the pages and the restarts', async () => {
    const versions = fc.integer({ min: 1, max: 12 })
    const delivery = fc.record({ key: fc.constantFrom('a', 'b'), version: versions })
    await fc.assert(
      fc.asyncProperty(
        fc.array(delivery, { maxLength: 60 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(60),
        async (script, page, restartAt) => {
          await using world = await createWorld()
          const source = createScriptedSource()
          const subscription = defineSubscription(trails, { source })
          // In the end every version comes at least once.
          const rest = ['a', 'b'].flatMap((key) => Array.from({ length: 12 }, (_, i) => ({ key, version: i + 1 })))
          const events = [...script, ...rest].map(({ key, version }) => credit(key, version))
          let engine = world.engine([subscription], { page: { events: page } })
          for (const [i, event] of events.entries()) {
            source.deliver(event)
            if (i % 7 === 0) await world.settle(engine)
            if (i !== restartAt) continue
            await engine.stop()
            engine = world.engine([subscription], { page: { events: page } })
          }
          await world.settle(engine)
          const trail = Array.from({ length: 12 }, (_, i) => i + 1)
          for (const key of ['a', 'b'])
            expect(await rowOf(engine, key, trails)).toEqual({ version: 12, data: { trail } })
          const counts = await countsOf(engine, 'trails')
          expect(counts).toEqual({ applied: 24, duplicate: script.length, filtered: 0, held: 0, discarded: 0 })
          expect(await heldOf(engine, 'trails')).toEqual([])
        },
      ),
      { numRuns: 60 },
    )
  })
})
