import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../../test/fixtures.ts'
import { createMortal, type Mortal } from '../../test/mortal.ts'
import { redrive } from '../../test/redrive/asking.ts'
import {
  block,
  createBreaker,
  createLog,
  defineHandler,
  definePolicy,
  defineSubscription,
  type Engine,
  type EngineOptions,
  failure,
  fixed,
  type HandlerContext,
  type HandlerDefinition,
  park,
  type Policy,
  retry,
  type Store,
  StoreError,
} from '../index.ts'
import { createScriptedSource } from '../testing/source.ts'

// Processes that die in virtual time. Those that really die are in test/handlers.

interface Call {
  readonly key: string
  readonly amount: number
  readonly ctx: HandlerContext
}

const leaseMs = 10_000

/** Lives one after the other on one store, each with the same handler, which does what `act` says. */
function livesOf(
  world: World,
  act: (call: Call, life: Mortal) => unknown,
  policy: Policy = plain,
  options: Partial<EngineOptions> = {},
  breaker?: HandlerDefinition<typeof bank>['breaker'],
) {
  const lives: { readonly life: Mortal; readonly calls: Call[] }[] = []
  const begin = () => {
    const calls: Call[] = []
    const handler = defineHandler('notify', {
      events: bank,
      failure: policy,
      timeout: '1h',
      ...(breaker && { breaker }),
      on: {
        Credited: ({ key, data }, ctx) => {
          const call = { key, amount: data.amount, ctx }
          calls.push(call)
          return act(call, life)
        },
      },
    })
    const life = createMortal(world, [handler], options)
    lives.push({ life, calls })
    return life
  }
  const live = async (ms: number) => {
    const life = begin()
    await life.engine.start()
    await world.runtime.advance(ms)
    return life
  }
  return {
    lives,
    begin,
    live,
    /** The calls of all lives, or of one; 1 is the first. */
    callsOf: (key: string, life?: number) =>
      (life === undefined ? lives : [lives[life - 1]]).flatMap(
        (one) => one?.calls.filter((call) => call.key === key).map(({ amount }) => amount) ?? [],
      ),
    /** Until one of them lives on, or there were too many. */
    untilOneLives: async (most = 8): Promise<{ readonly engine: Engine; readonly deaths: number }> => {
      for (let deaths = 0; deaths < most; deaths++) {
        const life = await live(leaseMs + 5_000)
        if (!life.isDead) return { engine: life.engine, deaths }
      }
      throw new Error(`${most} processes died.`)
    },
  }
}

const plain = definePolicy({ outage: false })
const retrying = definePolicy({
  transient: retry({ attempts: 100, backoff: fixed('1s') }).then(park),
  outage: false,
})

/** Dies, and never comes back. */
function die(life: Mortal): Promise<never> {
  life.die()
  return new Promise(() => undefined)
}

async function fill(world: World, keys: readonly string[], events: number): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  for (let i = 1; i <= events; i++) for (const key of keys) await log.append(key, [credited(i)])
}

describe('an event that kills its process', () => {
  it('is parked after three deaths, and none of its neighbours is', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'b', 'c'], 5)
    const { untilOneLives, callsOf } = livesOf(world, ({ key, amount }, life) =>
      key === 'bad' && amount === 3 ? die(life) : undefined,
    )
    const { engine, deaths } = await untilOneLives()
    expect(deaths).toBe(3)
    expect((await heldOf(engine, 'notify')).map(({ lane, sequence, status }) => [lane, sequence, status])).toEqual([
      ['bad', 3, 'parked'],
      ['bad', 4, 'queued'],
      ['bad', 5, 'queued'],
    ])
    expect((await heldOf(engine, 'notify'))[0]?.attempts.map((attempt) => attempt.failure)).toMatchObject([
      { class: 'permanent', rule: 'crash', code: 'EVENT_DEADLY' },
    ])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 17, held: 3 })
    expect(callsOf('bad').filter((amount) => amount === 3)).toHaveLength(3)
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
      await world.store.subscriptions.pause('notify', { at: 0, reason: 'a look' })
      const visitor = begin()
      await visitor.engine.start()
      await world.runtime.advance(leaseMs)
      await visitor.engine.stop()
      await world.store.subscriptions.resume('notify')
      expect(visitor.isDead).toBe(false)
      expect(await epoch()).toBeGreaterThan(before)
      expect(deaths).toBeLessThan(6)
    }
    expect(deaths).toBe(3)
    expect(callsOf('bad').filter((amount) => amount === 3)).toHaveLength(3)
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
    const breaker = createBreaker({ store: world.store, name: 'notify:bad', ...settings, ...world.runtime })
    for (let deaths = 0; ; deaths++) {
      const life = await live(leaseMs + 5_000)
      await breaker.reset('a test')
      await world.runtime.advance(120_000)
      if (!life.isDead) break
      expect(deaths).toBeLessThan(6)
      await breaker.isolate('a test', 'it waits')
    }
    expect(callsOf('bad').filter((amount) => amount === deadly)).toHaveLength(3)
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

