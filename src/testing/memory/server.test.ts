import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { at, commitOf, leaseMs, limits, newEvent } from '../contracts/fixtures.ts'
import { directLink, type Link } from '../link.ts'
import { createVirtualRuntime } from '../virtual.ts'
import type { MemoryHandle } from './handle.ts'
import { createMemoryServer, type MemoryStore } from './store.ts'

/** A link on which a test can hold a request back, or lose its answer. */
function createGate() {
  let held: { readonly what: string; readonly reached: () => void; readonly gone: Promise<void> } | undefined
  let lost: string | undefined
  const link: Link = {
    call: async (what, effect) => {
      if (held?.what === what) {
        const { reached, gone } = held
        held = undefined
        reached()
        await gone
      }
      const answer = await effect()
      if (lost !== what) return answer
      lost = undefined
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    },
    hint: (what, deliver) => directLink.hint(what, deliver),
  }
  return {
    link,
    /** The next such request waits until `letGo`. */
    hold: (what: string) => {
      const { promise: reached, resolve } = Promise.withResolvers<void>()
      const { promise: gone, resolve: letGo } = Promise.withResolvers<void>()
      held = { what, reached: resolve, gone }
      return { reached, letGo }
    },
    lose: (what: string) => {
      lost = what
    },
  }
}

function createWorld() {
  const runtime = createVirtualRuntime()
  const server = createMemoryServer(runtime)
  const gate = createGate()
  return {
    runtime,
    server,
    gate,
    one: server.connect({ ...runtime, link: gate.link }),
    two: server.connect(runtime),
    notes: (store: MemoryStore) => [...store.table('notes').keys()],
  }
}

async function idsIn({ log }: MemoryStore): Promise<string[]> {
  return (await log.readAll(0, limits)).events.map(({ id }) => id)
}

describe('an append that has drawn its position and has not committed', () => {
  it('holds readers up at its gap, by its name, and nobody who writes', async () => {
    const { one, two, gate, runtime } = createWorld()
    await two.log.append('a', [newEvent('1')], 'any')
    const held = gate.hold('log.commit')
    const appending = one.log.append('b', [newEvent('2')], 'any')
    await held.reached
    expect(await two.log.append('c', [newEvent('3')], 'any')).toMatchObject({ position: 3 })
    expect(await idsIn(two)).toEqual(['1'])
    expect(await two.log.gap()).toMatchObject({ after: 1, holders: [{ pid: expect.any(Number) as number }] })
    held.letGo()
    expect(await appending).toMatchObject({ position: 2 })
    await runtime.advance(100)
    expect(await idsIn(two)).toEqual(['1', '2', '3'])
    expect(await two.log.gap()).toBeUndefined()
  })

  it('lets readers pass when its process is gone, and its position is nobody else’s', async () => {
    const { one, two, gate, runtime, server } = createWorld()
    const held = gate.hold('log.commit')
    const appending = one.log.append('a', [newEvent('1')], 'any').catch((error: unknown) => error)
    await held.reached
    await two.log.append('b', [newEvent('2')], 'any')
    expect(await idsIn(two)).toEqual([])
    server.disconnect(one)
    await runtime.advance(100)
    expect(await idsIn(two)).toEqual(['2'])
    // It lives after all, hears that it was lost, and tries again as the real one does.
    held.letGo()
    await runtime.advance(1_000)
    expect(await appending).toMatchObject({ outcome: 'appended', position: 3 })
  })

  it('is done when only the answer was lost, once', async () => {
    const { one, gate, runtime } = createWorld()
    gate.lose('log.commit')
    const appending = one.log.append('a', [newEvent('1')], 'new')
    await runtime.advance(1_000)
    expect(await appending).toEqual({ outcome: 'appended', version: 1, position: 1 })
    expect(await idsIn(one)).toEqual(['1'])
  })
})

describe('what another transaction holds', () => {
  it('is waited for: the same key, until it is known which version comes next', async () => {
    const { one, two } = createWorld()
    let second: Promise<unknown> | undefined
    await one.transaction(async (handle) => {
      await one.log.append('a', [newEvent('1')], 'any', { tx: handle })
      second = two.log.append('a', [newEvent('2')], 'any')
      await turn()
    })
    // Its first position was lost when it found the version taken.
    expect(await second).toEqual({ outcome: 'appended', version: 2, position: 3 })
  })

  it('is waited for, and not for ever', async () => {
    const { one, two, runtime } = createWorld()
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const first = one.transaction(async (handle) => {
      await one.log.append('a', [newEvent('1')], 'any', { tx: handle })
      begin()
      await over
    })
    await begun
    const second = two.log.append('a', [newEvent('2')], 'any').catch((error: unknown) => error)
    await runtime.advance(60_000)
    expect(await second).toMatchObject({ code: 'STORE_BUSY' })
    end()
    await first
    expect(await two.log.append('a', [newEvent('2')], 'any')).toMatchObject({ version: 2 })
  })

  it('ends in a deadlock for one of two that wait for each other', async () => {
    const { one, two, notes } = createWorld()
    const both = Promise.withResolvers<void>()
    let begun = 0
    const take = (store: MemoryStore, keys: readonly string[]) =>
      store.transaction(async (handle: MemoryHandle) => {
        for (const key of keys) {
          await handle.put('notes', key, {})
          if (++begun === 2) both.resolve()
          await both.promise
        }
      })
    const results = await Promise.allSettled([take(one, ['x', 'y']), take(two, ['y', 'x'])])
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as Error] : []))
    expect(errors).toMatchObject([{ code: '40P01' }])
    expect(notes(one).toSorted()).toEqual(['x', 'y'])
  })
})

