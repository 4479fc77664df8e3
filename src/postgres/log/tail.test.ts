import { describe, expect, it } from 'vitest'
import type { RecordedEvent } from '../../event/event.ts'
import { whole } from '../../source/share.ts'
import { Tail } from './tail.ts'

const limits = { events: 100, bytes: 100_000 }

describe('the end of the log that is kept', () => {
  it('gives what comes after a position, as far as it goes', () => {
    const tail = new Tail(10)
    tail.add(10, [event(11), event(12)], 12)
    tail.add(12, [event(14)], 15)
    expect(positionsAfter(tail, 10)).toEqual([11, 12, 14])
    expect(positionsAfter(tail, 12)).toEqual([14])
    expect(tail.read(10, limits, whole)?.through).toBe(15)
    expect(tail.read(15, limits, whole)).toBeUndefined()
  })

  it('has no hole: what does not follow takes the place of what was kept', () => {
    const tail = new Tail(10)
    tail.add(10, [event(11), event(12)], 12)
    tail.add(20, [event(21)], 21)
    expect(tail.read(10, limits, whole)).toBeUndefined()
    expect(tail.read(12, limits, whole)).toBeUndefined()
    expect(positionsAfter(tail, 20)).toEqual([21])
  })

  it('begins later when it has become too large', () => {
    const tail = new Tail(0)
    for (let position = 1; position <= 6; position++) tail.add(position - 1, [event(position, 1_000_000)], position)
    expect(tail.read(0, limits, whole)).toBeUndefined()
    expect(positionsAfter(tail, 5)).toEqual([6])
    tail.add(6, [event(7, 5_000_000)], 7)
    expect(tail.through).toBe(7)
    expect(tail.read(6, limits, whole)).toBeUndefined()
  })

  it('ends a page where it is full, and gives an event of any size', () => {
    const tail = new Tail(0)
    tail.add(0, [event(1, 70), event(2, 70), event(3)], 3)
    expect(tail.read(0, { events: 2, bytes: 1_000 }, whole)).toMatchObject({ through: 2 })
    expect(tail.read(0, { events: 100, bytes: 100 }, whole)).toMatchObject({ through: 1 })
    expect(positionsAfter(tail, 0, { events: 100, bytes: 10 })).toEqual([1])
  })
})

function positionsAfter(tail: Tail, after: number, most = limits): number[] | undefined {
  return tail.read(after, most, whole)?.events.map(({ position }) => position)
}

function event(position: number, bytes = 2): RecordedEvent {
  return {
    position,
    id: String(position),
    type: 'Noted',
    key: 'a',
    version: position,
    schemaVersion: 1,
    time: '2026-01-01T00:00:00.000Z',
    body: ' '.repeat(bytes),
    metadata: undefined,
  }
}