describe('an event that fails first, and kills when it is tried again', () => {
  /** Fails first, and then kills. */
  function fickle() {
    const failedIn = new Set<Mortal>()
    return (life: Mortal): unknown => {
      if (failedIn.has(life)) return die(life)
      failedIn.add(life)
      throw failure.transient('not yet')
    }
  }

  it.for([3, 5])('is parked after %s deaths, however patient its policy is', async (maxDeaths) => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'b'], 3)
    const tryIt = fickle()
    const { untilOneLives, callsOf } = livesOf(
      world,
      ({ key, amount }, life) => (key === 'bad' && amount === 2 ? tryIt(life) : undefined),
      definePolicy({ transient: retry({ attempts: 100, backoff: fixed('1s') }).then(park), outage: false, maxDeaths }),
    )
    const { engine, deaths } = await untilOneLives()
    expect(deaths).toBe(maxDeaths)
    expect((await heldOf(engine, 'notify')).map(({ lane, sequence, status }) => [lane, sequence, status])).toEqual([
      ['bad', 2, 'parked'],
      ['bad', 3, 'queued'],
    ])
    expect(callsOf('bad').filter((amount) => amount === 2)).toHaveLength(2 * maxDeaths)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 7, held: 2 })
    expect(await trialsOf(world)).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('is parked as soon when others have the partition in between, and hand it on', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad'], 2)
    const tryIt = fickle()
    const { live, callsOf } = livesOf(
      world,
      ({ key }, life) => (key === 'bad' ? tryIt(life) : undefined),
      definePolicy({
        transient: retry({ attempts: 100, backoff: fixed('1m') }).then(park),
        outage: false,
        maxDeaths: 5,
      }),
    )
    let [deaths, handovers] = [0, 0]
    for (; (await live(leaseMs + 130_000)).isDead; deaths++) {
      // From when somebody is known to have died over it.
      if (deaths < 1) continue
      const visitor = await live(leaseMs + 20_000)
      expect(visitor.isDead).toBe(false)
      await visitor.engine.stop()
      handovers++
      expect(deaths).toBeLessThan(8)
    }
    expect([deaths, handovers]).toEqual([5, 4])
    expect(callsOf('bad')).not.toContain(2)
    expect(await trialsOf(world)).toEqual([])
  })

  it('is parked after some deaths, where the policy stands still at it', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    const tries = new Map<Mortal, number>()
    const { untilOneLives } = livesOf(
      world,
      (_call, life) => {
        tries.set(life, (tries.get(life) ?? 0) + 1)
        if (tries.get(life) === 1) throw failure.transient('not yet')
        life.die()
        return new Promise(() => undefined)
      },
      definePolicy({ transient: block(fixed('1s')), outage: false }),
    )
    const { engine } = await untilOneLives(6)
    expect(await heldOf(engine, 'notify')).toMatchObject([{ lane: 'a', status: 'parked' }])
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
      expect(deaths).toBe(3)
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
    let own: string | undefined
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        claim: (request) => {
          own = request.owner.replace('engine-', '')
          return subscriptions.claim(request)
        },
        load: async (...whose) => {
          const state = await subscriptions.load(...whose)
          const left = did.includes('acquitted') ? [] : [{ position: 1, instance: own as string }]
          return state && { ...state, trials: [...state.trials, ...left] }
        },
        acquit: async (...whose) => {
          did.push(whose[2] === own ? 'acquitted' : 'somebody else')
          await subscriptions.acquit(...whose)
        },
      },
    }
    const { live } = livesOf(world, () => did.push('called'), plain, { store })
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

