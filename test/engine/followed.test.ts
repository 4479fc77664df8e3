import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import { die, fill, leaseMs, livesOf, plain, retrying, trialsOf } from '../lives.ts'
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
} from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'

// After deaths, what failed and is to be tried again is tried alone for a while: it may be one that kills only then.

describe('an event that fails first, and kills when it is tried again', () => {
  /** Fails first, and then kills. */
  function fickle(kind: 'transient' | 'permanent' = 'transient') {
    const failedIn = new Set<Mortal>()
    return (life: Mortal): unknown => {
      if (failedIn.has(life)) return die(life)
      failedIn.add(life)
      throw failure[kind]('not yet')
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

  it('is parked also where its policy tries again what is its own fault', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'bad'], 2)
    const tryIt = fickle('permanent')
    const { untilOneLives } = livesOf(
      world,
      ({ key }, life) => (key === 'bad' ? tryIt(life) : undefined),
      definePolicy({ permanent: retry({ attempts: 100, backoff: fixed('1s') }).then(park), outage: false }),
    )
    const { engine, deaths } = await untilOneLives()
    expect(deaths).toBe(4)
    expect((await heldOf(engine, 'notify')).map(({ sequence, status }) => [sequence, status])).toEqual([
      [1, 'parked'],
      [2, 'queued'],
    ])
    expect(await trialsOf(world)).toEqual([])
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
    await world.operator().isolateBreaker('notify:waits', 'it waits', { new: true })
    const { engine: first, deaths } = await untilOneLives()
    expect(deaths).toBe(4)
    await first.stop()
    isMended = true
    const { engine } = await live(leaseMs + 5_000)
    expect((await heldOf(engine, 'notify')).find(({ lane }) => lane === 'bad')?.status).toBe('parked')
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
    await world.operator().isolateBreaker('notify:waits', 'it waits', { new: true })
    for (let i = 0; i < 2; i++) (await live(leaseMs + 500)).die()
    await live(leaseMs + 1_000)
    await fill(world, ['fresh'], 1)
    await world.runtime.advance(lanes.length * 3_000 + 10_000)
    expect(callsOf('fresh')).toEqual([1])
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
