import { createLog, createOperator, defineEvents, defineProjection } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createWorld, rowOf } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { redrive } from '../redrive/asking.ts'

const events = defineEvents({ Paid: z.object({ to: z.string(), amount: z.number() }) })
const totals = defineProjection('totals', {
  events,
  key: ({ data }) => data.to,
  initial: () => ({ total: 0 }),
  on: {
    Paid: (row, { data }) => {
      if (data.amount < 0) throw new RangeError('negative')
      return { total: row.total + data.amount }
    },
  },
})
const paid = (to: string, amount: unknown) => ({ type: 'Paid', data: { to, amount } })

async function held(...payments: readonly [key: string, to: string, amount: unknown][]) {
  const world = await createWorld()
  const { raw } = createLog({ store: world.store, events })
  for (const [key, to, amount] of payments) await raw.append(key, [paid(to, amount)])
  const engine = world.engine([totals])
  const isReadable = payments.every(([, , amount]) => typeof amount === 'number')
  expect(await codeOf(world.settle(engine))).toBe(isReadable ? 'nothing was thrown' : 'SUBSCRIPTION_BLOCKED')
  const operator = createOperator({ store: world.store, subscriptions: [totals], by: 'ann', ...world.runtime })
  return { world, engine, operator }
}

const letter = { subscription: 'totals', position: 1 }

describe('a letter of a projection with a key of its own', () => {
  it('that could not be read is tried on, and looked back at in, the row it turns out to be about', async () => {
    const { world, engine, operator } = await held(['p1', 'x', 'ten'], ['p2', 'x', 5])
    await using _ = world
    await operator.revise(letter, { data: { to: 'x', amount: 10 } }, 'a word')
    const dry = await operator.dryRun('totals', { all: true })
    expect(dry.lanes[0]?.changes).toMatchObject([{ before: undefined, after: { key: 'x', data: { total: 10 } } }])
    await redrive(world, engine, 'totals')
    expect((await rowOf(engine, 'x', totals))?.data).toEqual({ total: 15 })
    expect((await operator.stateAt('totals', 'x')).row?.data).toEqual({ total: 15 })
    expect((await operator.stateAt('totals', 'p1')).row).toBeUndefined()
    expect(await engine.verify('totals')).toMatchObject({ ok: true, differences: [] })
  })

  it('that a revision takes to another row is there, and nowhere else', async () => {
    const { world, engine, operator } = await held(['p3', 'y', 2], ['p1', 'x', -1], ['p2', 'x', 5])
    await using _ = world
    await operator.revise({ ...letter, position: 2 }, { data: { to: 'y', amount: 10 } }, 'not his')
    const dry = await operator.dryRun('totals', { all: true })
    expect(dry.lanes[0]?.changes).toMatchObject([
      { after: { key: 'y', data: { total: 12 } } },
      { after: { key: 'x', data: { total: 5 } } },
    ])
    await redrive(world, engine, 'totals')
    expect((await rowOf(engine, 'x', totals))?.data).toEqual({ total: 5 })
    expect((await rowOf(engine, 'y', totals))?.data).toEqual({ total: 12 })
    expect(await engine.verify('totals')).toMatchObject({ ok: true, differences: [] })
    expect((await operator.stateAt('totals', 'x')).row?.data).toEqual({ total: 5 })
    expect((await operator.stateAt('totals', 'y')).row?.data).toEqual({ total: 12 })
  })
})