describe('while another lane is to be tried again much later', () => {
  const patient = definePolicy({
    transient: retry({ attempts: 1_000, backoff: fixed('10m') }).then(park),
    outage: false,
  })
  const statusesOf = async (engine: Engine) =>
    (await heldOf(engine, 'notify')).map(({ lane, status }) => [lane, status])

  it.for(['soon', 'after some have had the partition, and handed it on'])(
    'nobody is blamed for processes that something else kills now and then: %s',
    async (when) => {
      await using world = await createWorld()
      await fill(world, ['patient'], 1)
      const { live } = livesOf(
        world,
        async ({ key }) => {
          if (key === 'patient') throw failure.transient('not yet')
          await world.runtime.timers.sleep(5_000)
        },
        patient,
      )
      ;(await live(5_000)).die()
      const second = await live(leaseMs + 720_000)
      if (when === 'soon') {
        await fill(world, ['a'], 1)
        await world.runtime.advance(1_000)
      }
      second.die()
      for (let handovers = 0; when !== 'soon' && handovers < 4; handovers++) {
        const visitor = await live(leaseMs + 360_000)
        await fill(world, ['a'], 1)
        await world.runtime.advance(20_000)
        await visitor.engine.stop()
      }
      await fill(world, ['a'], 1)
      ;(await live(leaseMs + 3_000)).die()
      const last = await live(leaseMs + 30_000)
      expect(await statusesOf(last.engine)).toEqual([['patient', 'retrying']])
    },
  )

  it('a person can let go what was parked for deaths, also with the next process', async () => {
    await using world = await createWorld()
    await fill(world, ['patient', 'bad', 'b'], 2)
    let isMended = false
    const { untilOneLives, live, callsOf, lives } = livesOf(
      world,
      ({ key, amount }, life) => {
        if (key === 'patient') throw failure.transient('not yet')
        return key === 'bad' && amount === 1 && !isMended ? die(life) : undefined
      },
      patient,
    )
    await (await untilOneLives()).engine.stop()
    isMended = true
    const { engine } = await live(leaseMs + 5_000)
    await redrive(world, engine, 'notify')
    expect(callsOf('bad', lives.length)).toEqual([1, 2])
    expect((await statusesOf(engine)).filter(([lane]) => lane === 'bad')).toEqual([])
  })
})

describe('events that are followed because they failed after deaths', () => {
  const slowly = (world: World) => async () => {
    await world.runtime.timers.sleep(3_000)
    throw failure.transient('not yet')
  }

  it('let others of their partition have their turn', async () => {
    await using world = await createWorld()
    const lanes = Array.from({ length: 20 }, (_, i) => `slow-${i}`)
    await fill(world, lanes, 1)
    const fail = slowly(world)
    const { live, callsOf } = livesOf(world, ({ key }) => (key === 'fresh' ? undefined : fail()), retrying)
    for (let i = 0; i < 2; i++) (await live(leaseMs + 500)).die()
    await live(leaseMs + 1_000)
    await fill(world, ['fresh'], 1)
    // As long as it takes to try each of them once.
    await world.runtime.advance(lanes.length * 3_000 + 10_000)
    expect(callsOf('fresh')).toEqual([1])
  })

  it('are not blamed for a death before they were let off', async () => {
    await using world = await createWorld()
    await fill(world, ['slow'], 1)
    const { live, lives, callsOf } = livesOf(
      world,
      slowly(world),
      definePolicy({
        transient: retry({ attempts: 1_000, backoff: fixed('1s') }).then(park),
        outage: false,
        maxDeaths: 4,
      }),
    )
    /** Of something else, while it is tried. */
    const dieOver = async () => {
      const life = await live(0)
      while (lives.at(-1)?.calls.length === 0) await world.runtime.advance(100)
      life.die()
    }
    for (let deaths = 0; deaths < 3; deaths++) await dieOver()
    expect((await trialsOf(world)).map(({ position }) => position)).toContain(1)
    const fourth = await live(leaseMs + 60_000)
    expect(callsOf('slow', 4).length).toBeGreaterThan(10)
    expect(await trialsOf(world)).toEqual([])
    fourth.die()
    await dieOver()
    const last = await live(leaseMs + 20_000)
    expect((await heldOf(last.engine, 'notify')).map(({ status }) => status)).toEqual(['retrying'])
  })
})

