import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank, countsOf, createWorld, credited, debited, heldOf, type World } from '../fixtures.ts'
import { away } from '../noting.ts'
import { redrive } from '../redrive/asking.ts'
import { createLog, defineSubscription, type SqlProjection, type Store } from '../../src/index.ts'
import { defineSqlProjection } from '../../src/sqlite/index.ts'
import type { Transaction } from '../../src/subscription/subscription-store.ts'
import { createScriptedSource } from '../../src/testing/source.ts'

// SQL of the user's own in our transaction, as the engine runs it. What the stores owe to it is in the contract suite.

/** One line for every event that was applied, in the order in which it was; a debit of 13 breaks a rule of the table. */
const journal = defineSqlProjection('journal', {
  events: bank,
  on: {
    Credited: async ({ key, data }, tx: DatabaseSync) => {
      await Promise.resolve()
      tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, data.amount)
    },
    Debited: ({ key, data }, tx: DatabaseSync) => {
      if (data.amount === 666) throw new TypeError('not this one')
      tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, -data.amount)
    },
  },
})

async function withLines(world: World): Promise<(key?: string) => number[]> {
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(world.store.file)
  db.exec('CREATE TABLE lines (n INTEGER PRIMARY KEY, key TEXT, amount INTEGER CHECK (amount <> -13))')
  db.close()
  return (key) => {
    const reader = new DatabaseSync(world.store.file, { readOnly: true })
    const rows = reader
      .prepare('SELECT amount FROM lines WHERE ? IS NULL OR key = ? ORDER BY n')
      .all(key ?? null, key ?? null)
    reader.close()
    return rows.map(({ amount }) => Number(amount))
  }
}

