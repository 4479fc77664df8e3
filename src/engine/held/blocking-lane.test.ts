import { describe, expect, it } from 'vitest'
import { balances, bank } from '../../../test/fixtures.ts'
import { heldLane } from '../../../test/handler-state.ts'
import { defineHandler, defineProjection, defineSubscription, type HoldfastError } from '../../index.ts'
import { heldUpBy, heldUpState, holdsUp } from './blocking-lane.ts'

const on = { Credited: () => undefined }
const inOrder = defineSubscription(defineHandler('ordered', { events: bank, on, order: 'partition' }))
const byKey = defineSubscription(defineHandler('keyed', { events: bank, on }))
const rows = defineSubscription(balances)
const own = defineSubscription(
  defineProjection('own', {
    events: bank,
    key: ({ key }) => key.slice(0, 1),
    initial: () => ({ n: 0 }),
    on: { Credited: ({ n }) => ({ n: n + 1 }) },
  }),
)

describe('a held lane holds up its partition', () => {
  it.for([
    ['where a handler keeps the order of the partition', inOrder, 'a', true],
    ['not where it keeps the order of keys', byKey, 'a', false],
    ['not where a projection goes by the key of its events', rows, '', false],
    ['where a projection with its own key can not tell its row', own, '', true],
    ['not where it can', own, 'a', false],
  ] as const)('%s', ([, subscription, lane, isHeldUp]) => {
    const hold = heldLane(lane)
    expect(holdsUp(subscription, lane)).toBe(isHeldUp)
    expect(heldUpBy(subscription, new Map([[lane, hold]]))).toBe(isHeldUp ? hold : undefined)
    expect(heldUpBy(subscription, new Map())).toBeUndefined()
  })
})

it('what an operator can do about it is said, also for a version beside the live one', () => {
  const errorOf = (subscription: typeof own) => {
    const state = heldUpState(subscription, heldLane('', { status: 'parked', headPosition: 7 }))
    return state.state === 'blocked' ? (state.error as HoldfastError) : undefined
  }
  expect(errorOf(own)).toMatchObject({
    code: 'SUBSCRIPTION_BLOCKED',
    message: expect.stringContaining('position 7 is parked'),
  })
  expect(errorOf(own)?.hint).toContain('dlq show own 7')
  expect(errorOf({ ...own, name: 'own~2', beside: 'own' })?.hint).toContain(
    'if own holds it too, discard it there; then drop this version',
  )
})
