import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, debited } from '../../../test/fixtures.ts'
import { away, fill, heard, keysOf, noting, run, stateOf } from '../../../test/noting.ts'
import { createParts, leaseMs } from '../../../test/parts.ts'
import { ask } from '../../../test/redrive/asking.ts'
import {
  createLog,
  defineProjection,
  defineSubscription,
  type Engine,
  type Source,
  type Store,
  type Subscription,
} from '../../index.ts'
import type { PartitionView } from '../../subscription/subscription-store.ts'
import { createScriptedSource } from '../../testing/source.ts'
import { Runner } from './runner.ts'

const second = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0, seen: 0 }),
  on: {},
  columns: { balance: 'real' },
  version: 2,
})

/** Whether it is over, without waiting for it. */
function watched(work: Promise<unknown>) {
  const state = { isOver: false }
  void work.then(() => (state.isOver = true))
  return state
}

async function sinceOf(engine: Engine, name: string) {
  return (await engine.status()).subscriptions.find((one) => one.name === name)?.state.since
}

/** A runner that is told by hand what all processes do. */
async function runnerOf(of: Subscription, only?: 'letters') {
  const world = await createWorld()
  const { runtime } = world
  const { parts, instead, claimBy } = createParts(world, of, only)
  const looks = { count: 0 }
  const runner = new Runner({ ...parts, refuseImported: async () => undefined, look: () => void looks.count++ })
  /** With what may be otherwise in each partition. */
  const settle = async (change: Partial<PartitionView> = {}) => {
    const [view] = await world.store.subscriptions.attend({ owner: 'me', subscriptions: [of.name], leaseMs })
    if (!view) throw new Error('it is not registered')
    runner.settle({ ...view, partitions: view.partitions.map((partition) => ({ ...partition, ...change })) })
    await runtime.advance(100)
  }
  return {
    world,
    runtime,
    runner,
    settle,
    instead,
    looks,
    claimBy,
    begin: async () => {
      await runner.register()
      runner.start()
      await settle()
    },
    [Symbol.asyncDispose]: async () => {
      const stopped = runner.stop()
      runner.force()
      await stopped
      await world[Symbol.asyncDispose]()
    },
  }
}

