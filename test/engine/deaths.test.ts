import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf } from '../fixtures.ts'
import { type Call, die, fill, leaseMs, livesOf, plain, retrying, trialsOf } from '../lives.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import { redrive } from '../redrive/asking.ts'
import {
  block,
  createLog,
  defineHandler,
  definePolicy,
  defineSubscription,
  type Engine,
  failure,
  fixed,
  park,
  retry,
  type Store,
  StoreError,
} from '../../src/index.ts'
import { createIds } from '../../src/event/identity.ts'
import { isIn } from '../../src/source/share.ts'
import { deedOf } from '../../src/testing/contracts/fixtures.ts'

describe('an event that kills its process', () => {
  it('is parked after four deaths, and none of its neighbours is', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'b', 'c'], 5)
    const { untilOneLives, callsOf } = livesOf(world, ({ key, amount }, life) =>
      key === 'bad' && amount === 3 ? die(life) : undefined,
    )
    const { engine, deaths } = await untilOneLives()
    expect(deaths).toBe(4)
    expect((await heldOf(engine, 'notify')).map(({ lane, sequence, status }) => [lane, sequence, status])).toEqual([
      ['bad', 3, 'parked'],
      ['bad', 4, 'queued'],
      ['bad', 5, 'queued'],
    ])
    expect((await heldOf(engine, 'notify'))[0]?.attempts.map((attempt) => attempt.failure)).toMatchObject([
      { class: 'permanent', rule: 'crash', code: 'EVENT_DEADLY' },
    ])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 17, held: 3 })
    expect(callsOf('bad').filter((amount) => amount === 3)).toHaveLength(4)
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('is parked as soon when others have the partition in between, and hand it on', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'b'], 5)
    const { begin, live, callsOf } = livesOf(world, ({ key, amount }, life) =>
      key === 'bad' && amount === 3 ? die(life) : undefined,
    )
    const epoch = async () => (await world.store.subscriptions.partitions('notify'))[0]?.epoch ?? 0
    let deaths = 0
    for (; (await live(leaseMs + 5_000)).isDead; deaths++) {
      await world.runtime.advance(leaseMs)
      const before = await epoch()
      // Who is told to wait tries nothing.
      await world.store.subscriptions.pause('notify', { at: 0, reason: 'a look' }, deedOf('pause'))
      const visitor = begin()
      await visitor.engine.start()
      await world.runtime.advance(leaseMs)
      await visitor.engine.stop()
      await world.store.subscriptions.resume('notify', deedOf('resume'))
      expect(visitor.isDead).toBe(false)
      expect(await epoch()).toBeGreaterThan(before)
      expect(deaths).toBeLessThan(6)
    }
    expect(deaths).toBe(4)
    expect(callsOf('bad').filter((amount) => amount === 3)).toHaveLength(4)
  })
})

describe('an event that kills its process, and has to wait for its breaker each time before it is tried again', () => {
  it.for(['from the source', 'from behind another one'])('is parked as soon: %s', async (where) => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'b'], 3)
    const deadly = where === 'from the source' ? 1 : 2
    const settings = { opens: { failures: 3 } } as const
    const act = ({ key, amount }: Call, life: Mortal) => (key === 'bad' && amount === deadly ? die(life) : undefined)
    const { live, lives, callsOf } = livesOf(world, act, plain, {}, { ...settings, key: ({ key }) => key })
    const operator = world.operator()
    for (let deaths = 0; ; deaths++) {
      const life = await live(leaseMs + 5_000)
      if (deaths > 0) await operator.resetBreaker('notify:bad', 'a test')
      await world.runtime.advance(120_000)
      if (!life.isDead) break
      expect(deaths).toBeLessThan(6)
      await operator.isolateBreaker('notify:bad', 'it waits', { new: true })
    }
    expect(callsOf('bad').filter((amount) => amount === deadly)).toHaveLength(4)
    const [parked] = await heldOf(lives.at(-1)?.life.engine as Engine, 'notify')
    expect([parked?.lane, parked?.sequence, parked?.status]).toEqual(['bad', deadly, 'parked'])
  })
})

