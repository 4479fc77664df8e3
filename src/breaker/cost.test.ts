import { describe, expect, it } from 'vitest'
import { createBreakerWorld, entryOf } from '../../test/breaker/world.ts'

describe('what is asked of the store', () => {
  it('is a read a second while all goes well, and nothing for a success', async () => {
    const world = createBreakerWorld()
    const { calls, succeed } = world.start('a')
    for (let second = 0; second < 5; second++) {
      await succeed(1_000)
      await world.advance(1_000)
    }
    expect(calls).toEqual({ load: 5, save: 0 })
  })

  it('is a write for a failure, and one for the success that ends the row', async () => {
    const world = createBreakerWorld()
    const { calls, succeed, fail } = world.start('a')
    await fail()
    expect(calls).toEqual({ load: 1, save: 1 })
    await succeed(100)
    expect(calls).toEqual({ load: 1, save: 2 })
  })

  it('is no read within a second of a write, which has told as much', async () => {
    const world = createBreakerWorld()
    const { calls, fail } = world.start('a')
    const { breaker } = world.start('b')
    await breaker.enter()
    await fail()
    await world.advance(999)
    await fail()
    await world.advance(999)
    await fail()
    expect(calls).toEqual({ load: 1, save: 3 })
  })

  it('is a load and a save at most for a failure that comes late', async () => {
    const world = createBreakerWorld()
    const { calls, breaker } = world.start('a')
    const entry = await breaker.enter()
    await world.advance(60_000)
    await breaker.report(entry, false)
    expect(calls).toEqual({ load: 2, save: 1 })
  })

  it('is little for many failures at once', async () => {
    const world = createBreakerWorld({ opens: { failures: 1_000 } })
    const { calls, breaker } = world.start('a')
    const entries = await Promise.all(Array.from({ length: 100 }, () => breaker.enter()))
    await Promise.all(entries.map((entry) => breaker.report(entry, false)))
    expect(calls).toEqual({ load: 1, save: 1 })
    expect((await world.store.load(['mail'])).breakers[0]?.record).toContain('"failures":100')
  })

  it('is a read a second while it is open, however many ask', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '1h' })
    const { calls, fail, breaker } = world.start('a')
    await fail()
    const { load } = calls
    for (let second = 0; second < 5; second++) {
      await world.advance(1_000)
      const entries = await Promise.all(Array.from({ length: 100 }, () => entryOf(breaker)))
      expect(new Set(entries)).toEqual(new Set(['open']))
    }
    expect(calls).toEqual({ load: load + 5, save: 1 })
  })

  it('is a write to probe and a write to close', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '500ms' })
    const { calls, fail, succeed } = world.start('a')
    await fail()
    await world.advance(500)
    expect(await succeed()).toEqual(['probe'])
    expect(calls).toEqual({ load: 1, save: 3 })
  })

  it('is nothing once it is closed', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 } })
    const { calls, fail, breaker } = world.start('a')
    await breaker.enter()
    await breaker.close()
    await world.advance(5_000)
    expect(await fail(2)).toEqual(['closed', 'open'])
    expect(calls).toEqual({ load: 1, save: 0 })
  })
})
