import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import { away } from '../noting.ts'
import { ask, found } from '../redrive/asking.ts'
import {
  bounded,
  categorised,
  createLog,
  defineHandler,
  defineProjection,
  defineSubscription,
  type EngineOptions,
  type Handler,
  type Policy,
  type Projection,
  type SqlProjection,
  type Store,
} from '../../src/index.ts'
import { defineSqlProjection } from '../../src/sqlite/index.ts'
import type { RedriveRequest } from '../../src/redrive/redrive.ts'
import type { Subscription } from '../../src/subscription/subscription.ts'
import type { CommitOutcome, Trial } from '../../src/subscription/subscription-store.ts'
import { createScriptedSource } from '../../src/testing/source.ts'

// Projections whose events kill the process, in virtual time. Those that really do are in test/handlers.

const leaseMs = 10_000
/** For those that die of nothing. */
const never = { die: () => undefined } as Mortal
const deadly = 13

type Consumer = Projection | SqlProjection | Subscription

/** One row for each key, from the amounts it got. Only 13 is deadly. */
function sums(life: () => Mortal, maxDeaths = 4): Projection {
  return defineProjection('sums', {
    events: bank,
    maxDeaths,
    initial: () => ({ amounts: '' }),
    on: {
      Credited: ({ amounts }, { data }) => {
        if (data.amount === deadly) life().die()
        return { amounts: `${amounts} ${data.amount}` }
      },
    },
  })
}

function lines(life: () => Mortal): SqlProjection {
  return defineSqlProjection('lines', {
    events: bank,
    on: {
      Credited: ({ key, data }, tx: DatabaseSync) => {
        if (data.amount === deadly) life().die()
        // The store of the dead is shared with the living here, and its transaction must end somehow.
        if (life().isDead) throw new Error('dead')
        tx.exec('CREATE TABLE IF NOT EXISTS lines (key TEXT, amount INTEGER)')
        tx.prepare('INSERT INTO lines VALUES (?, ?)').run(key, data.amount)
      },
    },
  })
}

/** Starts one after the other until one lives on. */
async function untilOneLives(
  world: World,
  consumersOf: (life: () => Mortal) => readonly Consumer[],
  most = 8,
  options: Partial<EngineOptions> = {},
) {
  for (let deaths = 0; deaths < most; deaths++) {
    const life: Mortal = createMortal(
      world,
      consumersOf(() => life),
      { page: { events: 10 }, ...options },
    )
    await life.engine.start()
    await world.runtime.advance(leaseMs + 5_000)
    if (!life.isDead) return { engine: life.engine, deaths }
  }
  throw new Error(`${most} processes died.`)
}

/** The real one, but for what is given. */
function storeWith({ store }: World, subscriptions: Partial<Store['subscriptions']>): Store {
  return { ...store, subscriptions: { ...store.subscriptions, ...subscriptions } }
}

async function trialsOf({ store }: World, name: string) {
  return (await store.subscriptions.partitions(name)).flatMap(({ trials }) => trials)
}

describe.for([
  ['a fold', 'sums', sums],
  ['SQL', 'lines', lines],
] as const)('an event that kills the process in %s', ([, name, consumerOf]) => {
  it('is parked after four deaths, and none of its neighbours is', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 1; i <= 15; i++) {
      await log.append('a', [credited(i)])
      await log.append('b', [credited(100 + i)])
    }
    const { engine, deaths } = await untilOneLives(world, (life) => [consumerOf(life)])
    expect(deaths).toBe(4)
    expect(await countsOf(engine, name)).toMatchObject({ applied: 27, held: 3 })
    const held = await heldOf(engine, name)
    expect(held.map(({ lane, sequence, status, failure }) => [lane, sequence, status, failure?.rule])).toEqual([
      ['a', 13, 'parked', 'crash'],
      ['a', 14, 'queued', undefined],
      ['a', 15, 'queued', undefined],
    ])
    expect(await engine.verify(name)).toMatchObject({ ok: true })
    expect(await trialsOf(world, name)).toEqual([])
  })

  it('costs two more deaths when it is not the only one', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c']) await log.append(key, [credited(1), credited(deadly), credited(3)])
    const { engine, deaths } = await untilOneLives(world, (life) => [consumerOf(life)], 10)
    expect(deaths).toBe(8)
    expect(await countsOf(engine, name)).toMatchObject({ applied: 3, held: 6 })
  })
})

