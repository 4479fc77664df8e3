import type { DatabaseSync } from 'node:sqlite'
import { createOperator, defineHandler, defineProjection, defineSubscription, definePolicy, failure } from 'holdfast'
import { defineSqlProjection } from 'holdfast/sqlite'
import { createScriptedSource } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, type World } from '../fixtures.ts'
import { codeOf, createScene } from './scene.ts'

/** Everything that the store has of a subscription. */
async function traces({ store }: World, name: string) {
  return {
    letters: await store.letters.list({ subscription: name }),
    partitions: await store.subscriptions.partitions(name),
    redrives: await store.redrives.list({ limit: 10 }),
    audit: await store.audit.list(0, 10),
    rows: await store.rows.load(balances.table, ['a', 'b', 'c']).catch(() => undefined),
  }
}

/** The same projection after somebody mended it: it lets accounts be overdrawn by four. */
const mended = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0, seen: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount, seen: row.seen + 1 }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance + 4) throw new RangeError(`can not take ${data.amount}`)
      return { balance: row.balance - data.amount, seen: row.seen + 1 }
    },
  },
  columns: { balance: 'real' },
})

describe('a dry run of a fold', () => {
  it('shows what each letter makes of its row, by the code at hand, and keeps nothing', async () => {
    await using scene = await createScene()
    const before = await traces(scene.world, 'balances')
    const { store, runtime } = scene.world
    const operator = createOperator({ store, subscriptions: [mended], by: 'ada', ...runtime })
    const dry = await operator.dryRun('balances', { all: true })

    expect(dry).toMatchObject({ kind: 'fold', isWhole: true, totals: { pass: 4, fail: 0, behind: 0, unknown: 0 } })
    expect(dry.lanes).toEqual([
      {
        lane: 'a',
        verdict: 'pass',
        letters: [
          letterOf(2, 'Debited', {
            outcome: 'applied',
            changes: [change('a', 1, { balance: 1, seen: 1 }, 2, { balance: -1, seen: 2 })],
          }),
          letterOf(3, 'Credited', {
            outcome: 'applied',
            changes: [change('a', 2, { balance: -1, seen: 2 }, 3, { balance: 99, seen: 3 })],
          }),
          letterOf(6, 'Debited', {
            outcome: 'applied',
            changes: [change('a', 3, { balance: 99, seen: 3 }, 4, { balance: 94, seen: 4 })],
          }),
        ],
        changes: [change('a', 1, { balance: 1, seen: 1 }, 4, { balance: 94, seen: 4 })],
      },
      {
        lane: 'b',
        verdict: 'pass',
        letters: [
          letterOf(5, 'Debited', {
            outcome: 'applied',
            changes: [change('b', 0, undefined, 1, { balance: -3, seen: 1 })],
          }),
        ],
        changes: [change('b', 0, undefined, 1, { balance: -3, seen: 1 })],
      },
    ])
    expect(await traces(scene.world, 'balances')).toEqual(before)
  })

  it('stops a lane at its first failure', async () => {
    await using scene = await createScene()
    const dry = await scene.operator.dryRun('balances', { lane: 'a' })

    expect(dry.totals).toEqual({ pass: 0, fail: 1, behind: 2, unknown: 0 })
    expect(dry.lanes).toMatchObject([
      {
        verdict: 'fail',
        changes: [],
        letters: [
          { position: 2, outcome: { outcome: 'failed', failure: { errorType: 'RangeError' } } },
          { position: 3, outcome: { outcome: 'behind' } },
          { position: 6, outcome: { outcome: 'behind' } },
        ],
      },
    ])
  })

  it('leaves the head out for a discard, and tries the rest', async () => {
    await using scene = await createScene()
    const dry = await scene.operator.dryRun('balances', { lane: 'a' }, { act: 'discard' })

    expect(dry.lanes[0]?.letters.map(({ outcome }) => outcome.outcome)).toEqual(['ignored', 'applied', 'applied'])
    expect(dry.lanes[0]?.changes).toEqual([change('a', 1, { balance: 1, seen: 1 }, 4, { balance: 96, seen: 3 })])
  })

  it('tries the revision of a letter', async () => {
    await using scene = await createScene()
    await scene.operator.revise({ subscription: 'balances', position: 2 }, { data: { amount: 1 } }, 'typo')
    const dry = await scene.operator.dryRun('balances', { letter: 2 })

    expect(dry.lanes[0]).toMatchObject({ verdict: 'pass', letters: [{ revision: 1 }, {}, {}] })
    expect(dry.lanes[0]?.changes).toEqual([change('a', 1, { balance: 1, seen: 1 }, 4, { balance: 95, seen: 4 })])
  })

  it('says when the limit left something out', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const two = await operator.dryRun('balances', { all: true }, { limit: 2 })
    expect(two.isWhole).toBe(false)
    expect(two.lanes.flatMap(({ letters }) => letters.map(({ position }) => position))).toEqual([2, 3])
    expect((await operator.dryRun('balances', { all: true }, { limit: 4 })).isWhole).toBe(true)
    expect((await operator.dryRun('balances', { all: true }, { limit: 3 })).isWhole).toBe(false)
    expect(await codeOf(operator.dryRun('balances', { all: true }, { limit: 0 }))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.dryRun('balances', { letter: 3 }))).toBe('LETTER_NOT_HEAD')
    expect(await codeOf(operator.dryRun('balances', { incident: 'none' }))).toBe('REDRIVE_NOTHING')
    expect(await codeOf(operator.dryRun('other', { all: true }))).toBe('SUBSCRIPTION_UNKNOWN')
  })

  it('makes no gap of what is left out, and stops at one that is there', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const subscription = defineSubscription(balances, { source })
    const event = (version: number, amount: number) =>
      ({ key: 'a', type: amount < 0 ? 'Debited' : 'Credited', version, data: { amount: Math.abs(amount) } }) as const
    source.deliver(event(1, 1), event(2, -5), event(3, 10), event(5, 10))
    await world.settle(world.engine([subscription]))
    const operator = createOperator({ store: world.store, subscriptions: [subscription], by: 'ada', ...world.runtime })
    const dry = await operator.dryRun('balances', { lane: 'a' }, { act: 'resolve' })

    expect(dry.lanes[0]?.letters.map(({ outcome }) => outcome.outcome)).toEqual(['ignored', 'applied', 'behind'])
  })
})

