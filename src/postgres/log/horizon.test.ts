import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Holder, Look } from './holders.ts'
import { type Era, Horizon } from './horizon.ts'
import type { Watcher } from './watch.ts'

describe('the safe horizon', () => {
  it('rises with positions that follow each other, and asks nobody', async () => {
    const { horizon, era, watchers } = await begin()
    expect(horizon.learn(era, { server: 's', solid: 7, top: 7, holders: undefined })).toBe(true)
    expect(era.settled).toBe(7)
    expect(watchers()).toEqual([])
  })

  it('passes a gap at once when nobody who appends is left', async () => {
    const { horizon, era } = await begin()
    horizon.learn(era, { server: 's', solid: 7, top: 9, holders: new Set() })
    expect(era.settled).toBe(9)
  })

  it('waits for those it saw at a gap, and not for those who come later', async () => {
    const world = await begin()
    const { horizon, era } = world
    horizon.learn(era, { server: 's', solid: 7, top: 9, holders: new Set(['1:a', '2:b']) })
    expect(era.settled).toBe(7)
    expect(world.look(12, ['1:a', '3:c'])).toBe(false)
    expect(era.settled).toBe(7)
    expect(world.look(15, ['3:c'])).toBe(true)
    expect(era.settled).toBe(9)
    expect(world.wakes()).toBe(1)
  })

  it('waits as long as they take, whatever any clock says', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance', 'hrtime'] })
    onTestFinished(() => void vi.useRealTimers())
    const world = await begin()
    world.horizon.learn(world.era, { server: 's', solid: 7, top: 9, holders: new Set(['1:a']) })
    for (let day = 1; day <= 3; day++) {
      vi.advanceTimersByTime(86_400_000)
      expect(world.look(9, ['1:a'])).toBe(false)
      expect(world.era.settled).toBe(7)
    }
    expect(world.look(9, [])).toBe(true)
    expect(world.era.settled).toBe(9)
  })

  it('takes the next transaction of the same backend for another one', async () => {
    const world = await begin()
    world.horizon.learn(world.era, { server: 's', solid: 7, top: 9, holders: new Set(['1:3/40']) })
    expect(world.look(9, ['1:3/41'])).toBe(true)
    expect(world.era.settled).toBe(9)
  })

  it('waits on when one it waits for is prepared, which gives it another name', async () => {
    const world = await begin()
    world.horizon.learn(world.era, { server: 's', solid: 7, top: 9, holders: new Set(['1:3/40']) })
    expect(world.look(9, ['0:-1/777'])).toBe(false)
    // Nobody with a backend is waited for any more, so this one can't be one of those.
    expect(world.look(9, ['0:-1/777', '0:-1/778'])).toBe(false)
    expect(world.look(9, ['0:-1/778'])).toBe(true)
    expect(world.era.settled).toBe(9)
  })

  it('begins the next wait before the last one ends, when readers have seen more', async () => {
    const world = await begin()
    const { horizon, era } = world
    horizon.learn(era, { server: 's', solid: 7, top: 9, holders: new Set(['1:a']) })
    expect(horizon.learn(era, { server: 's', solid: 7, top: 12, holders: undefined })).toBe(true)
    expect(world.look(13, ['1:a', '2:b'])).toBe(false)
    expect(world.look(20, ['2:b'])).toBe(false)
    expect(era.settled).toBe(9)
    expect(world.look(20, [])).toBe(true)
    expect(era.settled).toBe(13)
  })

  it('has a read ask for the holders after all when nobody waits for them any more', async () => {
    const { horizon, era } = await begin()
    expect(horizon.learn(era, { server: 's', solid: 7, top: 9, holders: undefined })).toBe(false)
    expect(era.settled).toBe(7)
  })

  it('keeps a few waits, however long a transaction stays open', async () => {
    const world = await begin()
    for (let top = 10; top < 100; top++) {
      world.horizon.learn(world.era, { server: 's', solid: 7, top, holders: new Set(['1:a', `2:${top}`]) })
    }
    expect(world.era.waits.length).toBeLessThan(20)
    expect(world.look(100, ['1:a'])).toBe(false)
    expect(world.look(100, [])).toBe(true)
    expect(world.era.settled).toBe(99)
  })

  it('wakes readers when the first missing position is there', async () => {
    const world = await begin()
    world.horizon.learn(world.era, { server: 's', solid: 7, top: 9, holders: new Set(['1:a']) })
    expect(world.look(9, ['1:a'], { isFilled: true })).toBe(false)
    expect(world.wakes()).toBe(1)
  })

  it('forgets everything when the server is another one', async () => {
    const world = await begin()
    const { horizon, era } = world
    horizon.learn(era, { server: 's', solid: 7, top: 9, holders: new Set(['1:a']) })
    expect(world.look(100, [], { server: 'another' })).toBe(true)
    expect(era.settled).toBe(7)
    expect(horizon.isOf(era, 's')).toBe(false)
    expect(await horizon.now()).not.toBe(era)
  })

  it('learns nothing from a replica', async () => {
    const world = await begin()
    world.horizon.learn(world.era, { server: 's', solid: 7, top: 9, holders: new Set(['1:a']) })
    expect(world.look(9, [], { isReplica: true })).toBe(true)
    expect(world.era.settled).toBe(7)
  })
})

async function begin() {
  let watchers: Watcher[] = []
  let wakes = 0
  const beginning = async () => ({ server: 's', settled: 0 })
  const horizon = new Horizon(beginning, { add: (watcher) => void watchers.push(watcher) }, () => wakes++)
  const era: Era = await horizon.now()
  const look = (top: number, holders: readonly Holder[], also: Partial<Look> = {}) => {
    const seen = { server: 's', isReplica: false, isFilled: false, top, holders: new Set(holders), ...also }
    const told = watchers
    watchers = []
    watchers.unshift(...told.filter((watcher) => !watcher(seen)))
    return watchers.length === 0
  }
  return { horizon, era, watchers: () => watchers, look, wakes: () => wakes }
}
