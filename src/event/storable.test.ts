import { describe, expect, it } from 'vitest'
import { keyLength } from './names.ts'
import { isKey, isStorable } from './storable.ts'

describe('isStorable', () => {
  it.each(['', 'a', 'é', '🙂', '\n'])('accepts %j', (text) => expect(isStorable(text)).toBe(true))
  it.each(['\0', 'a\0b', '\ud800', 'a\udc00'])('refuses %j', (text) => expect(isStorable(text)).toBe(false))
})

describe('isKey', () => {
  it('accepts 1 to 512 characters', () => {
    expect(isKey('k')).toBe(true)
    expect(isKey('k'.repeat(keyLength))).toBe(true)
    expect(isKey('')).toBe(false)
    expect(isKey('k'.repeat(keyLength + 1))).toBe(false)
  })
  it.each([undefined, null, 7, {}, 'a\0', '\ud800'])('refuses %j', (value) => expect(isKey(value)).toBe(false))
})
