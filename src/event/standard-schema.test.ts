import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { describeIssues, isStandardSchema } from './standard-schema.ts'

describe('a Standard Schema', () => {
  it('is known by its interface, on an object or on a function', () => {
    const standard = { '~standard': { version: 1, vendor: 'ours', validate: () => ({ value: 1 }) } }
    expect(isStandardSchema(z.object({ amount: z.number() }))).toBe(true)
    expect(isStandardSchema(standard)).toBe(true)
    expect(isStandardSchema(Object.assign(() => undefined, standard))).toBe(true)
  })

  it.for([
    undefined,
    null,
    'string',
    {},
    { '~standard': null },
    { '~standard': { version: 2, validate: () => ({ value: 1 }) } },
    { '~standard': { version: 1 } },
    () => undefined,
  ])('is not %o', (value) => {
    expect(isStandardSchema(value)).toBe(false)
  })
})

describe('the issues of a schema', () => {
  it('are told with their paths, in either form the standard allows', () => {
    expect(
      describeIssues([
        { message: 'is missing', path: ['lines', 3, { key: 'amount' }] },
        { message: 'is odd', path: [Symbol('mark')] },
        { message: 'is wrong' },
      ]),
    ).toBe('lines.3.amount: is missing; Symbol(mark): is odd; is wrong')
  })

  it('are cut after five, and the rest are counted', () => {
    const issues = Array.from({ length: 12 }, (_, i) => ({ message: `issue ${i + 1}` }))
    expect(describeIssues(issues)).toBe('issue 1; issue 2; issue 3; issue 4; issue 5 (and 7 more)')
  })
})