describe('a source that never answers', () => {
  it.for([
    ['followed', 1, '1s'],
    ['suspected', 2, '200ms'],
  ] as const)('keeps nobody else in the process waiting for one that is %s', async ([, deaths, backoff]) => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const scripted = { ...createScriptedSource('feed'), versions: 'none' as const }
    let isSilent = false
    const read: typeof scripted.read = (...args) => (isSilent ? new Promise(() => undefined) : scripted.read(...args))
    const deliver = (key: string) => scripted.deliver({ key, type: 'Credited', data: { amount: 1 } })
    let archived = 0
    const archive = defineHandler('archive', { events: bank, on: { Credited: () => void archived++ } })
    const calls: string[] = []
    const begin = async (isDying: boolean) => {
      const notify = defineHandler('notify', {
        events: bank,
        failure: definePolicy({
          transient: retry({ attempts: 100, backoff: fixed(backoff) }).then(park),
          outage: false,
        }),
        timeout: '1h',
        on: {
          Credited: async ({ key }) => {
            calls.push(key)
            if (isDying) return new Promise<never>(() => undefined)
            if (key === 'slow' || deaths === 2) await world.runtime.timers.sleep(2_000)
            if (key === 'fails') throw failure.transient('not yet')
          },
        },
      })
      const source = { ...scripted, read }
      const life = createMortal(world, [defineSubscription(notify, { source }), archive], { poll: '500ms' })
      await life.engine.start()
      return life
    }
    deliver('fails')
    for (let i = 0; i < deaths; i++) {
      const life = await begin(true)
      await world.runtime.advance(leaseMs + 2_000)
      life.die()
    }
    const before = calls.length
    await begin(false)
    while (calls.length === before) await world.runtime.advance(50)
    await world.runtime.advance(300)
    deliver('slow')
    while (!calls.includes('slow')) await world.runtime.advance(50)
    // The first is due by then, and waits for the other one to end.
    await world.runtime.advance(deaths === 1 ? 1_000 : 300)
    isSilent = true
    await world.runtime.advance(10_000)
    await log.append('a', [credited(1)])
    await world.runtime.advance(30_000)
    expect(archived).toBe(1)
  })
})

describe('an event that makes an outage of failures, and kills when it is tried again', () => {
  it('does not kill for ever', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'x'], 1)
    const failedIn = new Set<Mortal>()
    const policy = definePolicy({
      transient: retry({ attempts: 100, backoff: fixed('1s') }).then(park),
      outage: { lanes: 3, backoff: fixed('1s') },
    })
    let isBefore = true
    const { live } = livesOf(
      world,
      async ({ key }, life) => {
        // Before the first death it has failed on its own once, so it is a letter.
        if (isBefore && key !== 'x') return undefined
        if (key === 'x' && failedIn.has(life)) return die(life)
        if (key === 'x' && !isBefore) failedIn.add(life)
        if (key === 'x') await world.runtime.timers.sleep(100)
        throw failure.transient('not yet')
      },
      policy,
    )
    const zero = await live(800)
    await zero.engine.stop()
    isBefore = false
    await fill(world, ['a', 'b'], 1)
    let deaths = 0
    for (; deaths < 10; deaths++) {
      const life = await live(leaseMs + 60_000)
      if (!life.isDead) break
    }
    expect(deaths).toBeLessThan(5)
  })
})