describe('a runner', () => {
  it('has what its workers have, from its start to its end', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    const { runner } = setup
    expect([runner.isRunning, runner.owns(0)]).toEqual([false, false])
    await setup.begin()
    expect([runner.isRunning, runner.owns(0), runner.owns(1)]).toEqual([true, true, false])
    await runner.stop()
    expect([runner.isRunning, runner.owns(0), runner.state.state]).toEqual([false, false, 'stopped'])
  })

  it('is over at once when it is forced, whatever hangs', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    await setup.begin()
    setup.runner.force()
    expect([setup.runner.isRunning, setup.runner.state.state]).toEqual([false, 'stopped'])
  })

  it('tells who watches, until they watch no more', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    let told = 0
    const unwatch = setup.runner.watch(() => told++)
    await setup.begin()
    const before = told
    expect(before).toBeGreaterThan(0)
    unwatch()
    await setup.runner.stop()
    expect(told).toBe(before)
  })

  it('listens to its source once, and not at all where it only lets letters go', async () => {
    let listeners = 0
    const source: Source = {
      ...createScriptedSource(),
      onAppend: () => {
        listeners++
        return () => void listeners--
      },
    }
    await using setup = await runnerOf(defineSubscription(balances, { source }))
    await setup.begin()
    setup.runner.start()
    expect(listeners).toBe(1)
    await setup.runner.stop()
    expect(listeners).toBe(0)
    await using letters = await runnerOf(defineSubscription(balances, { source }), 'letters')
    letters.runner.start()
    expect(listeners).toBe(0)
  })

  it('makes no subscription where it only lets letters go, and is done when none is due', async () => {
    await using setup = await runnerOf(defineSubscription(balances), 'letters')
    await expect(setup.runner.register()).rejects.toMatchObject({ code: 'SUBSCRIPTION_NEW' })
    const { name, kind, table } = balances
    await setup.world.store.subscriptions.register({ name, kind, table, partitions: 1, start: 0 })
    await setup.claimBy('she')
    setup.runner.start()
    await setup.settle()
    expect(setup.runner.reached(99)).toBe(true)
  })

  it('tells its worker of a redrive', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    await createLog({ store: setup.world.store, events: bank }).append('a', [debited(1)])
    await setup.begin()
    await ask(setup.world.store, 'balances', { act: 'discard' })
    await setup.settle({ isRedriven: false })
    const held = () => setup.world.store.letters.heldLanes('balances', 0)
    expect(await held()).toHaveLength(1)
    await setup.settle({ isRedriven: true })
    expect(await held()).toEqual([])
  })

  it('is blocked with the store only where it has no workers, who find out by themselves', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    const { runner } = setup
    const blocked = { state: 'blocked', by: 'store', error: away(), attempts: 1, retryAt: 5 } as const
    expect([runner.block(blocked), runner.state.state]).toEqual([true, 'blocked'])
    await setup.begin()
    expect([runner.block(blocked), runner.state.state]).toEqual([false, 'live'])
  })

  it('lets a worker ask again at once when the store is there again', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    setup.instead.claim = () => Promise.reject(away())
    await setup.begin()
    await setup.runtime.advance(60_000)
    delete setup.instead.claim
    setup.runner.heal()
    await setup.runtime.advance(0)
    expect(setup.runner.owns(0)).toBe(true)
  })

  it('that fails takes all of its workers with it', async () => {
    await using setup = await runnerOf(defineSubscription(balances, { partitions: 2 }))
    const { runner } = setup
    await setup.begin()
    expect([runner.owns(0), runner.owns(1)]).toEqual([true, true])
    runner.fail(new Error('it lost something'))
    await setup.runtime.advance(100)
    expect([runner.owns(0), runner.owns(1), runner.state.state]).toEqual([false, false, 'failed'])
    expect([(await setup.claimBy('she', 0)).outcome, (await setup.claimBy('she', 1)).outcome]).toEqual([
      'claimed',
      'claimed',
    ])
  })

  it('looks around when it has lost a partition, and not when it was too late for one, or stops', async () => {
    await using setup = await runnerOf(defineSubscription(balances))
    const { runner, looks, world } = setup
    await runner.register()
    await setup.claimBy('she')
    runner.start()
    // As it was a moment ago.
    await setup.settle({ isFree: true })
    expect([runner.owns(0), looks.count, runner.state]).toMatchObject([false, 0, { state: 'starting' }])
    await world.store.subscriptions.release({ subscription: 'balances', partition: 0, owner: 'she', epoch: 1 }, false)
    await setup.settle()
    expect(runner.owns(0)).toBe(true)
    await world.store.subscriptions.release({ subscription: 'balances', partition: 0, owner: 'me', epoch: 2 }, false)
    await setup.claimBy('she')
    await setup.settle()
    expect([runner.owns(0), looks.count, runner.state]).toMatchObject([false, 1, { state: 'starting', owner: 'she' }])
    await runner.stop()
    expect(looks.count).toBe(1)
    await using stopped = await runnerOf(defineSubscription(balances))
    await stopped.begin()
    await stopped.runner.stop()
    expect(stopped.looks.count).toBe(0)
  })
})

describe('a process that has nothing to do', () => {
  it('names who does the work, and takes over when that one stops', async () => {
    await using world = await createWorld()
    const [first, other] = [world.engine([balances], { name: 'first' }), world.engine([balances], { name: 'other' })]
    await run(world, first, 1_000)
    await run(world, other, 1_000)
    expect(await stateOf(other, 'balances')).toMatchObject({ state: 'starting', owner: 'first' })
    await first.stop()
    await world.runtime.advance(1_000)
    expect(await stateOf(other, 'balances')).toMatchObject({ state: 'live' })
    expect(await stateOf(first, 'balances')).toMatchObject({ state: 'stopped' })
  })

  it('is drained when the other has done everything, and what is held is not due', async () => {
    await using world = await createWorld()
    const { handler } = noting(world, () => world.runtime.timers.sleep(3_000))
    const [first, other] = [world.engine([handler], { name: 'first' }), world.engine([handler], { name: 'other' })]
    await run(world, first, 1_000)
    await run(world, other, 1_000)
    await fill(world, ['a'], 1)
    const drained = watched(other.drain())
    await world.runtime.advance(2_900)
    expect(drained.isOver).toBe(false)
    await world.runtime.advance(1_000)
    expect(drained.isOver).toBe(true)
  })
})

