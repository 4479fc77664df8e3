import { describe, expect, it } from 'vitest'
import { createBreakerWorld, entryOf, type Outage, probeOf } from '../../test/breaker/world.ts'

const outages = ['before', 'after', 'hang'] as const

/** Does it while time goes on, as for a store that hangs it must. */
async function meanwhile<T>(world: { advance(ms: number): Promise<void> }, work: Promise<T>): Promise<T> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  work.then(end, end)
  while (!isDone) await world.advance(100)
  return work
}

describe.for(outages)('a store that fails (%s)', (outage: Outage) => {
  it('stops no call, and the process protects itself by what it sees', async () => {
    const world = createBreakerWorld({ opens: { failures: 3 }, cooldown: '60s' })
    const a = world.start('a')
    a.outage = outage
    expect(await meanwhile(world, a.fail(4))).toEqual(['closed', 'closed', 'closed', 'open'])
    expect(await a.breaker.state()).toMatchObject({ state: 'open', local: true })
    expect(a.changes).toEqual(['closed → open'])
    await world.advance(60_000)
    expect(await a.succeed(2)).toEqual(['probe', 'closed'])
    expect(a.errors.length).toBeGreaterThan(0)
    for (const error of a.errors) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('is told what happened as soon as it answers again', async () => {
    const world = createBreakerWorld({ opens: { failures: 3 }, cooldown: '60s' })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.succeed()
    a.outage = outage
    await meanwhile(world, a.fail(3))
    expect(await entryOf(b.breaker)).toBe('closed')
    a.outage = undefined
    await world.advance(5_000)
    await a.breaker.enter()
    await world.advance(1_000)
    expect(await entryOf(b.breaker)).toBe('open')
    expect(await a.breaker.state()).not.toHaveProperty('local')
    expect(a.changes).toEqual(['closed → open'])
  })

  it('leaves it open as long as it was to be, then the process probes by itself', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: { initial: '60s', factor: 2 } })
    const a = world.start('a')
    await a.fail()
    a.outage = outage
    await world.advance(50_000)
    expect(await meanwhile(world, entryOf(a.breaker))).toBe('open')
    await world.advance(10_000)
    expect(await a.fail(2)).toEqual(['probe', 'open'])
    expect(await a.breaker.state()).toMatchObject({ state: 'open', openings: 2, local: true })
    await world.advance(120_000)
    expect(await a.succeed(2)).toEqual(['probe', 'closed'])
    // As it is for this process, whatever the others were last seen with.
    expect(await a.breaker.state()).toEqual({ state: 'closed' })
  })

  it.for([true, false])(
    'while a probe is under way leaves its verdict to the process: success %s',
    async (succeeded) => {
      const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
      const a = world.start('a')
      await a.fail()
      await world.advance(10_000)
      const probe = await probeOf(a.breaker)
      a.outage = outage
      await meanwhile(world, a.breaker.report(probe, succeeded))
      expect(await entryOf(a.breaker)).toBe(succeeded ? 'closed' : 'open')
      a.outage = undefined
      // The others wait for the end of a probe that was never told, or go by what was written though nobody said so.
      await world.advance(60_000)
      await a.breaker.enter()
      await world.advance(1_000)
      const ended = await a.succeed(3)
      expect(ended.at(-1)).toBe('closed')
      expect(await world.start('b').succeed()).toEqual(['closed'])
    },
  )

  it('does not open what a person has isolated', async () => {
    const world = createBreakerWorld()
    const a = world.start('a')
    await a.isolate()
    expect(await entryOf(a.breaker)).toBe('open')
    a.outage = outage
    await world.advance(3_600_000)
    expect(await meanwhile(world, a.breaker.enter())).toMatchObject({ entry: 'open', state: 'isolated' })
    expect(await a.breaker.enter()).toMatchObject({ entry: 'open', state: 'isolated' })
    expect(await a.breaker.state()).toMatchObject({ state: 'isolated', by: 'ada' })
  })
})

