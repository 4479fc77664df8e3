import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { HeldLane } from '../../dead-letter/letter.ts'
import { DueLanes } from './due-lanes.ts'

const clock = { now: () => 1_000_000, mono: () => 5_000 }
const lane = (name: string, status: HeldLane['status'], dueAt?: number): HeldLane => ({
  lane: name,
  status,
  since: 0,
  done: undefined,
  head: 1,
  headPosition: 1,
  dueAt,
})

it('are those that are to be tried again, by the clock that only grows', () => {
  const due = new DueLanes(
    [lane('a', 'retrying', 1_000_100), lane('b', 'parked', 1), lane('c', 'waiting'), lane('d', 'retrying')],
    clock,
  )
  expect(due.take(5_000)).toBe('d')
  expect([due.nextAt(), due.isDue(5_099), due.take(5_099), due.isDue(5_100)]).toEqual([5_100, false, undefined, true])
  expect([due.take(5_100), due.nextAt(), due.take(9_999)]).toEqual(['a', undefined, undefined])
})

it('is not due where there is none', () => {
  expect([new DueLanes([], clock).isDue(1e9), new DueLanes([], clock).take(1e9)]).toEqual([false, undefined])
})

it('has the newest time of a lane, and none of those before', () => {
  const due = new DueLanes([], clock)
  due.add('a', 10)
  due.add('b', 20)
  due.add('a', 30)
  expect([due.nextAt(), due.isDue(19)]).toEqual([20, false])
  expect([due.take(100), due.take(100), due.take(100)]).toEqual(['b', 'a', undefined])
})

it('comes in the order of the times, however many there are', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 100 }))), (adds) => {
      const due = new DueLanes([], clock)
      const times = new Map<string, number>()
      for (const [name, at] of adds) {
        due.add(`lane ${name}`, at)
        times.set(`lane ${name}`, at)
      }
      const expected = [...times.values()].toSorted((a, b) => a - b)
      const taken: number[] = []
      for (let next = due.nextAt(); next !== undefined; next = due.nextAt()) {
        expect(due.isDue(next - 1)).toBe(false)
        const found = due.take(next) as string
        expect(times.get(found)).toBe(next)
        times.delete(found)
        taken.push(next)
      }
      expect(taken).toEqual(expected)
    }),
  )
})
