import { setTimeout } from 'node:timers/promises'
import type { Store } from 'holdfast'
import { expect, it } from 'vitest'
import { verifySubscription } from '../../src/verify/verify.ts'
import { generationOf, rebuildableOf } from '../../src/rebuild/generation.ts'
import { credit, engineOf, first, second, silent } from './bank.ts'
import { RebuildProcess } from './child-process.ts'
import { describeStores } from './stores.ts'
import { systemRuntime } from '../../src/runtime/system.ts'
import { rebuild, switchRebuild } from '../acts.ts'

const events = 6_000
const accounts = 100
/** When the rebuild is killed, by how many events it has applied. */
const kills = [500, 2_000, 3_500]

describeStores('a rebuild that is killed goes on', (open) => {
  it('is equal to the fold after three kill -9, beside live traffic, and after the switch', async () => {
    await using place = await open()
    const { store, address } = place
    await credit(store, events, accounts)
    await using live = new RebuildProcess({ address, role: 'live' })
    await live.until('started')
    await using traffic = appendTo(store)

    for (const limit of kills) {
      await using building = new RebuildProcess({ address, role: 'rebuild' })
      await building.until('started')
      await expect.poll(() => applied(store), { timeout: 60_000, interval: 5 }).toBeGreaterThan(limit)
      await building.kill()
    }
    const killedAt = await applied(store)
    await using last = new RebuildProcess({ address, role: 'rebuild' })
    await last.until('level')
    await switchRebuild(second, { store, logger: silent, wait: '60s' })

    await using young = engineOf(store, [second])
    await young.start()
    await traffic.stop()
    await young.drain()
    await live.stop()
    // Each time it was really in the middle.
    expect(killedAt).toBeLessThan(events)
    const head = await store.log.head()
    expect(head).toBeGreaterThan(events)
    const verification = await young.verify('balances')
    expect(verification.differences).toEqual([])
    expect(verification).toMatchObject({ ok: true, rows: accounts, events: head })
    expect(verification.counts).toMatchObject({ applied: head, held: 0, duplicate: 0, discarded: 0 })
  }, 120_000)
})

describeStores('a switch that is killed', (open) => {
  it('has happened or has not: one version is live, and both are equal to their folds', async () => {
    await using place = await open()
    const { store, address } = place
    await using old = engineOf(store, [first])
    await using young = engineOf(store, [second])
    await old.start()
    await young.start()
    await credit(store, 200, 20)
    await old.drain()
    await rebuild(second, { store, logger: silent, load: 1 })
    const states: string[] = []

    for (let i = 0; i < 6; i++) {
      await using switching = new RebuildProcess({ address, role: 'switch' })
      await switching.until('started')
      await setTimeout(40 + i * 37)
      await switching.kill()
      const versions = await store.rebuilds.list('balances')
      states.push(versions.map(({ isLive }) => (isLive ? 'live' : 'beside')).join())
      await credit(store, 20, 20, i * 20)
    }

    expect(new Set(states)).toEqual(new Set(['live,beside']))
    const head = await store.log.head()
    await switchRebuild(first, { store, logger: silent, wait: '30s' }).catch(() => undefined)
    await expect.poll(async () => (await old.verify('balances')).events, { timeout: 30_000 }).toBe(head)
    const live = await old.verify('balances')
    expect(live.differences).toEqual([])
    const kept = await verifySubscription(store, generationOf(rebuildableOf(second)), systemRuntime)
    expect(kept.differences).toEqual([])
    expect(kept.ok).toBe(true)
  }, 90_000)
})

async function applied(store: Store): Promise<number> {
  const generations = await store.rebuilds.list('balances')
  const building = generations.find(({ version }) => version === 2)
  return building?.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.applied, 0) ?? 0
}

function appendTo(store: Store) {
  let isOver = false
  const run = (async () => {
    for (let i = 0; !isOver; i++) {
      await credit(store, 1, accounts, i)
      await setTimeout(5)
    }
  })()
  const stop = async () => {
    isOver = true
    await run
  }
  return { stop, [Symbol.asyncDispose]: stop }
}
