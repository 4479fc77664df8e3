import { expect, it } from 'vitest'
import type { RecordedEvent } from '../../event/event.ts'
import { isMarked, type Slot, Window } from './window.ts'

const slot = (position: number, isDone = false): Slot => ({
  record: { position, body: 'x'.repeat(position) } as RecordedEvent,
  isDone,
})

function filled(positions: readonly number[], through: number, before?: readonly [number, number][]) {
  const window = new Window(0, before)
  const slots = positions.map((position) => slot(position))
  window.add(slots, through)
  const finish = (...done: number[]) => {
    for (const one of slots) if (done.includes(one.record.position)) window.finish(one)
  }
  return { window, finish }
}

it('counts what is unfinished, each once', () => {
  const { window, finish } = filled([1, 2, 4], 5)
  expect([window.size, window.unfinished, window.unfinishedBytes, window.through]).toEqual([3, 3, 7, 5])
  finish(2)
  finish(2)
  expect([window.size, window.unfinished, window.unfinishedBytes]).toEqual([3, 2, 5])
  window.add([slot(6, true)], 3)
  expect([window.size, window.unfinished, window.through]).toEqual([4, 2, 5])
})

it('is done up to the first that is not, and as far as was read when all are', () => {
  const { window, finish } = filled([1, 2, 4], 5)
  expect(window.done()).toEqual({ position: Number.NEGATIVE_INFINITY, last: undefined })
  finish(1, 4)
  expect(window.done()).toMatchObject({ position: 1, last: { position: 1 } })
  finish(2)
  expect(window.done()).toMatchObject({ position: 5, last: { position: 4 } })
  expect(new Window(7).done()).toEqual({ position: 7, last: undefined })
})

it('marks what is done above the first that is not, in ranges', () => {
  const { window, finish } = filled([1, 2, 3, 4, 5, 6, 8], 9)
  finish(1, 3, 4, 6, 8)
  expect(window.marks()).toEqual([
    [3, 4],
    [6, 8],
  ])
  finish(2)
  expect(window.marks()).toEqual([[6, 8]])
  finish(5)
  expect(window.marks()).toEqual([])
})

it('keeps of what is done above nothing but its place, and what is below as it was', () => {
  const { window, finish } = filled([1, 2, 3], 3)
  finish(1, 3)
  window.marks()
  expect(window.done().last?.body).toBe('x')
  finish(2)
  expect(window.done()).toMatchObject({ position: 3, last: { position: 3, body: '' } })
})

it('marks what another owner had finished, where it has not come yet', () => {
  const before: [number, number][] = [
    [2, 3],
    [5, 8],
    [10, 12],
  ]
  expect(filled([1], 6, before).window.marks()).toEqual([
    [7, 8],
    [10, 12],
  ])
  expect(filled([1], 8, before).window.marks()).toEqual([[10, 12]])
  expect(filled([1], 4, before).window.marks()[0]).toEqual([5, 8])
})

it('knows what is unfinished up to a place', () => {
  const { window, finish } = filled([1, 2, 4], 5)
  finish(1)
  expect([1, 2, 3].map((upTo) => window.hasUnfinished(upTo))).toEqual([false, true, true])
})

it('lets go of what the checkpoint has passed', () => {
  const { window } = filled([1, 2, 4], 5)
  window.pass(2)
  expect(window.size).toBe(1)
  window.pass(3)
  expect(window.size).toBe(1)
  window.pass(4)
  expect(window.size).toBe(0)
})

it('finds a place in marks, their ends too', () => {
  expect([2, 3, 5, 6].map((position) => isMarked([[3, 5]], position))).toEqual([false, true, true, false])
  expect(isMarked([], 1)).toBe(false)
})
