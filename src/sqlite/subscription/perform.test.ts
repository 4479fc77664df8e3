import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { StoreError } from '../../errors.ts'
import { at, begin, claimBy, claimed, commitOf, deedOf, newEvent } from '../../testing/contracts/fixtures.ts'
import { createTemporaryStore } from '../../testing/temporary-store.ts'
import type { Commit, Lease, Transaction } from '../../subscription/subscription-store.ts'
import { Database } from '../connection/database.ts'
import { Guard } from '../connection/guard.ts'

async function world() {
  const store = await createTemporaryStore()
  const user = new DatabaseSync(store.file)
  user.exec('CREATE TABLE notes (n INTEGER PRIMARY KEY)')
  const lease = await begin(store.subscriptions)
  const notes = () =>
    user
      .prepare('SELECT n FROM notes ORDER BY n')
      .all()
      .map(({ n }) => n)
  const perform = (work: (db: DatabaseSync, tx: Transaction) => unknown, position = 1) =>
    store.subscriptions.perform(lease, async (tx) => {
      await work(tx.handle as DatabaseSync, tx)
      return to(lease, position)
    })
  const checkpoint = async () => (await store.subscriptions.load('s', 0))?.checkpoint.position
  return {
    store,
    user,
    lease,
    notes,
    perform,
    checkpoint,
    [Symbol.asyncDispose]: async () => {
      user.close()
      await store.close()
    },
  }
}

function to(lease: Lease, position: number): Commit {
  return { ...commitOf(lease), table: undefined, to: at(position) }
}

const add = (db: DatabaseSync, n: number) => db.prepare('INSERT INTO notes (n) VALUES (?)').run(n)

