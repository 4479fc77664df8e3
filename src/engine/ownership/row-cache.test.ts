import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited } from '../../../test/fixtures.ts'
import { createLog } from '../../index.ts'
import { claimed, commitOf } from '../../testing/contracts/fixtures.ts'
import { RowCache } from './row-cache.ts'

describe('the rows kept between pages', () => {
  it('take no more memory than they may, and what came first goes first', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const keys = Array.from({ length: 20 }, (_, i) => `key-${String(i).padStart(2, '0')}`)
    for (const key of keys) await log.append(key, [credited(1)])
    await world.settle(world.engine())
    const kept = async (mostBytes: number) => {
      const cache = new RowCache(world.store, balances, false, mostBytes)
      await cache.load(keys)
      cache.trim()
      return keys.filter((key) => cache.get(key))
    }
    expect(await kept(1_000_000)).toEqual(keys)
    const some = await kept(3_000)
    expect(some.length).toBeGreaterThan(0)
    expect(some.length).toBeLessThan(keys.length)
    expect(some).toEqual(keys.slice(-some.length))
    expect(await kept(0)).toEqual([])
  })

  const sized = async (keys: number, mostBytes: number) => {
    const world = await createWorld()
    await world.store.subscriptions.register({ name: 'balances', table: balances.table, start: 0, partitions: 1 })
    const cache = new RowCache(world.store, balances, false, mostBytes)
    const names = Array.from({ length: keys }, (_, i) => `key-${i}`)
    await cache.load(names)
    const left = () => {
      cache.trim()
      return names.filter((key) => cache.get(key)).length
    }
    return { cache, left, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
  }

  it('are all kept up to the limit, and beyond it as many as take three quarters of it', async () => {
    // A row that is not there yet counts 250 bytes.
    for (const [keys, mostBytes, expected] of [
      [4, 1_000, 4],
      [4, 999, 2],
      [5, 1_000, 3],
    ] as const) {
      await using setup = await sized(keys, mostBytes)
      expect(setup.left()).toBe(expected)
    }
  })

  it('count as much as was last written of them', async () => {
    for (const [mostBytes, expected] of [
      [2_022, 4],
      [2_021, 3],
    ] as const) {
      await using setup = await sized(4, mostBytes)
      const folding = setup.cache.get('key-0')
      if (!folding) throw new Error('It was not loaded.')
      folding.row = { text: 'x'.repeat(500) }
      folding.changed = true
      expect(setup.cache.write(folding).json).toHaveLength(511)
      expect([folding.changed, folding.size]).toEqual([false, 1_272])
      expect(setup.left()).toBe(expected)
    }
  })

  it('are as far as their row or their lane is, whichever is further, where versions are watched', async () => {
    await using world = await createWorld()
    const { subscriptions } = world.store
    const { table } = balances
    await subscriptions.register({ name: 'balances', table, start: 0, partitions: 1 })
    const claim = { subscription: 'balances', partition: 0, owner: 'me', leaseMs: 1_000 }
    const lease = claimed(await subscriptions.claim(claim))
    const row = (key: string, version: number) => ({ key, version, position: version, json: '{}', columns: [null] })
    const lane = (name: string, done: number) => ({ lane: name, hold: undefined, done })
    const rows = [row('a', 3), row('b', 7)]
    await subscriptions.commit({ ...commitOf(lease), table, rows, lanes: [lane('a', 5), lane('b', 2), lane('c', 4)] })
    const done = async (watchesGaps: boolean) => {
      const cache = new RowCache(world.store, balances, watchesGaps, 1_000_000)
      await cache.load(['a', 'b', 'c', 'd'])
      return ['a', 'b', 'c', 'd'].map((key) => cache.get(key)?.done)
    }
    expect(await done(true)).toEqual([5, 7, 4, undefined])
    expect(await done(false)).toEqual([3, 7, undefined, undefined])
  })
})
