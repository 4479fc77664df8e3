import { setTimeout } from 'node:timers/promises'
import type { Projection, Store } from 'holdfast'
import { expect, it } from 'vitest'
import { verifySubscription } from '../../src/verify/verify.ts'
import { generationOf, rebuildableOf } from '../../src/rebuild/generation.ts'
import { credit, engineOf, first, second, silent } from './bank.ts'
import { describeEveryStore } from './stores.ts'
import { systemRuntime } from '../../src/runtime/system.ts'
import { rebuild, switchRebuild } from '../acts.ts'

const accounts = 20

describeEveryStore('two versions that change places again and again', (open) => {
  it('are both equal to their folds, while both kinds of process run and events keep coming', async () => {
    await using place = await open()
    const { store } = place
    await using one = engineOf(store, [first])
    await using other = engineOf(store, [first])
    await using young = engineOf(store, [second])
    for (const engine of [one, other, young]) await engine.start()
    await credit(store, 300, accounts)
    await using traffic = appendTo(store)
    await rebuild(second, { store, logger: silent, load: 1 })
    const stop = new AbortController()
    // Whichever is not live at a time is followed up.
    const following = [follow(store, first, stop.signal), follow(store, second, stop.signal)]

    const path: string[] = []
    for (let i = 0; i < 6; i++) {
      const { from, to } = await switchRebuild(i % 2 === 0 ? second : first, { store, logger: silent, wait: '30s' })
      path.push(`${from}>${to}`)
      await setTimeout(50)
    }
    await traffic.stop()
    await one.drain()
    stop.abort()
    await Promise.all(following)

    expect(path).toEqual(['1>2', '2>1', '1>2', '2>1', '1>2', '2>1'])
    const live = await one.verify('balances')
    const head = await store.log.head()
    expect(live.differences).toEqual([])
    expect(live).toMatchObject({ ok: true, events: head, rows: accounts, counts: { applied: head } })
    const kept = await verifySubscription(store, generationOf(rebuildableOf(second)), systemRuntime)
    expect(kept.differences).toEqual([])
    expect(kept.ok).toBe(true)
  }, 60_000)
})

/** Builds a version whenever it is not the live one. */
async function follow(store: Store, projection: Projection, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await rebuild(projection, { store, logger: silent, load: 1, follow: true, signal }).catch((error: unknown) => {
      if ((error as { code?: string }).code !== 'REBUILD_LIVE') throw error
    })
    await setTimeout(20)
  }
}

function appendTo(store: Store) {
  let isOver = false
  const run = (async () => {
    for (let i = 0; !isOver; i++) {
      await credit(store, 3, accounts, i * 3)
      await setTimeout(3)
    }
  })()
  const stop = async () => {
    isOver = true
    await run
  }
  return { stop, [Symbol.asyncDispose]: stop }
}
