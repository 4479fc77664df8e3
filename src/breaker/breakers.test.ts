import { describe, expect, it } from 'vitest'
import { operatorOf } from '../../test/breaker/world.ts'
import { createMemoryBreakerStore } from '../testing/breaker-store.ts'
import { createVirtualRuntime } from '../testing/virtual.ts'
import { type BreakersOptions, createBreakers } from './breakers.ts'
import { breakerSettings } from './settings.ts'

const settings = breakerSettings({ opens: { failures: 2 } })

function createWorld(options: Partial<BreakersOptions> = {}) {
  const runtime = createVirtualRuntime()
  const store = { breakers: createMemoryBreakerStore(runtime) }
  const changes: string[] = []
  const onChange: BreakersOptions['onChange'] = (name, from, to) => changes.push(`${name}: ${from.state} → ${to.state}`)
  const breakers = createBreakers({ store, runtime, processId: 'a', onChange, ...options })
  const fail = async (name: string) => {
    const breaker = breakers.get(name, settings)
    await breaker.report(await breaker.enter(), false)
  }
  return { runtime, store, breakers, changes, fail }
}

describe('a look at breakers', () => {
  function createLooking(options: Partial<BreakersOptions> = {}) {
    const runtime = createVirtualRuntime()
    const shared = createMemoryBreakerStore(runtime)
    const loads: (readonly string[])[] = []
    const counted = {
      ...shared,
      load: (names: readonly string[]) => {
        loads.push(names)
        return shared.load(names)
      },
    }
    const breakers = createBreakers({ store: { breakers: counted }, runtime, processId: 'a', ...options })
    const other = createBreakers({ store: { breakers: shared }, runtime, processId: 'b' })
    return { runtime, loads, breakers, other, operator: operatorOf(shared, runtime) }
  }

  it('reads all of them in one statement, once for all who look at the same time', async () => {
    const { breakers, loads, runtime } = createLooking()
    const both = await Promise.all([breakers.look(['x', 'y'], settings), breakers.look(['y', 'x', 'z'], settings)])
    expect(loads).toEqual([['x', 'y'], ['z']])
    expect(both.map((found) => [...found.keys()])).toEqual([
      ['x', 'y'],
      ['y', 'x', 'z'],
    ])
    await runtime.advance(399)
    await breakers.look(['x', 'y', 'z'], settings)
    expect(loads).toHaveLength(2)
    await runtime.advance(1)
    await breakers.look(['x', 'y', 'z'], settings)
    expect(loads).toHaveLength(3)
  })

  it('sees what an operator did elsewhere, and what may be tried when', async () => {
    const { breakers, other, operator, runtime } = createLooking()
    const lookOf = async (name: string) => {
      await runtime.advance(500)
      return (await breakers.look([name], settings)).get(name)
    }
    const elsewhere = other.get('x', settings)
    expect(await lookOf('x')).toEqual({ entry: 'closed' })
    for (const _ of [1, 2]) await elsewhere.report(await elsewhere.enter(), false)
    expect(await lookOf('x')).toEqual({ entry: 'open', afterMs: 29_500 })
    expect((await breakers.get('x', settings).enter()).entry).toBe('open')
    await operator.isolateBreaker('x', 'they asked us to')
    expect(await lookOf('x')).toEqual({ entry: 'open', afterMs: 10_000 })
    await operator.resetBreaker('x', 'they are back')
    expect(await lookOf('x')).toEqual({ entry: 'closed' })
    for (const _ of [1, 2]) await elsewhere.report(await elsewhere.enter(), false)
    await runtime.advance(30_000)
    expect(await lookOf('x')).toEqual({ entry: 'probe' })
    // To look is not to ask for it.
    expect((await elsewhere.enter()).entry).toBe('probe')
    expect(await lookOf('x')).toEqual({ entry: 'open', afterMs: 1_000 })
  })

  it('sees at once what an operator did in this process, also during the read', async () => {
    const { runtime, store, breakers, fail } = createWorld()
    await fail('x')
    await fail('x')
    expect((await breakers.look(['x'], settings)).get('x')).toMatchObject({ entry: 'open' })
    const operator = operatorOf(store.breakers, runtime)
    await operator.resetBreaker('x', 'it is back')
    expect((await breakers.look(['x'], settings)).get('x')).toEqual({ entry: 'closed' })
    await runtime.advance(500)
    const acted = operator.isolateBreaker('x', 'they asked us to')
    const [before] = await Promise.all([breakers.look(['x'], settings), acted])
    // What it read may be older than the act.
    expect(before.get('x')?.entry).not.toBe('closed')
    expect((await breakers.look(['x'], settings)).get('x')).toMatchObject({ entry: 'open', afterMs: 10_000 })
  })

  it('does not take what this process saved since for older than it is', async () => {
    const runtime = createVirtualRuntime()
    const shared = createMemoryBreakerStore(runtime)
    const late = Promise.withResolvers<void>()
    let isLate = false
    const slow = {
      ...shared,
      load: async (names: readonly string[]) => {
        const answer = await shared.load(names)
        if (isLate) await late.promise
        return answer
      },
    }
    const breakers = createBreakers({ store: { breakers: slow }, runtime, processId: 'a' })
    const one = breakers.get('x', settings)
    const entries = [await one.enter(), await one.enter()]
    await runtime.advance(500)
    isLate = true
    const looking = breakers.look(['x'], settings)
    for (const entry of entries) await one.report(entry, false)
    late.resolve()
    expect((await looking).get('x')).toMatchObject({ entry: 'open' })
    expect(await one.state()).toMatchObject({ state: 'open' })
  })

  it('leaves out what could not be read, and never throws', async () => {
    const failing = { ...createMemoryBreakerStore(), load: () => Promise.reject(new Error('away')) }
    const breakers = createBreakers({ store: { breakers: failing }, processId: 'a' })
    expect(await breakers.look(['x'], settings)).toEqual(new Map())
    await breakers.close()
    expect(await breakers.look(['x'], settings)).toEqual(new Map())
  })
})