describe('a store that is down', () => {
  // One that hangs keeps an operator waiting, as with every act.
  it.for(['before', 'after'] as const)('is said to an operator who wanted something of it: %s', async (outage) => {
    const world = createBreakerWorld()
    const a = world.start('a')
    a.outage = outage
    await expect(a.isolate()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(a.reset()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    a.outage = undefined
    await a.isolate()
    expect(await entryOf(a.breaker)).toBe('open')
  })

  it('is asked once a second, and nobody waits for it', async () => {
    const world = createBreakerWorld()
    const a = world.start('a')
    a.outage = 'before'
    for (let second = 0; second < 10; second++) {
      await a.succeed(100)
      await world.advance(1_000)
    }
    expect(a.calls).toEqual({ load: 10, save: 0 })
    expect(a.errors).toHaveLength(10)
    a.outage = 'hang'
    expect(await a.succeed(3)).toEqual(['closed', 'closed', 'closed'])
  })

  it('does not make a process that the others have overruled insist on what it saw alone', async () => {
    const world = createBreakerWorld({ opens: { failures: 2 }, cooldown: '1h' })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.succeed()
    a.outage = 'before'
    await world.advance(1_000)
    await a.fail(3)
    await b.isolate()
    await b.reset()
    a.outage = undefined
    await world.advance(1_000)
    await a.breaker.enter()
    await world.advance(0)
    expect(await entryOf(a.breaker)).toBe('closed')
    expect(a.changes).toEqual(['closed → open', 'open → closed'])
  })

  it('goes on with the shared one when it is back, though this process had closed it for itself', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const a = world.start('a')
    await a.fail()
    a.outage = 'before'
    await world.advance(10_000)
    await a.breaker.enter()
    await a.succeed(2)
    a.outage = undefined
    await world.advance(60_000)
    await a.breaker.enter()
    await world.advance(0)
    expect(await a.succeed(2)).toEqual(['probe', 'closed'])
    expect((await world.store.list())[0]?.state).toEqual({ state: 'closed' })
  })
})

describe('a store that comes back', () => {
  it('is heard by whoever a person asks for something, and used again from then on', async () => {
    const world = createBreakerWorld({ opens: { failures: 3 } })
    const a = world.start('a')
    await a.succeed()
    a.outage = 'before'
    await a.fail()
    a.outage = undefined
    await a.isolate()
    await a.reset()
    const { save } = a.calls
    // Not by itself any more: what it sees go wrong, it tells.
    await a.fail()
    expect(a.calls.save).toBe(save + 1)
    expect(await a.breaker.state()).toMatchObject({ state: 'closed', reset: { by: 'ada' } })
  })

  it('is told nothing where nothing went wrong', async () => {
    const world = createBreakerWorld()
    const a = world.start('a')
    a.outage = 'before'
    await a.succeed(3)
    a.outage = undefined
    await world.advance(1_000)
    await a.succeed(3)
    await world.advance(0)
    expect(a.calls).toEqual({ load: 2, save: 0 })
    expect(a.changes).toEqual([])
  })

  it('finds the process where it was, with all its failures, each counted once', async () => {
    const world = createBreakerWorld({ opens: { failures: 5 } })
    const a = world.start('a')
    await a.fail(2)
    a.outage = 'before'
    await a.fail(2)
    a.outage = undefined
    await world.advance(1_000)
    await a.breaker.enter()
    await world.advance(0)
    expect((await world.store.load(['mail'])).breakers[0]?.record).toContain('"failures":4')
    expect(await a.fail(2)).toEqual(['closed', 'open'])
  })
})

describe('a failure that could not be told', () => {
  it('is told when the store is back, though it failed in the middle of that', async () => {
    const world = createBreakerWorld({ opens: { failures: 3 } })
    const a = world.start('a')
    const entry = await a.breaker.enter()
    await world.advance(2_000)
    a.outage = 'before'
    await a.breaker.report(entry, false)
    a.outage = undefined
    await world.advance(1_000)
    await a.breaker.enter()
    await world.advance(0)
    expect((await world.store.load(['mail'])).breakers[0]?.record).toContain('"failures":1')
  })

  it('is a change all the same, told at once', async () => {
    const world = createBreakerWorld({ opens: { failures: 2 } })
    const a = world.start('a')
    a.outage = 'before'
    await a.fail(2)
    expect(a.changes).toEqual(['closed → open'])
  })
})

describe('others that are quicker each time', () => {
  it('are no outage: it is said, and tried again with the next failure', async () => {
    const world = createBreakerWorld({ opens: { failures: 5 } })
    let saves = 0
    const busy = {
      ...world.store,
      save: async () => {
        saves++
        return false
      },
    }
    const a = world.start('a', { store: { breakers: busy } })
    await meanwhile(world, a.fail())
    expect([saves, a.errors]).toMatchObject([10, [{ code: 'STORE_BUSY' }]])
    await meanwhile(world, a.fail())
    expect(saves).toBe(20)
    expect(await a.breaker.state()).toEqual({ state: 'closed' })
  })
})

describe('a record that can not be read', () => {
  it('is left alone, and the process goes by itself, until a person resets it', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 } })
    await world.store.save({ name: 'mail', state: { state: 'closed' }, record: '{"state":"ajar"}' }, 0)
    const a = world.start('a')
    expect(await a.fail(2)).toEqual(['closed', 'open'])
    expect(a.errors[0]).toMatchObject({ code: 'STORE_CORRUPT' })
    expect((await world.store.list())[0]).toMatchObject({ record: '{"state":"ajar"}', revision: 1 })
    await a.reset()
    expect(await entryOf(a.breaker)).toBe('closed')
    expect((await world.store.list())[0]).toMatchObject({ state: { state: 'closed' }, revision: 2 })
  })
})

