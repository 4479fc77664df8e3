import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited } from '../../test/fixtures.ts'
import { createLog } from '../index.ts'
import { RowCache } from './rows.ts'

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
})
