import { describe, expect, it } from 'vitest'
import { parseBody, parseMetadata } from './event.ts'

describe('a body', () => {
  it('is the same value as text and as bytes', () => {
    const text = '{"name":"Zoë 💶","amount":-0,"zero":"\\u0000"}'
    expect(parseBody(text)).toEqual({ name: 'Zoë 💶', amount: -0, zero: '\0' })
    expect(parseBody(new TextEncoder().encode(text))).toEqual({ name: 'Zoë 💶', amount: -0, zero: '\0' })
  })

  it.for([
    ['no JSON', '{"amount":', SyntaxError],
    ['nothing', '', SyntaxError],
    ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22), TypeError],
    ['bytes that end in half a character', Uint8Array.of(0x22, 0xc3), TypeError],
    ['a byte order mark, which JSON does not have', Uint8Array.of(0xef, 0xbb, 0xbf, 0x31), SyntaxError],
  ] as const)('that is %s is not guessed at', ([, body, error]) => {
    expect(() => parseBody(body)).toThrow(error)
  })
})

describe('metadata', () => {
  it('is what was written', () => {
    expect(parseMetadata('{"tenant":"north","retries":2}')).toEqual({ tenant: 'north', retries: 2 })
  })

  it('is empty where there is none, and nobody can write into that', () => {
    expect(parseMetadata(undefined)).toEqual({})
    expect(Object.isFrozen(parseMetadata(undefined))).toBe(true)
  })
})