describe('a record that can not be read any more', () => {
  it('is left alone as well by who could read it a moment ago', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 } })
    const a = world.start('a')
    expect(await a.succeed()).toEqual(['closed'])
    await world.store.save({ name: 'mail', state: { state: 'closed' }, record: '{"state":"ajar"}' }, 0)
    expect(await a.fail(2)).toEqual(['closed', 'open'])
    expect(a.errors[0]).toMatchObject({ code: 'STORE_CORRUPT' })
    expect((await world.store.list())[0]).toMatchObject({ record: '{"state":"ajar"}', revision: 1 })
  })
})

describe('a clock that differs from that of the store', () => {
  it('is what there is until the store has told its own', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    await world.advance(5_000)
    const a = world.start('a')
    a.outage = 'before'
    await a.fail()
    expect(await a.breaker.enter()).toMatchObject({ retryAt: world.runtime.clock.now() + 10_000 })
  })

  it('matters to nobody: times are those of the store', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const { clock } = world.runtime
    const a = world.start('a', { clock: { now: () => clock.now() + 3_600_000, mono: () => clock.mono() } })
    const b = world.start('b')
    await a.fail()
    expect(await b.breaker.enter()).toMatchObject({ retryAt: clock.now() + 10_000 })
    expect(await a.breaker.enter()).toMatchObject({ retryAt: clock.now() + 10_000, afterMs: 10_000 })
  })

  it('does not keep open for an hour what was opened before the store said what time it is', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s', quorum: 2 })
    const { clock } = world.runtime
    const a = world.start('a', { clock: { now: () => clock.now() + 3_600_000, mono: () => clock.mono() } })
    a.outage = 'before'
    expect(await a.fail(2)).toEqual(['closed', 'open'])
    a.outage = undefined
    await world.advance(1_000)
    await a.breaker.enter()
    await world.advance(10_000)
    expect(await entryOf(a.breaker)).not.toBe('open')
  })
})
