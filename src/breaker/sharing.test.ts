import { describe, expect, it } from 'vitest'
import { createBreakerWorld, entryOf, probeOf } from '../../test/breaker/world.ts'

describe('two processes', () => {
  it('count failures together, and what one opens is open for the other within a second', async () => {
    const world = createBreakerWorld({ opens: { failures: 4 } })
    const [a, b] = [world.start('a'), world.start('b')]
    await b.succeed()
    await a.fail(2)
    await b.fail(2)
    expect(await b.breaker.state()).toMatchObject({ state: 'open' })
    await world.advance(1_000)
    expect(await entryOf(a.breaker)).toBe('open')
    expect(a.changes).toEqual(['closed → open'])
    expect(b.changes).toEqual(['closed → open'])
  })

  it('end a row with a success of either, once it is known', async () => {
    const world = createBreakerWorld({ opens: { failures: 4 } })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail(3)
    await b.succeed()
    // The row of `a` alone goes on, but `b` has had its success.
    await b.fail()
    await world.advance(1_000)
    expect(await entryOf(a.breaker)).toBe('closed')
  })

  it('opens for all when one of them fails often enough by itself, even if the other is well', async () => {
    const world = createBreakerWorld({ opens: { failures: 4 } })
    const [a, b] = [world.start('a'), world.start('b')]
    for (let i = 0; i < 4; i++) {
      await b.succeed()
      await a.fail()
      await world.advance(1_000)
    }
    expect(await entryOf(b.breaker)).toBe('open')
  })

  it('have one probe between them', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail()
    await b.breaker.enter()
    await world.advance(10_000)
    const entries = await Promise.all([a.breaker.enter(), b.breaker.enter(), a.breaker.enter(), b.breaker.enter()])
    expect(entries.filter(({ entry }) => entry === 'probe')).toHaveLength(1)
  })

  it('learn within a second that the other has closed it', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail()
    await world.advance(10_000)
    const probe = await probeOf(a.breaker)
    expect(await entryOf(b.breaker)).toBe('open')
    await a.breaker.report(probe, true)
    await world.advance(1_000)
    expect(await entryOf(b.breaker)).toBe('closed')
  })

  it('are let through when they ask for a probe of what was closed a moment ago', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail()
    await world.advance(9_500)
    expect(await entryOf(b.breaker)).toBe('open')
    await world.advance(500)
    expect(await a.succeed()).toEqual(['probe'])
    expect(await entryOf(b.breaker)).toBe('closed')
  })

  it.for(['open', 'closed'] as const)('hear within a second what a person did to one that was %s', async (state) => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '1h' })
    const [a, desk] = [world.start('a'), world.start('desk')]
    await (state === 'open' ? a.fail() : a.succeed())
    await desk.isolate()
    await world.advance(1_000)
    expect(await a.breaker.enter()).toMatchObject({ entry: 'open', state: 'isolated' })
    await desk.reset()
    await world.advance(1_000)
    expect(await entryOf(a.breaker)).toBe('closed')
  })

  it('see a probe given up when the process that had it died', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s', probeLease: '30s' })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail()
    await world.advance(10_000)
    await probeOf(a.breaker)
    await world.advance(29_999)
    expect(await entryOf(b.breaker)).toBe('open')
    await world.advance(1_000)
    await b.breaker.report(await probeOf(b.breaker), true)
    expect(await b.breaker.state()).toEqual({ state: 'closed' })
  })

  it('find it open when they start, which is no change', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 } })
    await world.start('a').fail()
    const b = world.start('b')
    expect(await entryOf(b.breaker)).toBe('open')
    expect(b.changes).toEqual([])
  })

  it('that never live long enough to fail often open it all the same', async () => {
    const world = createBreakerWorld({ opens: { failures: 3 } })
    for (const id of ['a', 'b', 'c']) expect(await world.start(id).fail()).toEqual(['closed'])
    expect(await entryOf(world.start('d').breaker)).toBe('open')
    const again = createBreakerWorld({ opens: { failures: 3 } })
    for (const id of ['same', 'same', 'same']) expect(await again.start(id).fail()).toEqual(['closed'])
    expect(await entryOf(again.start('same').breaker)).toBe('open')
  })

  it('change it at the same moment, and none of it is lost', async () => {
    const world = createBreakerWorld({ opens: { failures: 40 } })
    const all = Array.from({ length: 8 }, (_, n) => world.start(`process-${n}`))
    let isDone = false
    const done = Promise.all(all.map(({ fail }) => fail(5))).finally(() => {
      isDone = true
    })
    while (!isDone) await world.advance(10)
    await done
    expect(await entryOf(world.start('another').breaker)).toBe('open')
    expect(all.flatMap(({ errors }) => errors)).toEqual([])
  })
})

