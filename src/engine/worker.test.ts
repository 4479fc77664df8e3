import { expect, it } from 'vitest'
import { balances, bank } from '../../test/fixtures.ts'
import { defineHandler, defineProjection, defineSubscription, HoldfastError, StoreError } from '../index.ts'
import { isFinal, versionOf } from './worker.ts'

it('waits for what can be mended by waiting, and for nothing else', () => {
  for (const error of [
    new Error('anything'),
    undefined,
    new StoreError('STORE_UNAVAILABLE', 'It is away.'),
    new StoreError('STORE_BUSY', 'It is busy.'),
  ])
    expect(isFinal(error)).toBe(false)
  expect(isFinal(new StoreError('STORE_CLOSED', 'It was closed.'))).toBe(true)
  expect(isFinal(new HoldfastError('SOURCE_REGRESSED', 'It lost something.'))).toBe(true)
})

it('goes on from where it is with whatever the code of a handler became, and keeps versions of projections apart', () => {
  const second = defineProjection('balances', { events: bank, initial: () => ({}), on: {}, version: 2 })
  const handler = defineHandler('notify', { events: bank, on: {} })
  expect([balances, second, handler].map((consumer) => versionOf(defineSubscription(consumer)))).toEqual([
    1,
    2,
    undefined,
  ])
})
