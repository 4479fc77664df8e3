import { setTimeout } from 'node:timers/promises'
import { type Store, switchRebuild } from 'holdfast'
import { expect, it } from 'vitest'
import { credit, engineOf, second, silent } from './bank.ts'
import { RebuildProcess } from './child-process.ts'
import { describeStores } from './stores.ts'

const events = 20_000
const accounts = 200
/** When the rebuild is killed, by how many events it has applied. */
const kills = [2_000, 8_000, 14_000]

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