describe('with a quorum of two', () => {
  const options = { opens: { failures: 2 }, cooldown: { initial: '10s', factor: 2 }, quorum: 2 } as const

  it('one process that fails opens it for itself, and not for the other', async () => {
    const world = createBreakerWorld(options)
    const [a, b] = [world.start('a'), world.start('b')]
    await b.succeed()
    expect(await a.fail(3)).toEqual(['closed', 'closed', 'open'])
    expect(await a.breaker.state()).toMatchObject({ state: 'open', local: true, openings: 1 })
    expect(a.changes).toEqual(['closed → open'])
    await world.advance(1_000)
    expect(await b.succeed()).toEqual(['closed'])
    expect(await a.breaker.enter()).toMatchObject({ entry: 'open', state: 'open', afterMs: 9_000 })
    expect((await world.store.list())[0]?.state).toEqual({ state: 'closed' })
  })

  it('that process probes by itself, waits longer when it fails, and closes it for itself again', async () => {
    const world = createBreakerWorld(options)
    const a = world.start('a')
    await a.fail(2)
    await world.advance(10_000)
    expect(await a.fail(2)).toEqual(['probe', 'open'])
    await world.advance(19_999)
    expect(await entryOf(a.breaker)).toBe('open')
    await world.advance(1)
    const probe = await probeOf(a.breaker)
    expect(await entryOf(a.breaker)).toBe('open')
    await a.breaker.forget(probe)
    expect(await a.succeed(2)).toEqual(['probe', 'closed'])
    expect(await a.breaker.state()).toEqual({ state: 'closed' })
    expect((await world.store.load(['mail'])).breakers[0]?.record).toContain('"tallies":{}')
  })

  it('a second process that fails opens it for all', async () => {
    const world = createBreakerWorld(options)
    const [a, b, c] = [world.start('a'), world.start('b'), world.start('c')]
    await a.fail(2)
    await world.advance(15_000)
    expect(await b.fail(3)).toEqual(['closed', 'closed', 'open'])
    expect(await entryOf(c.breaker)).toBe('open')
    const state = await b.breaker.state()
    expect(state).toMatchObject({ state: 'open', openings: 1 })
    expect(state).not.toHaveProperty('local')
    await world.advance(10_000)
    expect(await c.succeed()).toEqual(['probe'])
    await world.advance(1_000)
    for (const { breaker } of [a, b, c]) expect(await entryOf(breaker)).toBe('closed')
  })

  it('a process that is well again has no vote any more', async () => {
    const world = createBreakerWorld(options)
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail(2)
    await world.advance(10_000)
    await a.succeed()
    await b.fail(2)
    expect(await b.breaker.state()).toMatchObject({ local: true })
    expect(await entryOf(a.breaker)).toBe('closed')
  })

  it('a process has its vote until it has had all the successes that it takes', async () => {
    const world = createBreakerWorld({ ...options, successes: 2 })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail(2)
    await world.advance(10_000)
    expect(await a.succeed()).toEqual(['probe'])
    await b.fail(2)
    expect(await b.breaker.state()).not.toHaveProperty('local')
  })

  it('a late success of a process does not speak for what it has seen since', async () => {
    const world = createBreakerWorld(options)
    const a = world.start('a')
    const late = await a.breaker.enter()
    await a.fail(2)
    await world.advance(10_000)
    await a.succeed()
    await a.fail()
    const { save } = a.calls
    await a.breaker.report(late, true)
    expect(a.calls.save).toBe(save)
  })

  it('by rate, too, a process that is well again has no vote any more', async () => {
    const world = createBreakerWorld({ ...options, opens: { rate: 0.5, window: '1m', minimumCalls: 2 } })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail(2)
    await world.advance(10_000)
    await a.succeed()
    await b.fail(2)
    expect(await b.breaker.state()).toMatchObject({ local: true })
  })

  it('by rate it is the same', async () => {
    const world = createBreakerWorld({ ...options, opens: { rate: 0.5, window: '1m', minimumCalls: 4 } })
    const [a, b] = [world.start('a'), world.start('b')]
    await a.fail(4)
    expect(await a.breaker.state()).toMatchObject({ state: 'open', local: true })
    await b.succeed(4)
    await b.fail(3)
    expect(await b.breaker.state()).toEqual({ state: 'closed' })
    await b.fail()
    await world.advance(1_000)
    for (const { breaker } of [a, b]) expect(await breaker.state()).not.toHaveProperty('local')
    expect(await a.breaker.state()).toMatchObject({ state: 'open' })
  })
})
