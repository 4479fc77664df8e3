import { describe, expect, it } from 'vitest'
import { createFrameReader, createSqlReader } from './protocol.ts'

const startup = Buffer.from([0, 0, 0, 9, 0, 3, 0, 0, 0])
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

function message(type: string, ...strings: string[]): Buffer {
  const body = Buffer.from(strings.map((text) => `${text}\0`).join(''))
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

describe('reading along', () => {
  const sent = [
    sslRequest,
    startup,
    message('p', 'password'),
    message('Q', 'SELECT 1'),
    message('P', 'named', 'SELECT ü'),
    message('B', '', 'named'),
    message('S'),
  ]
  const all = Buffer.concat(sent)

  it('finds the messages, in chunks of any size', () => {
    for (let size = 1; size <= all.length; size++) {
      const read = createFrameReader('frontend')
      const frames = []
      for (let at = 0; at < all.length; at += size) frames.push(...read(all.subarray(at, at + size)))
      expect(frames.map(({ type }) => type)).toEqual(['encryption', 'startup', 'p', 'Q', 'P', 'B', 'S'])
      expect(Buffer.concat(frames.map(({ bytes }) => bytes))).toEqual(all)
    }
  })

  it('knows what SQL runs: that of a query, and that of a statement when it is bound', () => {
    const sqlOf = createSqlReader()
    const sql = createFrameReader('frontend')(all).map((frame) => sqlOf(frame))
    expect(sql).toEqual([undefined, undefined, undefined, 'SELECT 1', undefined, 'SELECT ü', undefined])
  })
})
