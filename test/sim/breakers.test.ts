import { expect, it } from 'vitest'
import { Breakers } from './breakers.ts'
import { swarmOf } from './swarm.ts'
import type { Known } from './walk.ts'

const ownership = { who: 'one', partition: 0, epoch: 1 }

/** Others fail at these times, or go through at those below zero; then one begins. */
function watched(failedAt: readonly number[], begunAt: number) {
  const breakers = new Breakers({ ...swarmOf(1).steps, breaker: true, endpoints: 0 })
  breakers.claimed(ownership)
  const begunOf = (number: number, atMs: number) => {
    const event: Known = { id: `e-${number}`, position: number, lane: `${number}`, partition: 0, flaw: 'none' }
    return { number, event, ownership, atMs }
  }
  for (const [number, time] of failedAt.entries()) {
    const tried = { subscription: 'calls', number, id: `e-${number}`, how: time < 0 ? 'done' : 'transient' } as const
    breakers.ended(begunOf(number, 0), tried, Math.abs(time))
  }
  breakers.begun(begunOf(9, begunAt))
  return breakers.problems
}

it.for([
  ['after so many failures', [1, 2, 3], 4],
  ['after so many that failed at once', [1, 1, 1], 4],
  ['together with one more than that', [1, 2, 3, 4], 4],
] as const)('blames who begins %s', ([, failedAt, begunAt]) => {
  const problem = 'I10 e-9 was begun after 3 failures in a row, and calls never opened'
  expect(watched(failedAt, begunAt)).toEqual([problem])
})

it.for([
  ['after one less', [1, 2], 4],
  ['together with the last of them', [1, 2, 3], 3],
  ['together with all but one of them', [1, 3, 3, 3], 3],
  ['after one that went through between them', [1, 2, -3, 3], 4],
] as const)('blames nobody who begins %s', ([, failedAt, begunAt]) => {
  expect(watched(failedAt, begunAt)).toEqual([])
})