describe('after deaths', () => {
  /** So many die over one event, the last two of them over it alone; gives the trial of one of them. */
  async function die(world: World, consumerOf: (life: () => Mortal) => Consumer | Handler): Promise<Trial> {
    await dieOver(world, consumerOf)
    const trial = (await trialsOf(world, 'sums')).find(({ position }) => position === 2)
    return trial as Trial
  }

  async function dieOver(world: World, consumerOf: (life: () => Mortal) => Consumer | Handler): Promise<void> {
    for (let deaths = 0; deaths < 4; deaths++) {
      const life: Mortal = createMortal(world, [consumerOf(() => life)])
      await life.engine.start()
      await world.runtime.advance(leaseMs + 5_000)
      expect(life.isDead).toBe(true)
    }
  }

  const handlerWith = (failure: Policy) => (life: () => Mortal) =>
    defineHandler('sums', {
      events: bank,
      on: { Credited: ({ data }) => (data.amount === deadly ? life().die() : undefined) },
      failure,
    })
  const handler = handlerWith(bounded())
  /** Parks what it can't do, whoever is to blame. */
  const impatient = handlerWith(categorised())

  it.for([
    ['a fold', 'its store fails', sums],
    ['a fold', 'its source is slow', sums],
    ['a handler', 'its store fails', handler],
    ['a handler', 'its source is slow', handler],
  ] as const)(
    'nobody is blamed in %s for what one tried who lives, and says so while %s',
    async ([, when, consumerOf]) => {
      await using world = await createWorld()
      const log = createLog({ store: world.store, events: bank })
      await log.append('a', [credited(1), credited(deadly)])
      const { instance } = await die(world, consumerOf)
      const { subscriptions } = world.store
      let asked = 0
      const meanwhile = async () => {
        if (asked++ > 0) return
        await world.runtime.timers.sleep(1_000)
        await subscriptions.acquit('sums', 0, instance)
        if (when === 'its store fails') throw away()
      }
      const isCommit = when === 'its store fails'
      const store: Store = {
        ...world.store,
        subscriptions: {
          ...subscriptions,
          commit: async (commit) => {
            if (isCommit) await meanwhile()
            return subscriptions.commit(commit)
          },
        },
        log: {
          ...world.store.log,
          readAll: async (...args) => {
            if (!isCommit) await meanwhile()
            return world.store.log.readAll(...args)
          },
        },
      }
      const engine = world.engine([consumerOf(() => never)], { store })
      await engine.start()
      await world.runtime.advance(leaseMs + 20_000)
      expect(asked).toBeGreaterThan(1)
      expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 2, held: 0 })
      expect(await trialsOf(world, 'sums')).toEqual([])
    },
  )

  it.for([
    ['a fold', sums],
    ['a handler', impatient],
  ] as const)(
    'nobody is blamed in %s while the store does not say whether those live who tried it',
    async ([, consumerOf]) => {
      await using world = await createWorld()
      const log = createLog({ store: world.store, events: bank })
      await log.append('a', [credited(1), credited(deadly)])
      const { instance } = await die(world, consumerOf)
      const { subscriptions } = world.store
      let asked = 0
      const store: Store = {
        ...world.store,
        subscriptions: {
          ...subscriptions,
          load: async (...args) => {
            asked++
            // The first is whoever takes over.
            if (asked === 1 || asked > 7) return subscriptions.load(...args)
            if (asked === 7) await subscriptions.acquit('sums', 0, instance)
            throw away()
          },
        },
      }
      const states: string[] = []
      const engine = world.engine([consumerOf(() => never)], { store })
      engine.on('subscription.state', ({ to }) => void states.push(to.state === 'blocked' ? to.by : to.state))
      await engine.start()
      await world.runtime.advance(5 * leaseMs)
      expect(asked).toBeGreaterThan(7)
      expect(states).toContain('store')
      expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 2, held: 0 })
      expect(await trialsOf(world, 'sums')).toEqual([])
    },
  )

  it('what is let go after it was parked is tried, also where nobody heard that it was parked', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), credited(deadly)])
    for (let i = 0; i < 40; i++) await log.append('b', [credited(100 + i)])
    await die(world, sums)
    const { subscriptions } = world.store
    let commits = 0
    const store = storeWith(world, {
      commit: async (commit) => {
        const outcome = await subscriptions.commit(commit)
        if (++commits === 1) throw away()
        // While the others are still tried one by one.
        if (commits === 10) await ask(world.store, 'sums')
        await world.runtime.timers.sleep(100)
        return outcome
      },
    })
    const engine = world.engine([sums(() => never)], { store })
    await engine.start()
    await world.runtime.advance(60_000)
    expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 42, held: 0 })
  })

  it.for([
    ['a fold', 'sums', sums],
    ['SQL', 'lines', lines],
  ] as const)(
    'what is let go is tried, also where nobody heard that it was parked, and nothing else is left to try: %s',
    async ([, name, consumerOf]) => {
      await using world = await createWorld()
      const log = createLog({ store: world.store, events: bank })
      await log.append('a', [credited(1), credited(deadly)])
      await dieOver(world, consumerOf)
      const { subscriptions } = world.store
      let parked = 0
      const unheard = (outcome: CommitOutcome) => {
        if (parked++ === 0) throw away()
        return outcome
      }
      const store = storeWith(world, {
        commit: async (commit) => {
          const outcome = await subscriptions.commit(commit)
          return commit.held.length > 0 ? unheard(outcome) : outcome
        },
        perform: async (...args) => unheard(await subscriptions.perform(...args)),
      })
      const engine = world.engine([consumerOf(() => never)], { store })
      await engine.start()
      await world.runtime.advance(leaseMs + 20_000)
      expect(parked).toBe(1)
      expect(await countsOf(engine, name)).toMatchObject({ applied: 1, held: 1 })
      await ask(world.store, name)
      await world.runtime.advance(20_000)
      expect(await countsOf(engine, name)).toMatchObject({ applied: 2, held: 0 })
    },
  )

  /** One parks it, and stops while the others are still tried one by one; a person lets it go. */
  async function parkAndAsk(
    world: World,
    consumerOf: (life: () => Mortal) => Consumer,
    name: string,
    request: Partial<RedriveRequest> = {},
  ) {
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), credited(deadly)])
    for (let i = 0; i < 40; i++) await log.append('b', [credited(100 + i)])
    await dieOver(world, consumerOf)
    const { subscriptions } = world.store
    let commits = 0
    const slowly = async () => {
      commits++
      await world.runtime.timers.sleep(1_000)
    }
    const store = storeWith(world, {
      commit: (commit) => slowly().then(() => subscriptions.commit(commit)),
      perform: (...args) => slowly().then(() => subscriptions.perform(...args)),
    })
    const engine = world.engine([consumerOf(() => never)], { store })
    await engine.start()
    while (commits < 6) await world.runtime.advance(500)
    const stopped = engine.stop()
    await world.runtime.advance(10_000)
    await stopped
    expect((await heldOf(engine, name)).map(({ failure }) => failure?.rule)).toEqual(['crash'])
    expect(await trialsOf(world, name)).not.toEqual([])
    return ask(world.store, name, request)
  }

  it.for([
    ['a fold', 'sums', sums],
    ['SQL', 'lines', lines],
  ] as const)('what is let go by a person is tried by the next process: %s', async ([, name, consumerOf]) => {
    await using world = await createWorld()
    const id = await parkAndAsk(world, consumerOf, name)
    const engine = world.engine([consumerOf(() => never)])
    await engine.start()
    await world.runtime.advance(60_000)
    expect(await countsOf(engine, name)).toMatchObject({ applied: 42, held: 0 })
    expect(await found(world.store, id)).toMatchObject({ status: 'done', byState: { done: 1 } })
    expect(await trialsOf(world, name)).toEqual([])
  })

  it.for([
    ['a fold', 'sums', sums],
    ['SQL', 'lines', lines],
  ] as const)('what is let go by a person, and still kills, is parked again: %s', async ([, name, consumerOf]) => {
    await using world = await createWorld()
    const id = await parkAndAsk(world, consumerOf, name)
    const { engine, deaths } = await untilOneLives(world, (life) => [consumerOf(life)])
    // Those who died over everything still count.
    expect(deaths).toBe(2)
    await world.runtime.advance(60_000)
    expect(await countsOf(engine, name)).toMatchObject({ applied: 41, held: 1 })
    expect(await found(world.store, id)).toMatchObject({ status: 'done', byState: { failed: 1 } })
    expect(await trialsOf(world, name)).toEqual([])
  })

  it('what a person discards is not tried while the others are tried one by one', async () => {
    await using world = await createWorld()
    const id = await parkAndAsk(world, sums, 'sums', { act: 'discard' })
    const engine = world.engine([sums(() => never)])
    await engine.start()
    await world.runtime.advance(60_000)
    expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 41, held: 0, discarded: 1 })
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 1 })
  })

  it('is as quick as before when the suspects are through, and leaves no trial behind', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append(
      'a',
      Array.from({ length: 2_000 }, (_, i) => credited(i === 3 ? deadly : 0)),
    )
    await log.append(
      'b',
      Array.from({ length: 2_000 }, () => credited(1)),
    )
    const { engine, deaths } = await untilOneLives(world, (life) => [sums(life)])
    expect(deaths).toBe(4)
    const [state] = await world.store.subscriptions.partitions('sums')
    expect(state?.trials).toEqual([])
    // Each of the ten suspects takes two commits, and from then on ten events take one.
    expect(state?.checkpoint.commits).toBeLessThan(500)
    expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 2_003, held: 1_997 })
    expect(await engine.verify('sums')).toMatchObject({ ok: true })
  })

  it('parks a letter whose turn had come, and not what waits behind it', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const event = (version: number, amount: number) => ({ key: 'a', type: 'Credited', version, data: { amount } })
    source.deliver(event(1, 1), event(3, deadly), event(4, 4), event(2, 2))
    const { engine, deaths } = await untilOneLives(world, (life) => [defineSubscription(sums(life), { source })])
    expect(deaths).toBe(4)
    const held = await heldOf(engine, 'sums')
    expect(held.map(({ sequence, status, failure }) => [sequence, status, failure?.rule])).toEqual([
      [3, 'parked', 'crash'],
      [4, 'queued', undefined],
    ])
    expect(await countsOf(engine, 'sums')).toMatchObject({ applied: 2, held: 2 })
  })

  it('parks an event that kills though whoever comes next has lanes to let go first', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    let isBroken = true
    const mended = (life: () => Mortal) =>
      defineProjection('sums', {
        events: bank,
        initial: () => ({ amounts: '' }),
        on: {
          Credited: ({ amounts }, { data }) => {
            if (isBroken) throw new Error('a bug')
            if (data.amount === deadly) life().die()
            return { amounts: `${amounts} ${data.amount}` }
          },
        },
      })
    for (let i = 0; i < 100; i++) await log.append(`lane-${i}`, [credited(1)])
    const { engine: first } = await untilOneLives(world, (life) => [mended(life)])
    await first.stop()
    isBroken = false
    await ask(world.store, 'sums')
    await log.append('bad', [credited(deadly)])
    const { engine, deaths } = await untilOneLives(world, (life) => [mended(life)])
    expect(deaths).toBe(4)
    const held = await heldOf(engine, 'sums')
    expect(held.map(({ lane, status, failure }) => [lane, status, failure?.rule])).toEqual([['bad', 'parked', 'crash']])
  })

  it('parks a letter that kills whoever lets it go, and lets the others go', async () => {
    await using world = await createWorld()
    let isBroken = true
    const mended = (life: () => Mortal) =>
      defineProjection('sums', {
        events: bank,
        initial: () => ({ amounts: '' }),
        on: {
          Credited: ({ amounts }, { data }) => {
            if (isBroken) throw new Error('a bug')
            if (data.amount === deadly) life().die()
            return { amounts: `${amounts} ${data.amount}` }
          },
        },
      })
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 20; i++)
      await log.append(`key-${i}`, [credited(1), credited(i === 12 ? deadly : 2), credited(3)])
    const first = world.engine([mended(() => never)])
    await world.settle(first)
    await first.stop()
    isBroken = false
    const id = await ask(world.store, 'sums')
    const { engine, deaths } = await untilOneLives(world, (life) => [mended(life)], 20)
    expect(deaths).toBe(4)
    expect(await found(world.store, id)).toMatchObject({
      status: 'done',
      letters: 58,
      byState: { done: 19, failed: 1 },
    })
    const held = await heldOf(engine, 'sums')
    expect(held.map(({ lane, sequence, status, failure }) => [lane, sequence, status, failure?.rule])).toEqual([
      ['key-12', 2, 'parked', 'crash'],
      ['key-12', 3, 'queued', undefined],
    ])
    expect(await engine.verify('sums')).toMatchObject({ ok: true })
    expect(await trialsOf(world, 'sums')).toEqual([])
  })

  it('parks an event that kills, though the store fails in each life before it is tried', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('bad', [credited(1)])
    const first = world.engine([sums(() => never, 4)])
    await world.settle(first)
    await first.stop()
    await log.append('bad', [credited(deadly)])
    const { rows } = world.store
    let isFirst = true
    const load: typeof rows.load = (...args) => {
      if (isFirst) {
        isFirst = false
        throw away()
      }
      return rows.load(...args)
    }
    const store = { ...world.store, rows: { ...rows, load } }
    const begin = (life: () => Mortal) => {
      isFirst = true
      return [sums(life, 4)]
    }
    const { deaths } = await untilOneLives(world, begin, 8, { store })
    expect(deaths).toBe(4)
  })

  it('blames nobody in another projection of the same process', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 1; i <= 20; i++) await log.append(`key-${i % 4}`, [credited(i)])
    const innocent = (name: string) =>
      defineProjection(name, {
        events: bank,
        initial: () => ({ seen: 0 }),
        on: { Credited: ({ seen }) => ({ seen: seen + 1 }) },
      })
    const { engine, deaths } = await untilOneLives(world, (life) => [innocent('before'), sums(life), innocent('after')])
    expect(deaths).toBe(4)
    expect(await countsOf(engine, 'before')).toMatchObject({ applied: 20, held: 0 })
    expect(await countsOf(engine, 'after')).toMatchObject({ applied: 20, held: 0 })
    expect((await heldOf(engine, 'sums')).filter(({ status }) => status === 'parked')).toHaveLength(1)
    for (const name of ['before', 'sums', 'after']) expect(await trialsOf(world, name)).toEqual([])
  })

  it('records nothing where nothing was to do', async () => {
    await using world = await createWorld()
    for (let i = 0; i < 4; i++) {
      const life: Mortal = createMortal(world, [sums(() => life)])
      await life.engine.start()
      await world.runtime.advance(leaseMs + 5_000)
      life.die()
    }
    const [state] = await world.store.subscriptions.partitions('sums')
    expect(state).toMatchObject({ trials: [], checkpoint: { commits: 0 } })
  })
})
