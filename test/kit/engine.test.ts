import { DatabaseSync } from 'node:sqlite'
import { createOperator, defineHandler, defineProjection, definePolicy, failure, fixed, park, retry } from 'holdfast'
import { defineSqlProjection } from 'holdfast/sqlite'
import { createTemporaryStore, createTestEngine } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { balances, bank, credited, debited, Post, receipts } from './shop.ts'

/** Debits may not be below zero, and the first version forgot that they could be above the balance. */
const generous = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount }),
    Debited: (row, { data }) => ({ balance: row.balance - data.amount }),
  },
})

describe('a test engine', () => {
  it('runs a whole app: rows, letters, and others outside', async () => {
    const post = new Post()
    await using app = await createTestEngine({ subscriptions: [balances, receipts(post)] })
    await app.append([credited('anna', 10), debited('anna', 40), credited('anna', 1), credited('bob', 2)])
    await app.settle()
    expect(await app.rows(balances)).toEqual({ anna: { balance: 10 }, bob: { balance: 2 } })
    expect(await app.letters()).toMatchObject([
      { subscription: 'balances', lane: 'anna', status: 'parked', failure: { errorType: 'RangeError' } },
      { subscription: 'balances', lane: 'anna', status: 'queued' },
    ])
    expect(await app.letters('receipts')).toEqual([])
    expect(post.sent).toHaveLength(3)
    expect(await app.engine.verify('balances')).toMatchObject({ ok: true })
  })

  it('takes new code, which is tried with what was parked', async () => {
    await using app = await createTestEngine({ subscriptions: [balances] })
    await app.append([credited('anna', 10), debited('anna', 40), credited('anna', 1)])
    await app.settle()
    await app.fix(generous)
    expect(await app.letters()).toEqual([])
    expect(await app.rows(generous)).toEqual({ anna: { balance: -29 } })
    await app.append([credited('anna', 29)])
    await app.settle()
    expect(await app.rows(generous)).toEqual({ anna: { balance: 0 } })
    await expect(app.fix(receipts(new Post()))).rejects.toThrow(
      'no subscription "receipts" to fix. Subscriptions: balances.',
    )
  })

  it('hears at once what a person asks for', async () => {
    let isBroken = true
    const handler = defineHandler('notify', {
      events: bank,
      on: {
        Credited: () => {
          if (isBroken) throw failure.permanent('broken')
        },
      },
    })
    await using app = await createTestEngine({ subscriptions: [handler] })
    await app.append([credited('anna', 1)])
    await app.settle()
    expect(await app.letters('notify')).toMatchObject([{ status: 'parked' }])
    isBroken = false
    const operator = createOperator({ ...app.runtime, store: app.store, subscriptions: [handler], by: 'a test' })
    await operator.redrive('notify', { all: true }, { reason: 'mended' })
    await app.settle()
    expect(await app.letters('notify')).toEqual([])
  })

  it('lets time go on, and only when it is told to', async () => {
    const times: number[] = []
    const slow = defineHandler('slow', {
      events: bank,
      on: {
        Credited: () => {
          times.push(app.runtime.clock.now())
          throw failure.transient('not yet')
        },
      },
      failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('1d') }).then(park), outage: false }),
    })
    await using app = await createTestEngine({ subscriptions: [slow], now: 0 })
    await app.append([credited('anna', 1)])
    await app.settle()
    await app.settle()
    expect(times).toEqual([0])
    await app.advance('12h')
    expect(await app.letters('slow')).toMatchObject([{ status: 'retrying' }])
    await app.advance('2d')
    await app.settle()
    expect(times).toEqual([0, 86_400_000, 172_800_000])
    expect(await app.letters('slow')).toMatchObject([{ status: 'parked' }])
  })

  it('is settled when it stands still, too', async () => {
    let isDown = true
    const strict = defineHandler('strict', {
      events: bank,
      on: {
        Credited: () => {
          if (isDown) throw failure.transient('away')
        },
      },
      order: 'partition',
      failure: definePolicy({ transient: retry({ attempts: 9, backoff: fixed('10s') }).then(park) }),
    })
    await using app = await createTestEngine({ subscriptions: [strict, balances] })
    await app.append([credited('anna', 1), credited('bob', 2)])
    await app.settle()
    const { subscriptions } = await app.engine.status()
    expect(subscriptions.map(({ state }) => state.state)).toEqual(['blocked', 'live'])
    isDown = false
    await app.advance('10s')
    await app.settle()
    expect((await app.engine.status()).subscriptions.map(({ state }) => state.state)).toEqual(['live', 'live'])
  })

  it('runs SQL of your own on a store that can', async () => {
    const sums = defineSqlProjection('sums', {
      events: bank,
      on: {
        Credited: ({ key, data }, tx: DatabaseSync) => {
          tx.exec('CREATE TABLE IF NOT EXISTS sums (key TEXT PRIMARY KEY, sum REAL)')
          const sql = 'INSERT INTO sums VALUES (?, ?) ON CONFLICT DO UPDATE SET sum = sum + excluded.sum'
          tx.prepare(sql).run(key, data.amount)
        },
      },
    })
    let file = ''
    await using app = await createTestEngine({
      subscriptions: [sums],
      store: async ({ clock }) => {
        const store = await createTemporaryStore({ clock })
        file = store.file
        return store
      },
    })
    await app.append([credited('anna', 1), credited('anna', 2)])
    await app.settle()
    using db = new DatabaseSync(file)
    expect(db.prepare('SELECT sum FROM sums').all()).toEqual([{ sum: 3 }])
  })

  it('says who it waits for, when something hangs', async () => {
    const hangs = defineHandler('hangs', { events: bank, on: { Credited: () => new Promise(() => undefined) } })
    await using app = await createTestEngine({ subscriptions: [hangs] })
    await app.append([credited('anna', 1)])
    await expect(app.settle()).rejects.toThrow(
      'No progress: hangs at anna Credited waits for something that never comes. Make the called service answer',
    )
  })

  it('refuses what it does not know', async () => {
    // @ts-expect-error -- it is called subscriptions
    await expect(createTestEngine({ handlers: [] })).rejects.toThrow('handlers')
    await using app = await createTestEngine({ subscriptions: [balances] })
    // @ts-expect-error -- there is no such event
    await expect(app.append([{ key: 'a', type: 'Stolen', data: {} }])).rejects.toThrow('Stolen')
  })
})
