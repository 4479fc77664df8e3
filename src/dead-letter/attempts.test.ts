import { describe, expect, it } from 'vitest'
import { attemptNumbers, keepAttempts } from './attempts.ts'

const list = (length: number) => Array.from({ length }, (_, i) => i + 1)

describe('the attempts that are kept', () => {
  it('are all of them, up to 25', () => {
    expect(keepAttempts(list(10))).toEqual(list(10))
    expect(keepAttempts(list(25))).toEqual(list(25))
  })

  it('are the first 5 and the newest 20 of more', () => {
    expect(keepAttempts(list(26))).toEqual([1, 2, 3, 4, 5, ...list(26).slice(6)])
    expect(keepAttempts(list(100))).toEqual([1, 2, 3, 4, 5, ...list(100).slice(80)])
  })

  it('have the numbers that they had', () => {
    expect(attemptNumbers(3, 3)).toEqual({ numbers: [1, 2, 3], missing: 0 })
    expect(attemptNumbers(25, 100)).toEqual({ numbers: keepAttempts(list(100)), missing: 75 })
  })

  it('are missing none where there are more than were counted', () => {
    expect(attemptNumbers(7, 6)).toEqual({ numbers: list(7), missing: 0 })
  })
})