describe('another version', () => {
  it('is waited for, which is said once, and nothing is written', async () => {
    await using world = await createWorld()
    const first = world.engine([balances], { name: 'first' })
    await world.settle(first)
    await first.stop()
    const warned: object[] = []
    const logger = { info: () => undefined, warn: (fields: object) => void warned.push(fields), error: () => undefined }
    const young = world.engine([second], { name: 'young', logger })
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    await run(world, young, 5_000)
    expect(await stateOf(young, 'balances')).toMatchObject({
      state: 'blocked',
      by: 'version',
      error: { code: 'PROJECTION_VERSION' },
    })
    expect(warned).toEqual([{ subscription: 'balances', live: 1, own: 2 }])
    expect((await world.store.subscriptions.load('balances', 0))?.checkpoint.position).toBe(0)
    await expect(world.operator([second]).reset('balances', 'a test')).rejects.toMatchObject({
      code: 'PROJECTION_VERSION',
    })
    await expect(young.verify('balances')).rejects.toMatchObject({ code: 'PROJECTION_VERSION' })
  })
})

describe('of several partitions', () => {
  it('the one that most needs an eye speaks for all, and since when', async () => {
    await using world = await createWorld()
    let isDown = false
    const commit: Store['subscriptions']['commit'] = async (committed) => {
      if (isDown && committed.lease.partition === 1) throw away()
      return world.store.subscriptions.commit(committed)
    }
    const store = { ...world.store, subscriptions: { ...world.store.subscriptions, commit } }
    const engine = world.engine([defineSubscription(balances, { partitions: 2 })], { store })
    const told = heard(engine, 'subscription.state')
    await run(world, engine, 1_000)
    expect(await stateOf(engine, 'balances')).toMatchObject({ state: 'live' })
    isDown = true
    const log = createLog({ store: world.store, events: bank })
    for (const key of keysOf(8)) await log.append(key, [credited(1)])
    await world.runtime.advance(100)
    const since = await sinceOf(engine, 'balances')
    await world.runtime.advance(5_000)
    expect(await stateOf(engine, 'balances')).toMatchObject({ state: 'blocked', by: 'store', since })
    expect(since).toBeLessThanOrEqual(world.runtime.clock.now() - 5_000)
    isDown = false
    await world.runtime.advance(30_000)
    expect(await stateOf(engine, 'balances')).toMatchObject({ state: 'live' })
    const states = told.map(({ to }) => to.state)
    expect(states.filter((state, i) => state !== states[i - 1])).toEqual(states)
    expect(states.at(-1)).toBe('live')
    expect(states).toContain('blocked')
    expect(await engine.verify('balances')).toMatchObject({ ok: true, events: 8 })
  })
})

describe('a subscription that is not there yet', () => {
  it('begins after a position that there is, and not after one that is not', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    for (const position of [3, 0]) {
      const { handler, calls } = noting(world, undefined, { name: `from-${position}` })
      await run(world, world.engine([defineSubscription(handler, { from: { position } })]), 1_000)
      expect(calls).toHaveLength(3 - position)
    }
    const { handler } = noting(world, undefined, { name: 'beyond' })
    const engine = world.engine([defineSubscription(handler, { from: { position: 4 } })])
    await expect(engine.start()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringContaining('4') as unknown,
    })
  })
})

describe('a source that can not be listened to', () => {
  it('fails its subscription, and the others go on', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const bad = noting(world, undefined, { name: 'bad' })
    const well = noting(world, undefined, { name: 'well' })
    const deaf: Source = {
      ...createScriptedSource(),
      versions: 'none',
      onAppend: () => {
        throw new TypeError('nobody listens here')
      },
    }
    const engine = world.engine([defineSubscription(bad.handler, { source: deaf }), well.handler])
    await run(world, engine, 1_000)
    expect(await stateOf(engine, 'bad')).toMatchObject({ state: 'failed', error: { message: 'nobody listens here' } })
    expect(await stateOf(engine, 'well')).toMatchObject({ state: 'live' })
    expect(well.calls).toHaveLength(1)
  })
})
