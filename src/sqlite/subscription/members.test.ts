import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../store.ts'
import { createTemporaryStore } from '../../testing/temporary-store.ts'
import { createVirtualRuntime } from '../../testing/virtual.ts'
import { createHolder } from '../connection/holder.ts'
import { createSqliteStore } from '../index.ts'

const leaseMs = 9_000

async function world() {
  const runtime = createVirtualRuntime()
  const store = await createTemporaryStore({ clock: runtime.clock, busyTimeout: '1ms' })
  await store.subscriptions.register({ name: 's', table: undefined, start: 0, partitions: 2 })
  const db = new DatabaseSync(store.file)
  const attend = async (owner: string, on: Store = store) => {
    const [view] = await on.subscriptions.attend({ owner, subscriptions: ['s'], leaseMs })
    return view
  }
  const enter = (owner: string, holder: object) =>
    db
      .prepare('INSERT INTO holdfast_members (subscription, owner, holder, until) VALUES (?, ?, ?, ?)')
      .run('s', owner, JSON.stringify(holder), runtime.clock.now() + leaseMs)
  return {
    runtime,
    store,
    db,
    attend,
    enter,
    [Symbol.asyncDispose]: async () => {
      db.close()
      await store.close()
    },
  }
}

describe('a process that attends', () => {
  it('takes the lock of the file only when a third of its time is gone', async () => {
    await using w = await world()
    await w.attend('one')
    w.db.exec('BEGIN IMMEDIATE')
    await w.runtime.advance(leaseMs / 3)
    expect((await w.attend('one'))?.members).toHaveLength(1)
    await w.runtime.advance(1)
    await expect(w.attend('one')).rejects.toMatchObject({ code: 'STORE_BUSY' })
    w.db.exec('ROLLBACK')
    await w.attend('one')
    await w.runtime.advance(leaseMs - 1)
    expect(w.db.prepare('SELECT until FROM holdfast_members').get()).toEqual({ until: w.runtime.clock.now() + 1 })
  })

  it('is not there any more when its process is dead, without waiting for its time to pass', async () => {
    await using w = await world()
    const self = createHolder()
    w.enter('dead', { ...self, ticks: undefined, began: self.began - 60_000 })
    w.enter('elsewhere', { ...self, host: 'elsewhere' })
    const owners = async (owner: string) => (await w.attend(owner))?.members.map((member) => member.owner)
    expect(await owners('one')).toEqual(['elsewhere', 'one'])
    expect(w.db.prepare("SELECT 1 FROM holdfast_members WHERE owner = 'dead'").get()).toBeUndefined()
    w.enter('dead', { ...self, ticks: '1' })
    expect(await owners('one')).toEqual(['elsewhere', 'one'])
  })

  it('is told from another of the same name by its store', async () => {
    await using w = await world()
    await using second = await createSqliteStore({ file: w.store.file, clock: w.runtime.clock })
    await w.attend('one')
    await w.store.subscriptions.claim({ subscription: 's', partition: 0, owner: 'one', leaseMs })
    const view = await w.attend('one', second)
    expect(view?.members.map(({ isSelf, partitions }) => ({ isSelf, partitions }))).toEqual(
      expect.arrayContaining([
        { isSelf: true, partitions: 0 },
        { isSelf: false, partitions: 1 },
      ]),
    )
    expect(view?.partitions[0]).toMatchObject({ isFree: false, isMine: false })
    await second.subscriptions.leave('one')
    expect((await w.attend('one'))?.members).toEqual([{ owner: 'one', isSelf: true, partitions: 1 }])
  })

  it('wakes who listens when it leaves, until they stop', async () => {
    await using w = await world()
    let woken = 0
    const stop = w.store.subscriptions.onRelease(() => woken++)
    await w.store.subscriptions.leave('one')
    await Promise.resolve()
    expect(woken).toBe(1)
    stop()
    await w.store.subscriptions.leave('one')
    await Promise.resolve()
    expect(woken).toBe(1)
  })
})