describe('an event that killed its process, once the code is mended', () => {
  it.for(['the same process', 'another one'])('is handled when a person lets it go: by %s', async (who) => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'b'], 5)
    let isMended = false
    const { untilOneLives, live, callsOf } = livesOf(world, ({ key, amount }, life) =>
      key === 'bad' && amount === 3 && !isMended ? die(life) : undefined,
    )
    const first = await untilOneLives()
    isMended = true
    let { engine } = first
    if (who === 'another one') {
      await engine.stop()
      engine = (await live(leaseMs + 5_000)).engine
    }
    expect(await redrive(world, engine, 'notify')).toMatchObject({ status: 'done', letters: 3, byState: { failed: 0 } })
    expect(callsOf('bad').slice(-3)).toEqual([3, 4, 5])
    expect(await heldOf(engine, 'notify')).toEqual([])
  })
})

describe('an event that kills its process, seen from elsewhere in it', () => {
  it('has nobody beside it when it is tried alone, so that nobody else is blamed', async () => {
    await using world = await createWorld()
    const keys = Array.from({ length: 12 }, (_, i) => `key-${i}`)
    await fill(world, keys, 4)
    const isBad = ({ key, data }: { readonly key: string; readonly data: { readonly amount: number } }) =>
      key === 'key-5' && data.amount === 2
    for (let deaths = 0; ; deaths++) {
      const slow = (name: string, isDeadly: boolean) =>
        defineHandler(name, {
          events: bank,
          on: {
            Credited: (event) =>
              isDeadly && isBad(event)
                ? die(life)
                : world.runtime.timers.sleep(50 + event.key.length * event.data.amount),
          },
        })
      const subscriptions = [slow('notify', true), slow('archive', false)].map((handler) =>
        defineSubscription(handler, { partitions: 4 }),
      )
      const life = createMortal(world, subscriptions)
      await life.engine.start()
      await world.runtime.advance(leaseMs + 30_000)
      if (life.isDead && deaths < 6) continue
      expect(deaths).toBe(4)
      expect((await heldOf(life.engine, 'archive')).map(({ event }) => [event.key, event.version])).toEqual([])
      expect(
        (await heldOf(life.engine, 'notify')).map(({ event, status }) => [event.key, event.version, status]),
      ).toEqual([
        ['key-5', 2, 'parked'],
        ['key-5', 3, 'queued'],
        ['key-5', 4, 'queued'],
      ])
      return
    }
  })
})

