import { createLog, createOperator, defineHandler, defineProjection, defineSubscription } from 'holdfast'
import { defineSqlProjection } from 'holdfast/sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, debited } from '../fixtures.ts'
import { all, codeOf, createScene } from './scene.ts'

describe('the state of a row', () => {
  it('is what it was just before a letter, and at any version', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const row = (version: number, balance: number, seen: number) => ({ version, data: { balance, seen } })

    expect(await operator.stateAt('balances', 'a', { before: 2 })).toEqual({
      key: 'a',
      row: row(1, 1, 1),
      folded: 1,
      position: 1,
    })
    expect(await operator.stateAt('balances', 'a', { version: 1 })).toMatchObject({ row: row(1, 1, 1) })
    expect(await operator.stateAt('balances', 'a', { version: 0 })).toMatchObject({ row: undefined, folded: 0 })
    expect(await operator.stateAt('balances', 'a', { before: 1 })).toMatchObject({ row: undefined, position: 0 })
    // What is held is not in the row, and what stands behind it neither.
    expect(await operator.stateAt('balances', 'a')).toMatchObject({ row: row(1, 1, 1), folded: 1, position: 6 })
    expect(await operator.stateAt('balances', 'c')).toMatchObject({ row: row(1, 7, 1) })
    expect(await operator.stateAt('balances', 'nobody')).toEqual({
      key: 'nobody',
      row: undefined,
      folded: 0,
      position: 0,
    })
  })

  it('is gone through event by event', async () => {
    await using scene = await createScene()
    await scene.log.append('c', [{ type: 'Renamed', data: { owner: 'x' } }, debited(2)])
    await scene.world.settle(scene.engine)
    const steps = await all(scene.operator.steps('balances', 'c'))

    expect(steps).toMatchObject([
      { version: 1, outcome: 'folded', before: undefined, after: { version: 1, data: { balance: 7 } } },
      { version: 2, outcome: 'filtered', before: { version: 1 }, after: { version: 1 } },
      { version: 3, outcome: 'folded', event: { data: { amount: 2 } }, after: { version: 3, data: { balance: 5 } } },
    ])
    const held = await all(scene.operator.steps('balances', 'a', { before: 6 }))
    expect(held.map(({ outcome, position }) => [outcome, position])).toEqual([
      ['folded', 1],
      ['held', 2],
      ['held', 3],
    ])
    expect(held[1]?.failure).toMatchObject({ errorType: 'RangeError' })
  })

  it('is the row that is there, for every key, whatever was filtered', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 60; i++)
      await log.append(`k${i % 7}`, [i % 5 === 4 ? debited(i) : credited(i), { type: 'Renamed', data: { owner: 'x' } }])
    const engine = world.engine()
    await world.settle(engine)
    const operator = createOperator({ store: world.store, subscriptions: [balances], by: 'ada', ...world.runtime })
    for (let k = 0; k < 7; k++) {
      const stored = await engine.read(balances).get(`k${k}`)
      const { row } = await operator.stateAt('balances', `k${k}`)
      expect(row).toEqual(stored && { version: stored.version, data: stored.data })
    }
  })

  it('begins where the subscription does', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), credited(2)])
    const late = defineSubscription(balances, { from: { position: 1 } })
    const engine = world.engine([late])
    await world.settle(engine)
    const operator = createOperator({ store: world.store, subscriptions: [late], by: 'ada', ...world.runtime })
    expect((await operator.stateAt('balances', 'a')).row).toMatchObject({ data: { balance: 2 } })
  })

  it('is found by a key of the projection’s own too', async () => {
    const byOwner = defineProjection('by-owner', {
      events: bank,
      key: ({ key }) => key.split('-')[0] ?? '',
      initial: () => ({ sum: 0 }),
      on: { Credited: (row, { data }) => ({ sum: row.sum + data.amount }) },
    })
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['x-1', 'y-1', 'x-2', 'x-1']) await log.append(key, [credited(1), debited(1)])
    const engine = world.engine([byOwner])
    await world.settle(engine)
    const operator = createOperator({ store: world.store, subscriptions: [byOwner], by: 'ada', ...world.runtime })
    expect(await operator.stateAt('by-owner', 'x')).toMatchObject({ row: { version: 3, data: { sum: 3 } }, folded: 3 })
    expect(await operator.stateAt('by-owner', 'x', { version: 2 })).toMatchObject({ row: { data: { sum: 2 } } })
    expect(await operator.stateAt('by-owner', 'x', { before: 5 })).toMatchObject({ row: { data: { sum: 1 } } })
  })

  it('is there for folds on the log alone', async () => {
    const mail = defineHandler('mail', { events: bank, on: {} })
    const sql = defineSqlProjection('journal', { events: bank, on: {} })
    await using scene = await createScene([mail, sql, balances])
    const { operator } = scene
    expect(await codeOf(operator.stateAt('mail', 'a'))).toBe('STATE_NEEDS_FOLD')
    expect(await codeOf(operator.stateAt('journal', 'a'))).toBe('STATE_NEEDS_FOLD')
    expect(await codeOf(operator.stateAt('other', 'a'))).toBe('SUBSCRIPTION_UNKNOWN')
    expect(await codeOf(operator.stateAt('balances', ''))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.stateAt('balances', 'a', { before: 0 }))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.stateAt('balances', 'a', {} as never))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.stateAt('balances', 'a', { before: 1, version: 1 }))).toBe('OPTION_INVALID')
  })
})