describe('a dry run of SQL', () => {
  const journal = (limit: number) =>
    defineSqlProjection('journal', {
      events: bank,
      on: {
        Credited: ({ key, data }, tx: DatabaseSync) => {
          tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, data.amount)
        },
        Debited: ({ key, data }, tx: DatabaseSync) => {
          tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, -data.amount)
          if (data.amount > limit) throw new TypeError('too much')
        },
      },
    })

  async function withLines(world: World): Promise<void> {
    const { DatabaseSync } = await import('node:sqlite')
    const db = new DatabaseSync(world.store.file)
    db.exec('CREATE TABLE lines (n INTEGER PRIMARY KEY, key TEXT, amount INTEGER)')
    db.close()
  }

  it('shows the rows that a lane would have changed, and takes them back', async () => {
    await using scene = await createScene([journal(0)], withLines)
    const { store, runtime } = scene.world
    const before = await traces(scene.world, 'journal')
    const operator = createOperator({ store, subscriptions: [journal(4)], by: 'ada', ...runtime })
    const dry = await operator.dryRun('journal', { all: true })

    expect(dry.totals).toEqual({ pass: 3, fail: 1, behind: 0, unknown: 0 })
    expect(dry.lanes).toMatchObject([
      {
        lane: 'a',
        verdict: 'fail',
        letters: [
          { outcome: { outcome: 'applied', changes: undefined } },
          { outcome: { outcome: 'applied', changes: undefined } },
          { outcome: { outcome: 'failed', failure: { errorType: 'TypeError', rule: 'sql' } } },
        ],
        // What the one that failed had written is not among them.
        changes: [
          { table: 'lines', before: undefined, after: { key: 'a', amount: -2 } },
          { table: 'lines', before: undefined, after: { key: 'a', amount: 100 } },
        ],
      },
      {
        lane: 'b',
        verdict: 'pass',
        letters: [{ outcome: { outcome: 'applied', changes: [{ after: { key: 'b', amount: -3 } }] } }],
        changes: [{ after: { key: 'b', amount: -3 } }],
      },
    ])
    expect(await traces(scene.world, 'journal')).toEqual(before)
    const again = await operator.dryRun('journal', { all: true })
    expect(again.lanes).toEqual(dry.lanes)
  })
})

