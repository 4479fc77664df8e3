import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Folding } from '../../projection/fold.ts'
import { doneIn, type Partition, place, sequenceIn, versionIn } from './partition.ts'

interface Kind {
  readonly kind?: 'fold' | 'sql'
  readonly watchesGaps?: boolean
  readonly doneBefore?: number | undefined
  readonly hasKeyOf?: boolean
}

const partition = ({ kind = 'fold', watchesGaps = false, doneBefore, hasKeyOf = false }: Kind = {}) =>
  ({
    subscription: { consumer: { kind, keyOf: hasKeyOf ? () => 'a' : undefined } },
    watchesGaps,
    doneBefore,
  }) as unknown as Partition
const event = (position: number, version?: number) => ({ position, version }) as RecordedEvent
const row = (done: number | undefined, position = 0) => ({ done, position }) as Folding
const held = (status: HeldLane['status'], done: number | undefined, head = 9): HeldLane => ({
  lane: 'a',
  status,
  since: 0,
  done,
  head,
  headPosition: 90,
})

describe('the place of an event', () => {
  it('in SQL of the user’s own is decided by the hold of its lane alone', () => {
    expect(place(partition({ kind: 'sql' }), event(5, 1), undefined, undefined)).toBe('apply')
    expect(place(partition({ kind: 'sql' }), event(5, 1), held('waiting', 0), undefined)).toBe('queue')
  })

  it('without gaps to watch is behind what is held, or is told by the version', () => {
    const plain = partition()
    expect(place(plain, event(5, 3), held('parked', undefined), row(2))).toBe('queue')
    expect(place(plain, event(5, 3), undefined, undefined)).toBe('queue')
    expect([2, 3].map((version) => place(plain, event(5, version), undefined, row(2)))).toEqual(['duplicate', 'apply'])
    expect([0, 1].map((version) => place(plain, event(5, version), undefined, row(undefined)))).toEqual([
      'duplicate',
      'apply',
    ])
  })

  it('without a version is told by the position', () => {
    for (const one of [partition(), partition({ hasKeyOf: true }), partition({ watchesGaps: true })]) {
      const version = one.subscription.consumer.keyOf ? 7 : undefined
      expect([4, 5, 6].map((position) => place(one, event(position, version), undefined, row(99, 5)))).toEqual([
        'duplicate',
        'duplicate',
        'apply',
      ])
    }
  })

  it('in a lane that flows is by what was done last', () => {
    const watching = partition({ watchesGaps: true, doneBefore: 0 })
    const at = (version: number, done: number | undefined) => place(watching, event(5, version), undefined, row(done))
    expect([at(2, 2), at(3, 2), at(4, 2)]).toEqual(['duplicate', 'apply', 'wait'])
    expect([at(1, undefined), at(2, undefined)]).toEqual(['apply', 'wait'])
  })

  it('in a lane that began in the middle may be any', () => {
    const middle = partition({ watchesGaps: true })
    expect(place(middle, event(5, 7), undefined, row(undefined))).toBe('apply')
    const hold = held('parked', undefined, 7)
    expect([6, 7, 8].map((version) => place(middle, event(5, version), hold, undefined))).toEqual([
      'duplicate',
      'queue',
      'queue',
    ])
  })

  it('in a lane that waits is before the others only if it is what is missing', () => {
    const watching = partition({ watchesGaps: true, doneBefore: 0 })
    const at = (version: number, status: HeldLane['status']) =>
      place(watching, event(5, version), held(status, 2), row(8))
    expect([at(2, 'waiting'), at(3, 'waiting'), at(4, 'waiting')]).toEqual(['duplicate', 'apply', 'queue'])
    expect([at(3, 'parked'), at(3, 'retrying')]).toEqual(['queue', 'queue'])
  })
})

it('an event has its version, or its position where versions say nothing about the lane', () => {
  expect([versionIn(partition(), event(5, 3)), sequenceIn(partition(), event(5, 3))]).toEqual([3, 3])
  expect([versionIn(partition(), event(5)), sequenceIn(partition(), event(5))]).toEqual([undefined, 5])
  const own = partition({ hasKeyOf: true })
  expect([versionIn(own, event(5, 3)), sequenceIn(own, event(5, 3))]).toEqual([undefined, 5])
})

it('what was done last is told by the hold, then by the row, then by where the subscription began', () => {
  const begun = partition({ doneBefore: 0 })
  expect(doneIn(begun, held('parked', 4), row(9))).toBe(4)
  expect(doneIn(begun, held('parked', undefined), row(9))).toBe(0)
  expect([doneIn(begun, undefined, row(9)), doneIn(begun, undefined, undefined)]).toEqual([9, 0])
  expect(doneIn(partition(), undefined, row(undefined))).toBeUndefined()
})