describe('a projection in SQL', () => {
  it('applies every event once, in order, with its checkpoint', async () => {
    await using world = await createWorld()
    const lines = await withLines(world)
    const log = createLog({ store: world.store, events: bank })
    for (let i = 1; i <= 25; i++) await log.append(`k${i % 3}`, [credited(i)])
    const engine = world.engine([journal], { page: { events: 4 } })
    await world.settle(engine)
    expect(lines()).toEqual(Array.from({ length: 25 }, (_, i) => i + 1))
    expect(await countsOf(engine, 'journal')).toMatchObject({ applied: 25, held: 0 })
    await engine.stop()
    const again = world.engine([journal])
    await world.settle(again)
    expect(lines()).toHaveLength(25)
    expect(await again.verify('journal')).toMatchObject({ ok: true, events: 25, rows: 0 })
  })

  it('holds nothing when it is the store that fails in the middle of a page', async () => {
    await using world = await createWorld()
    const lines = await withLines(world)
    const log = createLog({ store: world.store, events: bank })
    for (let i = 1; i <= 4; i++) await log.append(`k${i % 2}`, [credited(i)])
    const { subscriptions } = world.store
    let failures = 0
    const failing = (run: Transaction['run']): Transaction['run'] =>
      async function runOrFail(work) {
        if (failures++ < 6) throw away()
        await run(work)
      }
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        perform: (lease, work) =>
          subscriptions.perform(lease, (tx) =>
            work({
              handle: tx.handle,
              run: failing((effect) => tx.run(effect)),
              attempt: failing((effect) => tx.attempt(effect)),
            }),
          ),
      },
    }
    const engine = world.engine([journal], { store })
    await engine.start()
    await world.runtime.advance(60_000)
    expect(failures).toBeGreaterThan(6)
    expect(lines()).toEqual([1, 2, 3, 4])
    expect(await countsOf(engine, 'journal')).toMatchObject({ applied: 4, held: 0 })
  })

  it.for([
    ['a rule of the database', 13, 'ERR_SQLITE_ERROR'],
    ['an error of its own', 666, null],
  ] as const)('holds only the lane of an event that breaks %s', async ([, amount, code]) => {
    await using world = await createWorld()
    const lines = await withLines(world)
    const log = createLog({ store: world.store, events: bank })
    await log.append('good', [credited(1), credited(2)])
    await log.append('bad', [credited(3), debited(amount), credited(4)])
    await log.append('good', [credited(5)])
    const engine = world.engine([journal])
    await world.settle(engine)
    expect(lines('good')).toEqual([1, 2, 5])
    expect(lines('bad')).toEqual([3])
    const held = await heldOf(engine, 'journal')
    expect(held.map(({ lane, status, failure }) => [lane, status, failure?.rule, failure?.code])).toEqual([
      ['bad', 'parked', 'sql', code],
      ['bad', 'queued', undefined, undefined],
    ])
    await log.append('bad', [credited(6)])
    await log.append('good', [credited(7)])
    await world.settle(engine)
    expect(lines()).toEqual([1, 2, 3, 5, 7])
    expect(await countsOf(engine, 'journal')).toMatchObject({ applied: 5, held: 3 })
    expect(await engine.verify('journal')).toMatchObject({ ok: true })
  })

  it('holds what it can not read, and forgets nothing of it when the page runs twice', async () => {
    await using world = await createWorld()
    const lines = await withLines(world)
    const { raw } = createLog({ store: world.store, events: bank })
    await raw.append('unreadable', [{ type: 'Credited', data: { amount: 'none' } }])
    await raw.append('unreadable', [credited(1)])
    await raw.append('bad', [debited(13)])
    await raw.append('good', [credited(2)])
    const engine = world.engine([journal])
    await world.settle(engine)
    expect(lines()).toEqual([2])
    expect((await heldOf(engine, 'journal')).map(({ lane, status }) => [lane, status])).toEqual([
      ['unreadable', 'parked'],
      ['unreadable', 'queued'],
      ['bad', 'parked'],
    ])
    expect(await engine.verify('journal')).toMatchObject({ ok: true })
  })

  it('can not end the transaction it is in', async () => {
    await using world = await createWorld()
    const lines = await withLines(world)
    const rogue = defineSqlProjection('journal', {
      events: bank,
      on: {
        Credited: ({ key, data }, tx: DatabaseSync) => {
          tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, data.amount)
          if (key === 'bad') tx.exec('COMMIT')
        },
      },
    })
    const log = createLog({ store: world.store, events: bank })
    await log.append('good', [credited(1)])
    await log.append('bad', [credited(2)])
    await log.append('good', [credited(3)])
    const engine = world.engine([rogue])
    await world.settle(engine)
    expect(lines()).toEqual([1, 3])
    expect((await heldOf(engine, 'journal')).map(({ failure }) => failure?.code)).toEqual(['TRANSACTION_BROKEN'])
  })

  it('may append to the log in its own transaction, and only there', async () => {
    await using world = await createWorld()
    await withLines(world)
    const log = createLog({ store: world.store, events: bank })
    const relay = (tx: 'with' | 'without'): SqlProjection =>
      defineSqlProjection(`relay-${tx}`, {
        events: bank,
        on: {
          Credited: async ({ key, data }, db: DatabaseSync) => {
            if (key === 'copied') return
            await log.append('copied', [credited(data.amount)], tx === 'with' ? { tx: db } : {})
          },
        },
      })
    await log.append('a', [credited(1)])
    const engine = world.engine([relay('with'), relay('without')])
    await world.settle(engine)
    // What the first round appended.
    await world.settle(engine)
    expect(await countsOf(engine, 'relay-with')).toMatchObject({ applied: 2, held: 0 })
    expect((await heldOf(engine, 'relay-without')).map(({ failure }) => failure?.code)).toEqual(['TRANSACTION_INVALID'])
  })

  it('lets held lanes go in its own transaction, and a bystander is never blamed', async () => {
    await using world = await createWorld()
    const lines = await withLines(world)
    let isBroken = true
    const mended = defineSqlProjection('journal', {
      events: bank,
      on: {
        Credited: ({ key, data }, tx: DatabaseSync) => {
          if (isBroken) throw new TypeError('a bug')
          tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, data.amount)
          if (data.amount === 666) throw new TypeError('not this one')
        },
        Debited: ({ key, data }, tx: DatabaseSync) => {
          tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, -data.amount)
        },
      },
    })
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c', 'd']) await log.append(key, [credited(1), credited(2)])
    await log.append('b', [credited(666), credited(3)])
    await log.append('c', [debited(13), credited(4)])
    const engine = world.engine([mended])
    await world.settle(engine)
    expect(lines()).toEqual([])
    isBroken = false
    const done = await redrive(world, engine, 'journal')
    expect(done).toMatchObject({ status: 'done', letters: 8, byState: { done: 2, failed: 2 } })
    for (const key of ['a', 'b', 'c', 'd']) expect(lines(key)).toEqual([1, 2])
    const held = await heldOf(engine, 'journal')
    expect(held.map(({ lane, status }) => [lane, status])).toEqual([
      ['b', 'parked'],
      ['b', 'queued'],
      ['c', 'parked'],
      ['c', 'queued'],
    ])
    const discarded = await redrive(world, engine, 'journal', { act: 'discard' })
    expect(discarded).toMatchObject({ status: 'done', letters: 4, byState: { done: 2 } })
    expect(lines('b')).toEqual([1, 2, 3])
    expect(lines('c')).toEqual([1, 2, 4])
    await log.append('a', [credited(5)])
    await world.settle(engine)
    expect(lines('a')).toEqual([1, 2, 5])
    expect(await countsOf(engine, 'journal')).toMatchObject({ applied: 11, held: 0, discarded: 2 })
    expect(await engine.verify('journal')).toMatchObject({ ok: true })
  })

  it('is not given what comes in no order', () => {
    const source = createScriptedSource()
    expect(() => defineSubscription(journal, { source })).toThrow(/unordered/)
    expect(() => defineSubscription(balances, { source })).not.toThrow()
  })
})
