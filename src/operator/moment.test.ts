import { expect, it } from 'vitest'
import type { RedriveStore } from '../redrive/redrive-store.ts'
import { atMoment } from './moment.ts'

function counting() {
  let number = 0
  return { newest: async () => ++number } as unknown as RedriveStore
}

it('acts that overlap count from the first of them, and the next one from its own', async () => {
  const redrives = counting()
  const gate = Promise.withResolvers<void>()
  const first = atMoment(redrives, 'calls', async (newest) => {
    await gate.promise
    return newest
  })
  const second = atMoment(redrives, 'calls', async (newest) => newest)
  const other = atMoment(redrives, 'mails', async (newest) => newest)
  expect([await second, await other]).toEqual([1, 2])
  const third = await atMoment(redrives, 'calls', async (newest) => newest)
  gate.resolve()
  expect([await first, third]).toEqual([1, 1])
  expect(await atMoment(redrives, 'calls', async (newest) => newest)).toBe(3)
})

it('an act that throws is over, too', async () => {
  const redrives = counting()
  await expect(atMoment(redrives, 'calls', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await atMoment(redrives, 'calls', async (newest) => newest)).toBe(2)
  expect(await atMoment(counting(), 'calls', async (newest) => newest)).toBe(1)
})
