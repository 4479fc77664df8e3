import { expect, it } from 'vitest'
import { mergeLetters } from './merge.ts'

const merged = (one: number[], other: number[]) => [...mergeLetters(one, other, (position) => position)]

it('takes the lower position of both, and keeps the order of each', () => {
  expect(merged([], [])).toEqual([])
  expect(merged([1, 2], [])).toEqual([1, 2])
  expect(merged([], [1, 2])).toEqual([1, 2])
  expect(merged([2, 4, 6], [1, 3, 5, 7])).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect(merged([6, 2, 4], [1, 3, 5, 7])).toEqual([1, 3, 5, 6, 2, 4, 7])
  expect(merged([9], [1, 3])).toEqual([1, 3, 9])
})

it('leaves both where it is left', () => {
  const left: string[] = []
  function* letters(name: string) {
    try {
      yield* [1, 2, 3]
    } finally {
      left.push(name)
    }
  }
  for (const position of mergeLetters(letters('one'), letters('other'), (at) => at)) if (position === 2) break
  expect(left).toEqual(['one', 'other'])
})