describe('after deaths that were nobody’s fault', () => {
  it('takes back first what it had on trial when it had the partition before, and could not say that it lives', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    const { subscriptions } = world.store
    const did: string[] = []
    const random = { u32: () => 7 }
    const own = createIds(world.runtime.clock, random)()
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        load: async (...whose) => {
          const state = await subscriptions.load(...whose)
          const left = did.includes('acquitted') ? [] : [{ position: 1, instance: own }]
          return state && { ...state, trials: [...state.trials, ...left] }
        },
        acquit: async (...whose) => {
          did.push(whose[2] === own ? 'acquitted' : 'somebody else')
          await subscriptions.acquit(...whose)
        },
      },
    }
    const { live } = livesOf(world, () => did.push('called'), plain, { store, random })
    await live(1_000)
    expect(did).toEqual(['acquitted', 'called'])
  })

  it('stands still at the event at which it should, and tries no other', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c']) await log.append(key, [credited(1), credited(2)])
    const { live, lives } = livesOf(
      world,
      ({ key }) => {
        if (lives.length < 3) return new Promise(() => undefined)
        if (key === 'a') throw failure.transient('not yet')
        return undefined
      },
      definePolicy({ transient: block(fixed('1s')), outage: false }),
    )
    for (let deaths = 0; deaths < 2; deaths++) (await live(leaseMs + 3_000)).die()
    await live(leaseMs + 10_000)
    const called = lives[2]?.calls.map(({ key }) => key) ?? []
    expect([new Set(called), called.length > 3]).toEqual([new Set(['a']), true])
  })

  it('forgets nothing that was finished far above the checkpoint, however soon the next one dies', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('slow', [credited(1)])
    // More than one reading of the source brings.
    for (let i = 1; i <= 3; i++)
      await log.append(
        'quick',
        Array.from({ length: 600 }, (_, n) => credited(600 * i + n)),
      )
    const { begin, live, callsOf } = livesOf(world, ({ key }) =>
      key === 'slow' ? new Promise(() => undefined) : undefined,
    )
    ;(await live(2_000)).die()
    const second = begin()
    second.engine.on('page.committed', () => second.die())
    await second.engine.start()
    await world.runtime.advance(leaseMs)
    expect(second.isDead).toBe(true)
    const last = await live(leaseMs + 2_000)
    expect(callsOf('slow', 3)).toEqual([1])
    expect(callsOf('quick', 1)).toHaveLength(1_800)
    expect([callsOf('quick', 2), callsOf('quick', 3)]).toEqual([[], []])
    expect(await last.engine.verify('notify')).toMatchObject({ ok: true, events: 1_800 })
  })

  it('is soon as quick as before, though lanes fail all the time', async () => {
    await using world = await createWorld()
    await fill(world, ['x', 'y', 'z'], 1)
    let [running, most] = [0, 0]
    const { live } = livesOf(
      world,
      async ({ key }) => {
        if (['x', 'y', 'z'].includes(key)) {
          await world.runtime.timers.sleep(1_000)
          throw failure.transient('not yet')
        }
        most = Math.max(most, ++running)
        await world.runtime.timers.sleep(100)
        running--
      },
      retrying,
    )
    for (let i = 0; i < 2; i++) (await live(leaseMs + 500)).die()
    const last = await live(leaseMs + 5_000)
    ;[running, most] = [0, 0]
    await fill(world, ['a', 'b', 'c', 'd', 'e', 'f'], 2)
    await world.runtime.advance(5_000)
    expect(most).toBeGreaterThan(4)
    expect((await countsOf(last.engine, 'notify'))?.applied).toBe(12)
  })

  it('blames one event at the most, however many processes die at some time of their lives', async () => {
    await using world = await createWorld()
    await fill(
      world,
      Array.from({ length: 10 }, (_, i) => `key-${i}`),
      10,
    )
    // Each of them lives long enough for a few events.
    const { live } = livesOf(world, () => world.runtime.timers.sleep(100))
    for (let i = 0; i < 12; i++) (await live(i === 0 ? 300 : leaseMs + 300)).die()
    const last = await live(leaseMs + 30_000)
    expect((await heldOf(last.engine, 'notify')).filter(({ status }) => status === 'parked').length).toBeLessThan(2)
    expect(await trialsOf(world)).toEqual([])
  })

  it('blames nobody for what failed, and waits to be tried again while its process dies', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    let isDeadly = true
    const policy = definePolicy({
      transient: retry({ attempts: 9, backoff: fixed('200ms') }).then(park),
      outage: false,
    })
    const { untilOneLives } = livesOf(
      world,
      (_, life) => {
        if (isDeadly) void world.runtime.timers.sleep(50).then(() => life.die())
        if (isDeadly) throw failure.transient('not now')
      },
      policy,
    )
    await expect(untilOneLives()).rejects.toThrow('8 processes died')
    isDeadly = false
    const { engine } = await untilOneLives()
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2 })
  })

  it('blames nobody who fails for long, whenever processes die', async () => {
    await using world = await createWorld()
    await fill(world, ['slow'], 1)
    const { lives, live } = livesOf(
      world,
      async () => {
        await world.runtime.timers.sleep(2_000)
        throw failure.transient('not yet')
      },
      retrying,
    )
    // Each of them dies in the middle of an attempt, of something else.
    for (let i = 0; i < 8; i++) {
      const life = await live(leaseMs + 20_000)
      while ((lives.at(-1)?.calls.length ?? 0) % 2 === 0) await world.runtime.advance(500)
      life.die()
    }
    const last = await live(leaseMs + 20_000)
    expect((await heldOf(last.engine, 'notify')).map(({ status }) => status)).toEqual(['retrying'])
    expect(await trialsOf(world)).toEqual([])
  })

  it('blames nobody when one of the dead was only stopped, and found the store away when it came back', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 3)
    let refusals = 0
    const { live } = livesOf(world, () => world.runtime.timers.sleep(1_000), plain, {
      store: withoutAcquittal(world.store, () => ++refusals < 3),
    })
    ;(await live(500)).die()
    const second = await live(leaseMs + 500)
    const goOn = second.stop()
    const third = await live(leaseMs + 500)
    third.die()
    expect((await trialsOf(world)).map(({ position }) => position > 0)).toEqual([false, true])
    goOn()
    await world.runtime.advance(5_000)
    second.die()
    expect(refusals).toBe(3)
    expect((await trialsOf(world)).map(({ position }) => position > 0)).toEqual([true])
    const last = await live(leaseMs + 20_000)
    expect(await heldOf(last.engine, 'notify')).toEqual([])
    expect(await countsOf(last.engine, 'notify')).toMatchObject({ applied: 6 })
    expect(await trialsOf(world)).toEqual([])
  })
})

