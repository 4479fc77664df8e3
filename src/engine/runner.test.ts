import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited } from '../../test/fixtures.ts'
import { away, fill, heard, keysOf, noting, run, stateOf } from '../../test/noting.ts'
import { createLog, defineProjection, defineSubscription, type Engine, type Source, type Store } from '../index.ts'
import { createScriptedSource } from '../testing/source.ts'

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
    await expect(young.reset('balances')).rejects.toMatchObject({ code: 'PROJECTION_VERSION' })
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
