import { describe, expect, it } from 'vitest'
import { checkBreakerName } from './name.ts'

const refusal = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message), hint: expect.any(String) })

describe('the name of a breaker', () => {
  it('has up to 500 characters', () => {
    expect(checkBreakerName('x'.repeat(500))).toBe('x'.repeat(500))
    expect(checkBreakerName('https://example.com/ä')).toBe('https://example.com/ä')
  })

  it.for([
    [null, 'null'],
    [7, 'A value of type number'],
    ['', '""'],
    [`${'x'.repeat(59)}\n`, `"${'x'.repeat(59)}\\n"`],
    ['x'.repeat(501), `"${'x'.repeat(60)}…"`],
  ] as const)('is not %o, and says so in short', ([name, shown]) => {
    expect(() => checkBreakerName(name)).toThrow(refusal('NAME_INVALID', `${shown} is not a valid breaker name`))
  })
})