describe('the breakers of a process', () => {
  it('are one for each name', async () => {
    const { breakers, fail, changes } = createWorld()
    expect(breakers.get('one', settings)).toBe(breakers.get('one', settings))
    for (const name of ['one', 'two', 'one']) await fail(name)
    expect(await breakers.get('one', settings).state()).toMatchObject({ state: 'open' })
    expect(await breakers.get('two', settings).state()).toEqual({ state: 'closed' })
    expect(changes).toEqual(['one: closed → open'])
  })

  it('forget as many as are too many', () => {
    const { breakers } = createWorld({ most: 2 })
    const [one, two] = [breakers.get('one', settings), breakers.get('two', settings)]
    expect(breakers.get('one', settings)).toBe(one)
    breakers.get('three', settings)
    expect(breakers.get('two', settings)).not.toBe(two)
    expect(breakers.get('one', settings)).not.toBe(one)
  })

  it('count whatever a call throws, and tell when the store fails', async () => {
    const errors: string[] = []
    const { breakers } = createWorld({ onStoreError: (name) => errors.push(name) })
    const broken = () => Promise.reject(new Error('no'))
    for (const _ of [1, 2]) await expect(breakers.get('one', settings).call(broken)).rejects.toThrow('no')
    expect(await breakers.get('one', settings).state()).toMatchObject({ state: 'open' })
    const failing = { ...createMemoryBreakerStore(), load: () => Promise.reject(new Error('away')) }
    const other = createWorld({ store: { breakers: failing }, onStoreError: (name) => errors.push(name) })
    await other.breakers.get('two', settings).enter()
    expect(errors).toEqual(['two'])
  })

  it('forget those that nobody asked for the longest, and find them again in the store', async () => {
    const { breakers, fail, changes } = createWorld({ most: 2 })
    await fail('one')
    const first = breakers.get('one', settings)
    await fail('two')
    expect(breakers.get('one', settings)).toBe(first)
    await fail('three')
    expect(breakers.get('one', settings)).toBe(first)
    await fail('two')
    expect(breakers.get('one', settings)).toBe(first)
    await fail('three')
    expect(changes).toEqual(['two: closed → open', 'three: closed → open'])
  })

  it('take back an entry of one that was forgotten meanwhile', async () => {
    const { runtime, breakers, fail } = createWorld({ most: 1 })
    await fail('one')
    await fail('one')
    await runtime.advance(30_000)
    const entry = await breakers.get('one', settings).enter()
    expect(entry.entry).toBe('probe')
    breakers.get('two', settings)
    await breakers.get('one', settings).report(entry, true)
    expect(await breakers.get('one', settings).state()).toEqual({ state: 'closed' })
  })

  it('may be ten thousand and more, with a memory that has an end', async () => {
    const { store, breakers, fail } = createWorld()
    for (let i = 0; i < 12_000; i++) breakers.get(`https://example.com/${i}`, settings)
    for (let i = 0; i < 12_000; i += 100) await fail(`https://example.com/${i}`)
    expect(await store.breakers.list()).toHaveLength(120)
  })

  it('refuse a name that can not be one', () => {
    expect(() => createWorld().breakers.get('', settings)).toThrow(expect.objectContaining({ code: 'NAME_INVALID' }))
  })

  it('are of no more use once they are closed, and leave the store alone', async () => {
    const { store, breakers, fail } = createWorld()
    await fail('one')
    const one = breakers.get('one', settings)
    const entry = await one.enter()
    await breakers.close()
    await one.report(entry, false)
    expect((await store.breakers.load(['one'])).breakers[0]?.revision).toBe(1)
    expect(() => breakers.get('one', settings)).toThrow(expect.objectContaining({ code: 'ENGINE_STATE' }))
  })
})
