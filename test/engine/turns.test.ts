import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, type World } from '../fixtures.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import {
  createLog,
  defineHandler,
  definePolicy,
  defineProjection,
  defineSubscription,
  type Duration,
  type EngineOptions,
  fixed,
  park,
  retry,
  type Source,
  type Store,
  StoreError,
} from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { operatorOf } from '../acts.ts'

// After deaths, what may have killed is tried alone in its process. This is about everybody else in it.

const leaseMs = 10_000
const never = () => new Promise<never>(() => undefined)
const plain = definePolicy({ outage: false })

type Subscriptions = EngineOptions['subscriptions']

/** Two processes that die over what they are given; then one that lives. A fold can't wait, so it is what says when they die. */
async function afterDeaths(
  world: World,
  dying: (die: () => void) => Subscriptions,
  living: Subscriptions,
  store?: Store,
): Promise<Mortal> {
  for (let deaths = 0; deaths < 2; deaths++) {
    const life: Mortal = createMortal(
      world,
      dying(() => life.die()),
    )
    await life.engine.start()
    await world.runtime.advance(leaseMs + 3_000)
    life.die()
  }
  const life = createMortal(world, living, store && { store })
  await life.engine.start()
  return life
}

/** Sums up what is credited. */
function summing(during: () => void = () => undefined) {
  return defineProjection('sums', {
    events: bank,
    initial: () => ({ sum: 0 }),
    on: {
      Credited: ({ sum }, { data }) => {
        during()
        return { sum: sum + data.amount }
      },
    },
  })
}

/** Does something with each event, for as long as it takes. */
function handling(act: () => Promise<void>, options: { readonly source?: Source; readonly partitions?: number } = {}) {
  const handler = defineHandler('sums', { events: bank, failure: plain, timeout: '1h', on: { Credited: act } })
  return defineSubscription(handler, options)
}

async function filled(keys: number, eventsEach = 1) {
  const world = await createWorld()
  const log = createLog({ store: world.store, events: bank })
  for (let key = 0; key < keys; key++)
    await log.append(
      `key-${key}`,
      Array.from({ length: eventsEach }, () => credited(1)),
    )
  return { world, log, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

/** A handler whose events never end by themselves. It is tried again and again, and stands still at each. */
function hanging(timeout: Duration) {
  const policy = definePolicy({
    transient: retry({ attempts: 100_000, backoff: fixed('100ms') }).then(park),
    outage: false,
  })
  const handler = defineHandler('notify', {
    events: bank,
    order: 'partition',
    failure: policy,
    timeout,
    on: { Credited: never },
  })
  return defineSubscription(handler, { partitions: 3 })
}

describe('while events hang that may have killed, and are tried alone by turns', () => {
  it('the others in the process have half of the time', async () => {
    await using setup = await filled(6, 5)
    const { world, log } = setup
    let mailed = 0
    const mail = defineHandler('mail', { events: bank, on: { Credited: () => void mailed++ } })
    const { engine } = await afterDeaths(world, () => [hanging('1h')], [hanging('3s'), summing(), mail])
    await world.runtime.advance(60_000)
    for (let i = 0; i < 200; i++) {
      await log.append('late', [credited(1)])
      await world.runtime.advance(100)
    }
    await world.runtime.advance(5_000)
    expect([await countsOf(engine, 'sums'), mailed]).toMatchObject([{ applied: 230 }, 230])
  })
})

describe('events that may have killed, and are quick', () => {
  it.for([1, 8])('are through at once in %i partitions, however slow others in the process are', async (partitions) => {
    await using setup = await filled(40, 5)
    const { world } = setup
    const { subscriptions } = world.store
    const seen = { commits: 0, through: 0 }
    const commit: typeof subscriptions.commit = (one) => {
      if (one.lease.subscription === 'sums') seen.commits++
      return subscriptions.commit(one)
    }
    const slow = defineHandler('slow', {
      events: bank,
      concurrency: 10,
      on: { Credited: () => world.runtime.timers.sleep(2_000) },
    })
    const quick = handling(async () => void seen.through++, { partitions })
    const store = { ...world.store, subscriptions: { ...subscriptions, commit } }
    const { engine } = await afterDeaths(world, () => [handling(never, { partitions })], [quick, slow], store)
    await world.runtime.advance(leaseMs + 20_000)
    expect(seen.through).toBe(200)
    // With the end of one the next begins.
    expect(seen.commits).toBeLessThan(260)
    expect((await countsOf(engine, 'slow'))?.applied).toBeGreaterThanOrEqual(60)
  })

  it('are through at once in a projection', async () => {
    await using setup = await filled(40, 5)
    const { world } = setup
    const slow = defineHandler('slow', { events: bank, on: { Credited: () => world.runtime.timers.sleep(2_000) } })
    const dying = (die: () => void) => [summing(die)]
    const { engine } = await afterDeaths(world, dying, [summing(), slow])
    await world.runtime.advance(leaseMs + 5_000)
    expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 200 })
  })
})