describe('a dry run of a handler', () => {
  const park = definePolicy({ outage: false })

  it('does not call one that does not say it may be tried', async () => {
    let calls = 0
    const mail = defineHandler('mail', {
      events: bank,
      failure: park,
      on: {
        Debited: () => {
          calls++
          throw failure.permanent('no such address')
        },
      },
    })
    await using scene = await createScene([mail])
    const called = calls
    const dry = await scene.operator.dryRun('mail', { all: true })

    expect(calls).toBe(called)
    expect(dry.totals).toMatchObject({ unknown: 3, pass: 0 })
    const [letter] = await scene.operator.letters({ subscription: 'mail' })
    expect(dry.lanes[0]).toMatchObject({
      verdict: 'unknown',
      letters: [{ outcome: { outcome: 'would be called', idempotencyKey: `mail/${letter?.event.id}` } }, {}],
    })
  })

  it('notes the effects of one that does, and has none of them', async () => {
    const done: string[] = []
    let isFixed = false
    const pay = defineHandler('pay', {
      events: bank,
      failure: park,
      dryRun: true,
      on: {
        Debited: async ({ key, data }, ctx) => {
          if (!isFixed) throw failure.permanent('no such account')
          if (data.amount === 3) throw failure.skip('a gift')
          const paid = await ctx.effect(`pay ${key}`, () => {
            done.push(key)
            return 'paid'
          })
          await ctx.effect('mail', () => done.push(`mail ${paid}`))
          if (data.amount === 5) throw failure.transient('busy')
        },
      },
    })
    await using scene = await createScene([pay])
    isFixed = true
    const dry = await scene.operator.dryRun('pay', { all: true })

    expect(done).toEqual([])
    expect(dry.lanes).toMatchObject([
      {
        lane: 'a',
        verdict: 'fail',
        letters: [
          { position: 2, outcome: { outcome: 'handled', effects: ['pay a', 'mail'] } },
          { position: 6, outcome: { outcome: 'failed', effects: ['pay a', 'mail'], failure: { class: 'transient' } } },
        ],
      },
      {
        lane: 'b',
        verdict: 'pass',
        letters: [{ outcome: { outcome: 'ignored', why: expect.stringContaining('a gift') } }],
      },
    ])
  })

  it('runs effects in life, and gives what came of them', async () => {
    const given: unknown[] = []
    const pay = defineHandler('pay', {
      events: bank,
      failure: park,
      dryRun: true,
      on: {
        Debited: async ({ data }, ctx) => {
          given.push([ctx.dryRun, await ctx.effect('pay', async () => data.amount)])
        },
      },
    })
    await using scene = await createScene([pay])
    expect(given).toEqual(
      expect.arrayContaining([
        [false, 2],
        [false, 3],
        [false, 5],
      ]),
    )
    expect(await scene.operator.letters({ subscription: 'pay' })).toEqual([])
  })

  it('does not wait for ever', async () => {
    let isFixed = false
    const stuck = defineHandler('stuck', {
      events: bank,
      failure: park,
      dryRun: true,
      timeout: '1s',
      on: {
        Debited: async (_, { signal }) => {
          if (!isFixed) throw failure.permanent('no')
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          await new Promise(() => undefined)
        },
      },
    })
    await using scene = await createScene([stuck])
    isFixed = true
    const running = scene.operator.dryRun('stuck', { lane: 'b' })
    await scene.world.runtime.advance(1_000)
    expect((await running).lanes).toMatchObject([
      {
        verdict: 'fail',
        letters: [{ outcome: { failure: { message: expect.stringContaining('did not end within 1s') } } }],
      },
    ])
  })
})

function letterOf(position: number, type: string, outcome: object) {
  const letter = expect.objectContaining({ subscription: 'balances' }) as unknown
  return { position, type, eventId: expect.any(String) as string, revision: undefined, outcome, letter }
}

function change(key: string, from: number, before: object | undefined, to: number, after: object) {
  return {
    table: 'balances',
    before: before && { key, version: from, data: before },
    after: { key, version: to, data: after },
  }
}
