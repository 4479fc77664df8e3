import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { createBudget } from './budget.ts'

it('lets so many through, and says when there is room again', () => {
  const budget = createBudget({ retries: 2, perMs: 1_000 })
  expect([0, 100, 200, 999].map((now) => budget.take(now))).toEqual([0, 0, 800, 1])
  expect([1_000, 1_000, 1_100, 1_101].map((now) => budget.take(now))).toEqual([0, 100, 0, 899])
})

it('counts nothing that it did not let through', () => {
  const budget = createBudget({ retries: 1, perMs: 1_000 })
  budget.take(0)
  for (let now = 1; now < 1_000; now++) expect(budget.take(now)).toBe(1_000 - now)
  expect(budget.take(1_000)).toBe(0)
})

it('is not fooled by a time that goes back', () => {
  const budget = createBudget({ retries: 1, perMs: 1_000 })
  budget.take(5_000)
  expect(budget.take(0)).toBe(1_000)
})

it('never lets more through in any stretch of time', () => {
  const steps = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 1_000 }), steps, (retries, perMs, waits) => {
      const budget = createBudget({ retries, perMs })
      const through: number[] = []
      let now = 0
      for (const wait of waits) {
        now += wait
        const roomAt = (through.at(-retries) ?? Number.NEGATIVE_INFINITY) + perMs
        // It makes nobody wait without need, or longer than there is need.
        expect(budget.take(now)).toBe(Math.max(roomAt - now, 0))
        if (roomAt <= now) through.push(now)
      }
      for (const [i, time] of through.entries())
        expect(time - (through[i - retries] ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(perMs)
    }),
  )
})
