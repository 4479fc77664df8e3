import { describe, expect, it } from 'vitest'
import type { RecordedEvent } from '../event/event.ts'
import type { Subscription } from './subscription.ts'
import { z } from 'zod'
import { bank } from '../../test/fixtures.ts'
import { defineEvents } from '../index.ts'
import { readEvent, recordOf, relevanceOf, unknownRow } from './interpret.ts'

const credit = () => undefined

function subscribed(
  more: { readonly keyOf?: unknown; readonly kind?: string } = {},
  admits: Partial<Subscription> = {},
) {
  const functions = new Map([['Credited', credit]])
  const consumer = { kind: 'fold', events: bank, reducers: functions, effects: functions, functions, ...more }
  return { consumer, admitsKey: () => true, admits: () => true, ...admits } as unknown as Subscription
}

const slow = defineEvents({
  Credited: z.object({ amount: z.number() }).refine(async ({ amount }) => amount > 0, 'it is nothing'),
})

const record = (more: Partial<RecordedEvent> = {}): RecordedEvent => ({
  position: 7,
  id: 'e7',
  type: 'Credited',
  key: 'ada',
  version: 3,
  schemaVersion: 1,
  time: '2026-01-01T00:00:00.000Z',
  body: '{"amount":5}',
  metadata: '{"by":"bob"}',
  ...more,
})

describe('what an event is to a subscription', () => {
  it.for(['fold', 'sql', 'handler'])('is what a %s does with it', (kind) => {
    expect(relevanceOf(subscribed({ kind }), record())).toBe(credit)
  })

  it('is nothing that it does not admit, do or know', () => {
    expect(relevanceOf(subscribed({}, { admitsKey: () => false }), record())).toBe('outside')
    expect(relevanceOf(subscribed({}, { admits: () => false }), record())).toBe('filtered')
    expect(relevanceOf(subscribed(), record({ type: 'Renamed' }))).toBe('filtered')
    expect(relevanceOf(subscribed(), record({ type: 'Other' }))).toBe('unknown')
  })
})

describe('an event that is read', () => {
  it('has its data and its lane', () => {
    const { id, type, key, time } = record()
    const common = { id, type, key, time, data: { amount: 5 }, metadata: { by: 'bob' } }
    expect(readEvent(subscribed(), record())).toStrictEqual({ lane: 'ada', event: { ...common, version: 3 } })
    expect(readEvent(subscribed(), record({ version: undefined }))).toStrictEqual({ lane: 'ada', event: common })
  })

  it('is in the lane that the projection says', () => {
    const keyOf = ({ data }: { data: { amount: number } }) => `amount ${data.amount}`
    expect(readEvent(subscribed({ keyOf }), record())).toMatchObject({ lane: 'amount 5', event: { key: 'ada' } })
    const lane = (key: unknown) => readEvent(subscribed({ keyOf: () => key }), record())
    expect(lane('x'.repeat(512))).toMatchObject({ lane: 'x'.repeat(512) })
    for (const wrong of ['', 'x'.repeat(513), '\ud800', 'a\0b', 5, undefined, Promise.reject(new Error('late'))])
      expect(lane(wrong)).toMatchObject({
        lane: unknownRow,
        failure: { code: 'FOLD_KEY', class: 'permanent', rule: 'read' },
      })
    expect(lane('y'.repeat(600))).toMatchObject({
      failure: { message: expect.stringContaining(`"${'y'.repeat(60)}"`) },
    })
    expect(lane(5)).toMatchObject({ failure: { message: expect.stringContaining('number. It must') } })
  })

  it('stands in the lane of its key where it can not be read', () => {
    for (const [wrong, code] of [
      [{ type: 'Other' }, 'EVENT_TYPE_UNKNOWN'],
      [{ body: '{"amount":"five"}' }, 'EVENT_SCHEMA'],
    ] as const)
      expect(readEvent(subscribed(), record(wrong))).toMatchObject({
        lane: 'ada',
        failure: { code, class: 'permanent' },
      })
    for (const wrong of [{ body: '{' }, { metadata: '{' }])
      expect(readEvent(subscribed(), record(wrong))).toMatchObject({ lane: 'ada', failure: { rule: 'read' } })
    expect(readEvent(subscribed(), record({ type: 'Other' }))).toMatchObject({
      failure: { message: expect.stringContaining('Add it to defineEvents') },
    })
  })
})

it('a letter is tried with what a person made of it', () => {
  const event = record()
  expect(recordOf({ event, revision: undefined })).toBe(event)
  const revision = { number: 1, body: '{"amount":9}', by: 'ada', reason: 'a typo', at: 1 }
  expect(recordOf({ event, revision })).toEqual({ ...event, body: '{"amount":9}' })
})

it('waits for a schema that takes its time, and tells what it says', async () => {
  const subscription = subscribed({ events: slow } as never)
  expect(await readEvent(subscription, record())).toMatchObject({ lane: 'ada', event: { data: { amount: 5 } } })
  expect(await readEvent(subscription, record({ body: '{"amount":0}' }))).toMatchObject({
    lane: 'ada',
    failure: { class: 'permanent', rule: 'read' },
  })
})