describe('the partition of a transaction that is open', () => {
  /** A process that stands still in the middle of a page. */
  async function standStill(forMs = leaseMs) {
    const world = createWorld()
    const { one } = world
    await one.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const claim = { subscription: 't', partition: 0, leaseMs: forMs }
    const claimed = await one.subscriptions.claim({ ...claim, owner: 'one' })
    if (claimed.outcome !== 'claimed') throw new Error(claimed.outcome)
    const { lease } = claimed
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>()
    const performing = one.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => (tx.handle as MemoryHandle).put('notes', 'x', {}))
      begin()
      await woken
      return { ...commitOf(lease), table: undefined, to: at(1) }
    })
    await begun
    return { ...world, lease, claim, wake, performed: performing.catch((error: unknown) => error) }
  }

  it('is taken over when its process is gone, and nothing is left of what that did', async () => {
    const { one, two, server, claim, wake, performed } = await standStill()
    expect(await two.subscriptions.claim({ ...claim, owner: 'two' })).toMatchObject({ outcome: 'owned' })
    server.disconnect(one)
    const taken = { outcome: 'claimed', isInherited: true }
    expect(await two.subscriptions.claim({ ...claim, owner: 'two' })).toMatchObject(taken)
    wake()
    expect(await performed).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(two.table('notes').size).toBe(0)
  })

  it('is waited for until the server ends what does nothing for too long, and that commits nothing', async () => {
    const { two, runtime, claim, wake, performed } = await standStill()
    await runtime.advance(leaseMs)
    const claiming = two.subscriptions.claim({ ...claim, owner: 'two' })
    await runtime.advance(6_000)
    expect(await claiming).toMatchObject({ outcome: 'claimed', isInherited: true })
    wake()
    expect(await performed).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(two.table('notes').size).toBe(0)
  })

  it('goes to whoever waited for it, and what its last owner commits at that moment is fenced', async () => {
    const { one, two, runtime, lease, claim, wake, performed } = await standStill(5_000)
    await runtime.advance(6_000)
    const claiming = two.subscriptions.claim({ ...claim, owner: 'two' })
    await runtime.advance(4_001)
    // It is the first to come after the server has given its transaction up, and still not the first who waited.
    const committing = one.subscriptions.commit({ ...commitOf(lease), table: undefined, to: at(1) })
    expect(await claiming).toMatchObject({ outcome: 'claimed', state: { checkpoint: { position: 0 } } })
    expect(await committing).toMatchObject({ outcome: 'fenced', owner: 'two' })
    expect(await two.subscriptions.load('t', 0)).toMatchObject({ checkpoint: { position: 0 } })
    wake()
    expect(await performed).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})

describe('a server that crashes', () => {
  it('keeps what was committed, and nothing of what was under way', async () => {
    const { one, two, gate, server, runtime } = createWorld()
    await two.log.append('a', [newEvent('1')], 'any')
    const held = gate.hold('log.commit')
    const appending = one.log.append('a', [newEvent('2')], 'any')
    await held.reached
    server.crash()
    await expect(two.log.end()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await idsIn(two)).toEqual(['1'])
    held.letGo()
    await runtime.advance(1_000)
    // It was written ahead how far positions had been given out.
    expect(await appending).toMatchObject({ outcome: 'appended', version: 2 })
    expect((await appending).outcome === 'appended' && (await two.log.end())).toBeGreaterThan(3)
    await runtime.advance(100)
    expect(await idsIn(two)).toEqual(['1', '2'])
  })

  it('lets go of all partitions, whoever had them', async () => {
    const { one, two, server } = createWorld()
    await one.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const claim = { subscription: 't', partition: 0, leaseMs }
    await one.subscriptions.claim({ ...claim, owner: 'one' })
    server.crash()
    expect(await two.subscriptions.claim({ ...claim, owner: 'two' })).toMatchObject({ outcome: 'claimed' })
  })
})

describe('a copy', () => {
  it('goes into an empty store as a whole, and can be told from no other', async () => {
    const { one } = createWorld()
    await one.log.append('a', [newEvent('1')], 'any')
    await one.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const other = createMemoryServer(createVirtualRuntime()).connect()
    await one.snapshot((moment) => other.restore?.(moment.archive()) ?? Promise.resolve())
    expect(await idsIn(other)).toEqual(['1'])
    expect(await other.log.append('a', [newEvent('2')], 'any')).toMatchObject({ version: 2, position: 2 })
    await expect(
      one.snapshot((moment) => other.restore?.(moment.archive()) ?? Promise.resolve()),
    ).rejects.toMatchObject({ code: 'STORE_NOT_EMPTY' })
  })
})