describe('while the SQL of a user waits for something', () => {
  it('other writes of the store wait behind it in order, and reads go on', async () => {
    await using w = await world()
    const { promise: isInside, resolve: inside } = Promise.withResolvers<void>()
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
    const order: string[] = []
    const performed = w.perform(async (db, tx) => {
      await tx.run(async () => {
        add(db, 1)
        inside()
        await mayEnd
      })
    })
    await isInside
    const began = performance.now()
    const writes = [
      performed.then(() => order.push('perform')),
      w.store.log.append('k', [newEvent('1')], 'any').then(() => order.push('append')),
      w.store.subscriptions.renew(w.lease, 60_000).then(() => order.push('renew')),
      w.store.subscriptions
        .attend({ owner: 'one', subscriptions: ['s'], leaseMs: 1_000 })
        .then(() => order.push('attend')),
      w.store.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 }),
      w.store.subscriptions.pause('s', { reason: 'x', at: 1 }, deedOf('pause')).then(() => order.push('pause')),
    ]
    expect(await w.store.log.head()).toBe(0)
    expect(await w.checkpoint()).toBe(0)
    await setTimeout(50)
    expect(order).toEqual([])
    end()
    await Promise.all(writes)
    expect(order.toSorted()).toEqual(['append', 'attend', 'pause', 'perform', 'renew'])
    expect(order.indexOf('renew')).toBeLessThan(order.indexOf('pause'))
    // Nothing has blocked the process until its busy timeout of a second.
    expect(performance.now() - began).toBeLessThan(900)
    expect(w.notes()).toEqual([1])
  })

  it('another page of SQL waits for it', async () => {
    await using w = await world()
    await w.store.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const other = claimed(await w.store.subscriptions.claim({ ...claimBy('one'), subscription: 't' }))
    const steps: string[] = []
    const page = (lease: Lease) =>
      w.store.subscriptions.perform(lease, async (tx) => {
        steps.push(`${lease.subscription} begins`)
        await tx.run(() => setTimeout(5))
        steps.push(`${lease.subscription} ends`)
        return to(lease, 1)
      })
    const outcomes = await Promise.all([page(w.lease), page(other)])
    expect(outcomes).toEqual([{ outcome: 'committed' }, { outcome: 'committed' }])
    expect(steps).toEqual(['s begins', 's ends', 't begins', 't ends'])
  })

  it('its own write to the store outside the transaction is refused instead of waiting for ever', async () => {
    await using w = await world()
    const { store } = w
    const writes: (() => Promise<unknown>)[] = [
      () => store.log.append('k', [newEvent('1')], 'any'),
      () => store.subscriptions.pause('s', { reason: 'x', at: 1 }, deedOf('pause')),
      () => store.subscriptions.perform(w.lease, async () => to(w.lease, 1)),
    ]
    for (const write of writes) {
      const performed = w.perform((_, tx) => tx.run(() => setTimeout(1).then(write)))
      await expect(performed).rejects.toMatchObject({
        code: 'TRANSACTION_INVALID',
        message: expect.stringContaining('{ tx }') as string,
      })
    }
    expect(await store.log.head()).toBe(0)
    // What it left behind runs when the transaction is over.
    let late: Promise<unknown> | undefined
    await w.perform((_, tx) =>
      tx.run(() => {
        late = setTimeout(20).then(() => store.log.append('k', [newEvent('1')], 'any'))
      }),
    )
    await late
    expect(await store.log.head()).toBe(1)
  })

  it('a store that is closed lets everybody go', async () => {
    await using w = await world()
    const { promise: isClosed, resolve: closed } = Promise.withResolvers<void>()
    const performed = w.perform((db, tx) => tx.run(() => isClosed.then(() => add(db, 1))))
    const writes = Promise.allSettled([
      performed,
      w.store.log.append('k', [newEvent('1')], 'any'),
      w.store.subscriptions.renew(w.lease, 1),
    ])
    await setTimeout(5)
    await w.store.close()
    // The one that hangs in the code of a user is not waited for.
    await expect(w.store.subscriptions.resume('s', deedOf('resume'))).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    closed()
    for (const answer of await writes) expect(answer).toMatchObject({ reason: { code: 'STORE_CLOSED' } })
    await expect(w.perform(() => undefined)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

describe('the transaction of an SQL projection', () => {
  const breaking: Record<string, (db: DatabaseSync) => unknown> = {
    commits: (db) => db.exec('COMMIT'),
    'begins another': (db) => db.exec('COMMIT; BEGIN'),
    'rolls back': (db) => db.prepare('ROLLBACK').run(),
    'names a savepoint like ours': (db) => db.exec('SAVEPOINT holdfast_attempt'),
    'rolls back by a conflict': (db) => db.exec('INSERT OR ROLLBACK INTO notes VALUES (1)'),
    closes: (db) => db.close(),
    'closes and opens': (db) => {
      db.close()
      db.open()
    },
    'hides the error in one of its own': (db) => {
      try {
        db.exec('COMMIT')
      } catch (error) {
        throw new Error('query failed', { cause: error })
      }
    },
  }
  for (const [how, breakIt] of Object.entries(breaking)) {
    for (const door of ['run', 'attempt'] as const) {
      it(`says so when the code of a user ${how} in ${door}, writes nothing, and the next one works`, async () => {
        await using w = await world()
        const performed = w.perform((db, tx) =>
          tx[door](() => {
            add(db, 1)
            breakIt(db)
          }),
        )
        await expect(performed).rejects.toMatchObject({
          code: 'TRANSACTION_BROKEN',
          hint: expect.any(String) as string,
        })
        expect(w.notes()).toEqual([])
        expect(await w.checkpoint()).toBe(0)
        expect(await w.perform((db, tx) => tx.run(() => add(db, 2)))).toEqual({ outcome: 'committed' })
        expect(w.notes()).toEqual([2])
      })
    }
  }

  it('goes on after an attempt that tried to end it', async () => {
    await using w = await world()
    const outcome = await w.perform(async (db, tx) => {
      await tx.attempt(() => add(db, 1))
      await expect(tx.attempt(() => db.exec('COMMIT'))).rejects.toMatchObject({ code: 'TRANSACTION_BROKEN' })
      await tx.attempt(() => add(db, 2))
    })
    expect(outcome).toEqual({ outcome: 'committed' })
    expect(w.notes()).toEqual([1, 2])
  })

  it('lets the code of a user have savepoints of its own', async () => {
    await using w = await world()
    await w.perform((db, tx) =>
      tx.attempt(() => {
        add(db, 1)
        db.exec('SAVEPOINT mine')
        add(db, 2)
        db.exec('ROLLBACK TO mine; RELEASE mine')
      }),
    )
    expect(w.notes()).toEqual([1])
  })

  it('is seen to be broken, if not kept from it, on a Node without authorizers', async () => {
    await using w = await world()
    const guard = new Guard(new Database(w.store.file, { busyMs: 10 }), 'savepoint')
    guard.begin()
    guard.save('attempt')
    guard.db.handle.exec('COMMIT; BEGIN')
    expect(guard.release('attempt')).toBe(false)
    expect(guard.commit()).toBe(false)
    guard.rollback()
    guard.begin()
    expect(guard.commit()).toBe(true)
    guard.db.close()
  })

  it('blames the store for what is its doing, also inside the errors of a query builder', async () => {
    await using w = await world()
    await w.perform((db, tx) => tx.run(() => add(db, 1)))
    const full = (db: DatabaseSync, tx: Transaction, wrap: (error: unknown) => unknown) =>
      tx.run(() => {
        try {
          db.exec('PRAGMA max_page_count = 1; CREATE TABLE big AS SELECT randomblob(1000000)')
        } catch (error) {
          throw wrap(error)
        }
      })
    for (const wrap of [(error: unknown) => error, (cause: unknown) => new Error('query failed', { cause })]) {
      const performed = w.perform((db, tx) => full(db, tx, wrap), 2)
      await expect(performed).rejects.toBeInstanceOf(StoreError)
      await expect(performed).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    }
  })

  it('gives out a thrown nothing as nothing', async () => {
    await using w = await world()
    const performed = w.perform((_, tx) =>
      tx.attempt(() => {
        throw undefined
      }),
    )
    await expect(performed.then(() => 'done')).rejects.toBeUndefined()
  })
})

describe('an append in a transaction of the user', () => {
  it('is there when that commits, and wakes readers', async () => {
    await using w = await world()
    let woken = 0
    w.store.log.onAppend(() => woken++)
    w.user.exec('BEGIN IMMEDIATE')
    add(w.user, 1)
    const appended = w.store.log.append('k', [newEvent('1'), newEvent('2')], 'new', { tx: w.user })
    expect(await appended).toMatchObject({ outcome: 'appended', version: 2 })
    expect(await w.store.log.head()).toBe(0)
    // Another write of this process meanwhile waits for it, without blocking it.
    const began = performance.now()
    const other = w.store.log.append('other', [newEvent('3')], 'any')
    await setTimeout(20)
    expect(woken).toBe(0)
    w.user.exec('COMMIT')
    expect(await other).toMatchObject({ outcome: 'appended', position: 3 })
    expect(performance.now() - began).toBeLessThan(900)
    expect(woken).toBeGreaterThan(0)
  })

  it('wakes readers when the page it is part of has committed, and not before', async () => {
    await using w = await world()
    const woken: string[] = []
    let state = 'open'
    w.store.log.onAppend(() => woken.push(state))
    await w.perform(async (db, tx) => {
      await tx.run(() => w.store.log.append('k', [newEvent('1')], 'any', { tx: db }))
      await setTimeout(5)
      state = 'committed'
    })
    expect(woken).toEqual(['committed'])
    expect(await w.store.log.head()).toBe(1)
  })

  it('is gone when that rolls back, and whole in any case', async () => {
    await using w = await world()
    const { user } = w
    user.exec('BEGIN')
    await w.store.log.append('k', [newEvent('1')], 'new', { tx: user })
    expect(await w.store.log.append('k', [newEvent('2')], 'new', { tx: user })).toEqual({
      outcome: 'version-conflict',
      actual: 1,
    })
    user.exec('ROLLBACK')
    user.exec(`CREATE TRIGGER refuse BEFORE INSERT ON holdfast_events WHEN NEW.id = 'bad'
      BEGIN SELECT RAISE(ABORT, 'no'); END; BEGIN`)
    const half = w.store.log.append('k', [newEvent('1'), newEvent('bad')], 'new', { tx: user })
    await expect(half).rejects.toMatchObject({ code: 'STORE_REFUSED' })
    user.exec('COMMIT')
    expect(await w.store.log.head()).toBe(0)
  })

  it('is refused where there is no transaction on this file', async () => {
    await using w = await world()
    await using elsewhere = await createTemporaryStore()
    const other = new DatabaseSync(elsewhere.file)
    other.exec('BEGIN')
    const closed = new DatabaseSync(w.store.file)
    closed.close()
    for (const tx of [w.user, other, closed, {}, null, 'tx', { prepare: () => undefined, isTransaction: true }]) {
      await expect(w.store.log.append('k', [newEvent('1')], 'any', { tx })).rejects.toMatchObject({
        code: 'TRANSACTION_INVALID',
      })
    }
    other.close()
  })
})
