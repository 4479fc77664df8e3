import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRandom } from '../testing/virtual.ts'
import { contentId, createIds } from './identity.ts'

/** Ids from a clock that shows what the test sets it to. */
function idsAt(now: number, random = createRandom(7)) {
  const clock = { now: () => time, mono: () => 0 }
  let time = now
  const next = createIds(clock, random)
  return {
    take: (count: number) => Array.from({ length: count }, next),
    set: (ms: number) => {
      time = ms
    },
  }
}

const noon = Date.UTC(2026, 0, 1, 12)
const timeOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
const inOrder = (ids: readonly string[]) => ids.every((id, i) => i === 0 || (ids[i - 1] as string) < id)

describe('an id that we make', () => {
  it('is a UUID of version 7 that carries its time', () => {
    const [id = ''] = idsAt(noon).take(1)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(timeOf(id)).toBe(noon)
  })

  it.for([0, 0xffffffff])('is a UUID of version 7 also when chance gives only %d', (value) => {
    const ids = idsAt(noon, { ...createRandom(1), u32: () => value }).take(3)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(inOrder(ids)).toBe(true)
  })

  it('is a UUID of version 7 also when the clock counts in fractions', () => {
    const ids = idsAt(noon + 0.25)
    const before = ids.take(2)
    ids.set(noon + 0.75)
    const all = [...before, ...ids.take(2)]
    for (const id of all) expect(id).toHaveLength(36)
    expect(all.map(timeOf)).toEqual([noon, noon, noon, noon])
    expect(inOrder(all)).toBe(true)
  })

  it('sorts after all before it, within a millisecond', () => {
    expect(inOrder(idsAt(noon).take(3_000))).toBe(true)
  })

  it('sorts after all before it when the clock is set back', () => {
    const ids = idsAt(noon)
    const before = ids.take(10)
    ids.set(noon - 3_600_000)
    const during = ids.take(10)
    ids.set(noon + 1)
    const after = ids.take(10)
    expect(inOrder([...before, ...during, ...after])).toBe(true)
    expect(during.map(timeOf)).toEqual(during.map(() => noon))
    expect(timeOf(after[0] as string)).toBe(noon + 1)
  })

  it('borrows from the next millisecond when the counter runs over, and stays in order when that comes', () => {
    const ids = idsAt(noon)
    const many = ids.take(10_000)
    expect(timeOf(many.at(-1) as string)).toBeGreaterThan(noon)
    ids.set(noon + 1)
    expect(inOrder([...many, ...ids.take(10)])).toBe(true)
  })

  it('is its own, for any walk of the clock', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 300 }), fc.nat(), (steps, seed) => {
        const ids = idsAt(noon, createRandom(seed))
        let now = noon
        const all = steps.flatMap((step) => {
          ids.set((now += step))
          return ids.take(3)
        })
        expect(inOrder(all)).toBe(true)
      }),
    )
  })
})

describe('the id of a foreign event', () => {
  const event = { type: 'Paid', key: 'order-1', version: 3, time: '2026-01-01T00:00:00.000Z', body: '{"amount":5}' }

  it('is the same for the same content, today and tomorrow', () => {
    expect(contentId(event)).toBe(contentId({ ...event }))
    expect(contentId(event)).toBe('sha256:5c03b211e293893cca39b000bcb72e158f742ec10cd3884494f62df6189d7740')
  })

  it.for([
    ['type', { ...event, type: 'Payed' }],
    ['key', { ...event, key: 'order-2' }],
    ['version', { ...event, version: 4 }],
    ['lack of a version', { ...event, version: undefined }],
    ['time', { ...event, time: '2026-01-01T00:00:00.001Z' }],
    ['body', { ...event, body: '{"amount": 5}' }],
    ['kind of body', { ...event, body: new TextEncoder().encode(event.body) }],
    ['place of a letter', { ...event, type: 'Paido', key: 'rder-1' }],
    ['place of a quote', { ...event, type: 'Paid","order-1', key: '' }],
  ] as const)('differs with another %s', ([, other]) => {
    expect(contentId(other)).not.toBe(contentId(event))
  })

  it('differs for half characters that would look alike in UTF-8', () => {
    expect(contentId({ ...event, key: '\ud800' })).not.toBe(contentId({ ...event, key: '\ud801' }))
  })

  it('is the same for the same bytes', () => {
    const bytes = () => Uint8Array.of(0, 255, 34)
    expect(contentId({ ...event, body: bytes() })).toBe(contentId({ ...event, body: bytes() }))
    expect(contentId({ ...event, body: bytes() })).not.toBe(contentId({ ...event, body: Uint8Array.of(0, 255, 35) }))
  })
})
