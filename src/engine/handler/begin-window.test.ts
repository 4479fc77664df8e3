import { expect, it } from 'vitest'
import { Permit } from './begin-window.ts'

it('covers what was read, at any time', () => {
  const permit = new Permit(5)
  expect([permit.covers(5, 1e9), permit.covers(6, 0)]).toEqual([true, false])
})

it('covers a hundred more of each partition, for a tenth of a second', () => {
  expect(Permit.reach(10, { partition: 1, of: 4 })).toBe(410)
  const permit = new Permit(5)
  permit.extend(10, 110, 1_000)
  expect([permit.covers(110, 1_099), permit.covers(111, 1_099), permit.covers(110, 1_100)]).toEqual([
    true,
    false,
    false,
  ])
  expect(permit.covers(10, 9_999)).toBe(true)
})

it('never covers less of what was read', () => {
  const permit = new Permit(5)
  permit.extend(3, 3, 0)
  expect(permit.covers(5, 9_999)).toBe(true)
})