describe('a letter that is followed, and that a person ends', () => {
  it.for(['discard', 'resolve'] as const)('is on trial no more: %s', async (act) => {
    await using world = await createWorld()
    await fill(world, ['slow'], 1)
    const { live, lives } = livesOf(
      world,
      async () => {
        await world.runtime.timers.sleep(3_000)
        throw failure.transient('not yet')
      },
      definePolicy({ transient: retry({ attempts: 1_000, backoff: fixed('1m') }).then(park), outage: false }),
    )
    ;(await live(1_000)).die()
    const second = await live(leaseMs)
    while ((lives.at(-1)?.calls.length ?? 0) < 2) await world.runtime.advance(1_000)
    second.die()
    const third = await live(leaseMs + 20_000)
    expect((await trialsOf(world)).map(({ position }) => position)).toEqual([1])
    await redrive(world, third.engine, 'notify', { act })
    expect(await heldOf(third.engine, 'notify')).toEqual([])
    await world.runtime.advance(60_000)
    await third.engine.stop()
    const fourth = await live(leaseMs + 60_000)
    await fourth.engine.stop()
    expect(await trialsOf(world)).toEqual([])
  })
})

describe('an event that was parked for deaths, while another lane waits for its breaker', () => {
  it('is tried when a person lets it go, by the next process', async () => {
    await using world = await createWorld()
    await fill(world, ['waits', 'bad', 'b'], 1)
    let isMended = false
    const settings = { opens: { failures: 3 } } as const
    const { untilOneLives, live, callsOf, lives } = livesOf(
      world,
      ({ key }, life) => (key === 'bad' && !isMended ? die(life) : undefined),
      plain,
      {},
      { ...settings, key: ({ key }) => key },
    )
    const breaker = createBreaker({ store: world.store, name: 'notify:waits', ...settings, ...world.runtime })
    await breaker.isolate('a test', 'it waits')
    const { engine: first, deaths } = await untilOneLives()
    expect(deaths).toBe(3)
    await first.stop()
    isMended = true
    const { engine } = await live(leaseMs + 5_000)
    const [held] = (await heldOf(engine, 'notify')).filter(({ lane }) => lane === 'bad')
    expect(held?.status).toBe('parked')
    await redrive(world, engine, 'notify', { filter: { lane: 'bad' } })
    expect(callsOf('bad', lives.length)).toEqual([1])
  })
})

describe('events that are followed, while another lane waits for its breaker,', () => {
  it('let others of their partition have their turn', async () => {
    await using world = await createWorld()
    const lanes = Array.from({ length: 20 }, (_, i) => `slow-${i}`)
    await fill(world, ['waits', ...lanes], 1)
    const settings = { opens: { failures: 300 } } as const
    const { live, callsOf } = livesOf(
      world,
      async ({ key }) => {
        if (key === 'fresh') return
        await world.runtime.timers.sleep(3_000)
        throw failure.transient('not yet')
      },
      retrying,
      {},
      { ...settings, key: ({ key }) => key },
    )
    const breaker = createBreaker({ store: world.store, name: 'notify:waits', ...settings, ...world.runtime })
    await breaker.isolate('a test', 'it waits')
    for (let i = 0; i < 2; i++) (await live(leaseMs + 500)).die()
    await live(leaseMs + 1_000)
    await fill(world, ['fresh'], 1)
    await world.runtime.advance(lanes.length * 3_000 + 10_000)
    expect(callsOf('fresh')).toEqual([1])
  })
})

async function trialsOf({ store }: World) {
  return (await store.subscriptions.partitions('notify'))[0]?.trials ?? []
}

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

describe('two partitions of a process that each have an event to blame', () => {
  it('do not ask the store about them without end', async () => {
    await using world = await createWorld()
    const keys = Array.from({ length: 8 }, (_, i) => `key-${i}`)
    await fill(world, keys, 1)
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
    // Two processes, with one partition each, die over what they try: before, on record, and each over an event alone.
    for (let deaths = 0; deaths < 3; deaths++) {
      const pair = [await begin(true), await begin(true)]
      await world.runtime.advance(3 * leaseMs)
      for (const life of pair) life.die()
    }
    const trials = (await subscriptions.partitions('notify')).map((one) =>
      one.trials.map(({ position }) => position > 0),
    )
    expect(trials).toEqual([
      [false, true],
      [false, true],
    ])
    // Something that runs already when they are to be tried: both wait until it ends.
    const last = await begin(false)
    await world.runtime.advance(6 * leaseMs)
    expect([last.isDead, asked < 500]).toEqual([false, true])
    expect((await heldOf(last.engine, 'notify')).map(({ status }) => status)).toEqual(['parked', 'parked'])
  })
})