describe('two partitions of a process that each have an event to blame', () => {
  it('do not ask the store about them without end', async () => {
    await using world = await createWorld()
    const keys = Array.from({ length: 8 }, (_, i) => `key-${i}`)
    const ofEach = [0, 1].flatMap((partition) => keys.find((key) => isIn({ partition, of: 2 }, key)) ?? [])
    await fill(world, ofEach, 1)
    const { subscriptions } = world.store
    let [asked, at] = [0, 0]
    const begin = async (isDying: boolean) => {
      const notify = defineHandler('notify', {
        events: bank,
        failure: plain,
        timeout: '1h',
        on: { Credited: () => (isDying ? new Promise<never>(() => undefined) : undefined) },
      })
      const archive = defineHandler('archive', {
        events: bank,
        on: { Credited: () => world.runtime.timers.sleep(15_000) },
      })
      const both = defineSubscription(notify, { partitions: 2 })
      const load: typeof subscriptions.load = (...whose) => {
        const now = world.runtime.clock.mono()
        asked = now === at ? asked + 1 : 1
        at = now
        // No time goes by: it would never end.
        if (asked > 500) life.die()
        return subscriptions.load(...whose)
      }
      const store: Store = { ...world.store, subscriptions: { ...subscriptions, load } }
      const life: Mortal = createMortal(world, isDying ? [both] : [archive, both], { store })
      await life.engine.start()
      return life
    }
    // Two processes, with one partition each, die over what they try: before, on record, and each twice over an event alone, soon after it began.
    for (let deaths = 0; deaths < 4; deaths++) {
      const pair = [await begin(true), await begin(true)]
      // What one died over alone waits for half a lease.
      await world.runtime.advance(deaths < 3 ? leaseMs + 1_000 : leaseMs + 6_000)
      for (const life of pair) life.die()
    }
    const trials = (await subscriptions.partitions('notify')).map((one) =>
      one.trials.map(({ position }) => position > 0),
    )
    expect(trials).toEqual([
      [false, true, true],
      [false, true, true],
    ])
    // Something that runs already when they are to be tried: both wait until it ends.
    const last = await begin(false)
    await world.runtime.advance(6 * leaseMs)
    expect([last.isDead, asked < 500]).toEqual([false, true])
    expect((await heldOf(last.engine, 'notify')).map(({ status }) => status)).toEqual(['parked', 'parked'])
  })
})

/** The same store, that is away for some of those who want to take their trials back. */
function withoutAcquittal(store: Store, isAway: () => boolean): Store {
  const { subscriptions } = store
  return {
    ...store,
    subscriptions: {
      ...subscriptions,
      acquit: async (...whose) => {
        if (isAway()) throw new StoreError('STORE_UNAVAILABLE', 'The test took the store away.')
        await subscriptions.acquit(...whose)
      },
    },
  }
}