describe('whose source is away', () => {
  function feed() {
    const source = { ...createScriptedSource('feed'), versions: 'none' as const }
    const state = { isAway: false, isSilent: false }
    const asked = <T>(answer: () => Promise<T>): Promise<T> => {
      if (state.isSilent) return never()
      return state.isAway ? Promise.reject(new Error('the source is away')) : answer()
    }
    const read: typeof source.read = (...args) => asked(() => source.read(...args))
    const head = () => asked(() => source.head())
    const deliver = (key: string) => source.deliver({ key, type: 'Credited', data: { amount: 1 } })
    return { state, deliver, source: { ...source, read, head } }
  }

  /** Something else in the process, with one thing to do. */
  function archiving() {
    const done = { archived: 0 }
    const archive = defineHandler('archive', { events: bank, on: { Credited: () => void done.archived++ } })
    return { done, archive }
  }

  it('keeps nobody waiting behind it, and what it had read is handled', async () => {
    await using setup = await filled(1, 5)
    const { world } = setup
    const { state, deliver, source } = feed()
    const fed: string[] = []
    const feeding = defineSubscription(
      defineHandler('feeding', { events: bank, on: { Credited: ({ key }) => void fed.push(key) } }),
      { source },
    )
    const slow = handling(() => world.runtime.timers.sleep(3_000))
    const { engine } = await afterDeaths(world, () => [handling(never), feeding], [slow, feeding])
    await world.runtime.advance(leaseMs + 1_000)
    deliver('f')
    await world.runtime.advance(500)
    state.isAway = true
    await world.runtime.advance(60_000)
    expect([await countsOf(engine, 'sums'), fed]).toMatchObject([{ applied: 5 }, ['f']])
  })

  it('is blocked once, and not again with everything that is kept meanwhile', async () => {
    await using setup = await filled(0)
    const { world } = setup
    const { state, deliver, source } = feed()
    for (let i = 0; i < 40; i++) deliver(`key-${i}`)
    const slow = defineHandler('slow', {
      events: bank,
      concurrency: 1,
      on: { Credited: () => world.runtime.timers.sleep(1_500) },
    })
    const engine = world.engine([defineSubscription(slow, { source })])
    const states: string[] = []
    await engine.start()
    await world.runtime.advance(1_000)
    engine.on('subscription.state', ({ to }) => void states.push(to.state))
    state.isAway = true
    await world.runtime.advance(30_000)
    expect(states).toEqual(['blocked'])
    expect((await countsOf(engine, 'slow'))?.applied).toBeGreaterThan(10)
  })

  it.for(['isAway', 'isSilent'] as const)('lets the others go on when its trial is over: %s', async (how) => {
    await using setup = await filled(0)
    const { world, log } = setup
    const { state, deliver, source } = feed()
    for (const key of ['f', 'g', 'h']) deliver(key)
    let archived = 0
    const archive = defineHandler('archive', { events: bank, on: { Credited: () => void archived++ } })
    const slow = handling(() => world.runtime.timers.sleep(3_000), { source })
    const { engine } = await afterDeaths(world, () => [handling(never, { source })], [slow, archive])
    await world.runtime.advance(leaseMs + 1_000)
    state[how] = true
    await log.append('a', [credited(1)])
    await world.runtime.advance(60_000)
    expect(archived).toBe(1)
    // What was on trial is kept.
    expect((await countsOf(engine, 'sums'))?.applied).toBeGreaterThanOrEqual(2)
  })

  it('keeps nobody from being tried alone, in a projection that reads', async () => {
    await using setup = await filled(1, 5)
    const { world } = setup
    const { state, source } = feed()
    const reading = defineProjection('reading', {
      events: bank,
      initial: () => ({ sum: 0 }),
      on: { Credited: (row) => row },
    })
    const quick = handling(async () => undefined)
    const living = [quick, defineSubscription(reading, { source })]
    const { engine } = await afterDeaths(world, () => [handling(never)], living)
    await world.runtime.advance(1_000)
    state.isSilent = true
    await world.runtime.advance(leaseMs + 30_000)
    expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 5 })
  })

  it.for(['isAway', 'isSilent'] as const)(
    'keeps nobody waiting for a projection that is suspected: %s',
    async (how) => {
      await using setup = await filled(0)
      const { world, log } = setup
      const { state, deliver, source } = feed()
      const { done, archive } = archiving()
      for (const key of ['f', 'g', 'h']) deliver(key)
      const fed = (during?: () => void) => defineSubscription(summing(during), { source })
      const { engine } = await afterDeaths(world, (die) => [fed(die)], [fed(), archive])
      const { read } = source
      // It is the owner by then, and about to read.
      source.read = (...args) => {
        state[how] = true
        return read(...args)
      }
      await world.runtime.advance(leaseMs + 5_000)
      await log.append('a', [credited(1)])
      await world.runtime.advance(1_000)
      expect([done.archived, await countsOf(engine, 'sums')]).toMatchObject([1, { applied: 0 }])
    },
  )

  it.for(['isAway', 'isSilent'] as const)('keeps nobody waiting between two events that are quick: %s', async (how) => {
    await using setup = await filled(0)
    const { world, log } = setup
    const { state, deliver, source } = feed()
    const { done, archive } = archiving()
    for (const key of ['f', 'g', 'h', 'i']) deliver(key)
    const fed = (during?: () => void) => defineSubscription(summing(during), { source })
    let tried = 0
    const living = () => {
      if (++tried === 2) state[how] = true
    }
    const { engine } = await afterDeaths(world, (die) => [fed(die)], [fed(living), archive])
    await world.runtime.advance(leaseMs)
    await log.append('a', [credited(1)])
    await world.runtime.advance(10_000)
    expect([done.archived, await countsOf(engine, 'sums')]).toMatchObject([1, { applied: 2 }])
  })

  it.for(['isAway', 'isSilent'] as const)(
    'keeps nobody waiting when the answer to its page is lost: %s',
    async (how) => {
      await using setup = await filled(0)
      const { world, log } = setup
      const { state, deliver, source } = feed()
      const { done, archive } = archiving()
      for (const key of ['f', 'g', 'h']) deliver(key)
      const { subscriptions } = world.store
      const commit: typeof subscriptions.commit = async (one) => {
        const result = await subscriptions.commit(one)
        if (one.lease.subscription !== 'sums' || one.to.position !== 2 || one.trial) return result
        state[how] = true
        throw new StoreError('STORE_UNAVAILABLE', 'the answer is lost')
      }
      const store = { ...world.store, subscriptions: { ...subscriptions, commit } }
      const fed = (during?: () => void) => defineSubscription(summing(during), { source })
      const { engine } = await afterDeaths(world, (die) => [fed(die)], [fed(), archive], store)
      await world.runtime.advance(leaseMs + 1_000)
      expect([state[how], await countsOf(engine, 'sums')]).toMatchObject([true, { applied: 2 }])
      await log.append('a', [credited(1)])
      await world.runtime.advance(1_000)
      expect(done.archived).toBe(1)
      const [stored] = await subscriptions.partitions('sums')
      // What others have died over stays on record.
      expect(stored?.trials.map(({ position }) => position)).toEqual([0])
    },
  )
})

