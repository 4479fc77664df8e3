import { expect, it } from 'vitest'
import { BeginWindow } from './begin-window.ts'

it('covers what was read, at any time', () => {
  const beginWindow = new BeginWindow(5)
  expect([beginWindow.covers(5, 1e9), beginWindow.covers(6, 0)]).toEqual([true, false])
})

it('covers a hundred more of each partition, for a tenth of a second', () => {
  expect(BeginWindow.reach(10, { partition: 1, of: 4 })).toBe(410)
  const beginWindow = new BeginWindow(5)
  beginWindow.extend(10, 110, 1_000)
  expect([beginWindow.covers(110, 1_099), beginWindow.covers(111, 1_099), beginWindow.covers(110, 1_100)]).toEqual([
    true,
    false,
    false,
  ])
  expect(beginWindow.covers(10, 9_999)).toBe(true)
})

it('never covers less of what was read', () => {
  const beginWindow = new BeginWindow(5)
  beginWindow.extend(3, 3, 0)
  expect(beginWindow.covers(5, 9_999)).toBe(true)
})
