import { describe, expect, it } from 'vitest'
import { checkBreakerName, checkWords } from './name.ts'

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

describe('who does it, and why', () => {
  it('is said in up to 2,000 characters', () => {
    expect(checkWords('x'.repeat(2_000), 'The reason')).toBe('x'.repeat(2_000))
    expect(checkWords('half \ud800', 'The reason')).toBe('half \ufffd')
    for (const wrong of [undefined, 5, ' ', 'x'.repeat(2_001)])
      expect(() => checkWords(wrong, 'The reason')).toThrow(refusal('OPTION_INVALID', 'The reason is missing.'))
  })
})