describe('what the store has on trial', () => {
  /** A store that once loses the answer to a trial of an event, and takes its time to say what it has from then on. */
  function forgetful(world: World, lost: () => Promise<unknown>) {
    const { subscriptions } = world.store
    const state = { losses: 0 }
    const commit: typeof subscriptions.commit = async (one) => {
      const result = await subscriptions.commit(one)
      if ((one.trial?.position ?? 0) === 0 || state.losses++ > 0) return result
      await lost()
      throw new StoreError('STORE_UNAVAILABLE', 'the answer is lost')
    }
    const load: typeof subscriptions.load = async (...whose) => {
      if (state.losses > 0) await world.runtime.timers.sleep(200)
      return subscriptions.load(...whose)
    }
    return { state, store: { ...world.store, subscriptions: { ...subscriptions, commit, load } } }
  }

  /** A handler that looks what else is on trial while it runs. */
  function watching(world: World, name: string) {
    const beside: number[] = []
    const archive = defineHandler('archive', {
      events: bank,
      on: {
        Credited: async () => {
          const [state] = await world.store.subscriptions.partitions(name)
          beside.push(...(state?.trials ?? []).map(({ position }) => position).filter((position) => position > 0))
        },
      },
    })
    return { beside, archive }
  }

  it.for(['a handler', 'a projection'])('is alone though nobody knows, also where it is paused: %s', async (kind) => {
    await using setup = await filled(3)
    const { world, log } = setup
    let last: Mortal | undefined
    const lost = async () => {
      if (last) void operatorOf(last.store).pause('sums', 'a look')
      await world.runtime.timers.sleep(20)
    }
    const { state, store } = forgetful(world, lost)
    const { beside, archive } = watching(world, 'sums')
    const isHandler = kind === 'a handler'
    const dying = (die: () => void) => [isHandler ? handling(never) : summing(die)]
    const living = isHandler ? handling(async () => undefined) : summing()
    last = await afterDeaths(world, dying, [living, archive], store)
    for (let i = 0; i < 150; i++) {
      await log.append('z', [credited(1)])
      await world.runtime.advance(100)
    }
    expect([state.losses > 0, beside]).toEqual([true, []])
    expect((await countsOf(last.engine, 'archive'))?.applied).toBeGreaterThan(100)
  })
})
