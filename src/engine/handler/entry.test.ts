import { describe, expect, it } from 'vitest'
import { bank } from '../../../test/fixtures.ts'
import type { RecordedEvent } from '../../event/event.ts'
import { defineHandler, defineSubscription, type HandlerDefinition } from '../../index.ts'
import type { HandlerState } from './handler-state.ts'
import { entryOf, eventsOf, LazyReading } from './entry.ts'

const record = (more: Partial<RecordedEvent> = {}): RecordedEvent => ({
  id: 'e-1',
  type: 'Credited',
  key: 'a',
  version: 3,
  position: 70,
  body: '{"amount":5}',
  metadata: undefined,
  time: '2026-01-01T00:00:00.000Z',
  schemaVersion: 1,
  ...more,
})

interface Setup {
  readonly unknown: 'ignore' | 'hold'
  readonly order: NonNullable<HandlerDefinition<typeof bank>['order']>
  readonly logged: boolean
}

function deskOf({ unknown = 'ignore', order = 'key', logged = true }: Partial<Setup> = {}): HandlerState {
  const handler = defineHandler('notify', { events: bank, on: { Credited: () => undefined }, order })
  const subscription = defineSubscription(handler, { unknown })
  return { parts: { subscription }, handler, partition: { logged } } as unknown as HandlerState
}

describe('an event from the source', () => {
  it('is to be done where the handler has a function for it', async () => {
    const { work, reading, ...entry } = entryOf(deskOf(), record())
    expect(work).toBeTypeOf('function')
    expect(await reading?.get()).toMatchObject({ event: { id: 'e-1', data: { amount: 5 } } })
    expect(entry).toEqual({
      record: record(),
      lane: 'a',
      sequence: 3,
      logged: true,
      isUnknown: false,
      isLetter: false,
      isDone: false,
      begun: 0,
      tries: 0,
      unrecorded: [],
    })
  })

  it.for([
    ['is known and not subscribed to', 'Renamed', 'hold', false, false],
    ['is not known, and is ignored', 'Strange', 'ignore', true, false],
    ['is not known, and is to be held', 'Strange', 'hold', true, true],
  ] as const)('%s', ([, type, unknown, isUnknown, isRead]) => {
    const entry = entryOf(deskOf({ unknown }), record({ type }))
    expect([entry.work, entry.isUnknown, entry.reading !== undefined]).toEqual([undefined, isUnknown, isRead])
  })

  it.for([
    ['the version where the log has it in its lane', {}, 3, 3, true],
    ['the position where it has no version', {}, undefined, 70, true],
    ['the position where the source is another', { logged: false }, 3, 70, false],
    ['the position where each has a lane of its own', { order: 'none' }, 3, 70, false],
  ] satisfies [string, Partial<Setup>, number | undefined, number, boolean][])(
    'has as its sequence %s',
    ([, setup, version, sequence, logged]) => {
      expect(entryOf(deskOf(setup), record({ version }))).toMatchObject({ sequence, logged })
    },
  )
})

describe('what was read', () => {
  it('is read once, until somebody else may have changed it', () => {
    let reads = 0
    const reading = new LazyReading(() => ({ read: ++reads }) as never)
    expect([reading.get(), reading.get()]).toEqual([{ read: 1 }, { read: 1 }])
    reading.forget()
    expect([reading.get(), reading.get()]).toEqual([{ read: 2 }, { read: 2 }])
  })

  it('is given of those that can be read and have a function', async () => {
    const handlerState = deskOf({ unknown: 'hold' })
    const events = await eventsOf([
      entryOf(handlerState, record({ type: 'Strange' })),
      entryOf(handlerState, record({ type: 'Renamed' })),
      entryOf(handlerState, record({ body: 'no JSON' })),
      entryOf(handlerState, record({ id: 'e-2' })),
    ])
    expect(events.map(({ id }) => id)).toEqual(['e-2'])
  })
})
