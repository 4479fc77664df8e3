import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { sha256Hex } from './sha256.ts'

const nodes = (text: string) => createHash('sha256').update(text).digest('hex')

it('gives the digests of the standard', () => {
  expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(sha256Hex('a'.repeat(1_000_000))).toBe('cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0')
})

it('agrees with Node at every length around the edges of a block', () => {
  const lengths = Array.from({ length: 201 }, (_, length) => length)
  expect(lengths.map((length) => sha256Hex('x'.repeat(length)))).toEqual(
    lengths.map((length) => nodes('x'.repeat(length))),
  )
})

it('agrees with Node on any text, half characters included', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
      expect(sha256Hex(text)).toBe(nodes(text))
    }),
    { numRuns: 500 },
  )
})
