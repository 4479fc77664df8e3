import { createVirtualRuntime } from 'holdfast/testing'
import { expect, it } from 'vitest'
import type { RecordedEvent } from '../event/event.ts'
import { describeFailure } from '../failure/failure.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { EngineEmitter } from './events.ts'
import { balances, bank } from '../../test/fixtures.ts'
import { defineHandler } from '../index.ts'
import { Teller } from './teller.ts'

function telling(unknown: 'warn' | 'skip' = 'warn', consumer: Subscription['consumer'] = balances) {
  const runtime = createVirtualRuntime()
  const told: [string, object][] = []
  const warned: object[] = []
  const emit = (name: string, event: object) => told.push([name, event])
  const emitter = { emit, isHeard: () => true } as unknown as EngineEmitter
  const logger = { info: () => undefined, error: () => undefined, warn: (fields: object) => void warned.push(fields) }
  const teller = new Teller(
    { name: 'balances', unknown, consumer } as unknown as Subscription,
    runtime.clock,
    emitter,
    logger,
  )
  const tell = (more: Partial<Parameters<Teller['tell']>[0]>) =>
    teller.tell({ stopped: [], released: [], unknown: [], redriven: [], ...more }, 0)
  return { runtime, teller, tell, told, warned }
}

const record = (id: string, type = 'Credited') => ({ id, type, position: 7, body: '{"owner":"Ada"}' }) as RecordedEvent
const failure = describeFailure({ name: 'Refused', message: 'no Ada', code: 'E1' }, 'permanent', 'fold')
const stopped = (lane: string) => ({ lane, status: 'parked', record: record(`e ${lane}`), failure }) as const
const subscription = 'balances'

it('tells of lanes that are held, redriven and let go', () => {
  const { tell, told } = telling()
  tell({
    stopped: [stopped('a')],
    released: ['b'],
    redriven: [{ redrive: 'r', lane: 'c', letters: 2, state: 'done' }],
  })
  expect(told).toEqual([
    [
      'lane.held',
      {
        subscription,
        lane: 'a',
        status: 'parked',
        eventId: 'e a',
        eventType: 'Credited',
        position: 7,
        failure: { ...failure, message: 'no ***' },
      },
    ],
    ['lane.redriven', { subscription, lane: 'c', redrive: 'r', letters: 2, state: 'done' }],
    ['lane.released', { subscription, lane: 'b' }],
  ])
})

it('warns of lanes that are held every ten seconds at the most, and of all of them then', async () => {
  const { tell, warned, runtime } = telling()
  tell({})
  expect(warned).toEqual([])
  tell({ stopped: [stopped('a'), stopped('b')] })
  tell({ stopped: [stopped('c')] })
  await runtime.advance(9_999)
  tell({ stopped: [stopped('d')] })
  const fields = {
    subscription,
    status: 'parked',
    class: 'permanent',
    errorType: 'Refused',
    code: 'E1',
    error: 'no ***',
  }
  expect(warned).toEqual([{ ...fields, lanes: 2, lane: 'a', eventId: 'e a' }])
  await runtime.advance(1)
  tell({})
  tell({ stopped: [stopped('e')] })
  expect(warned.slice(1)).toEqual([{ ...fields, lanes: 3, lane: 'e', eventId: 'e e' }])
})

it('tells of the first event of an unknown type, and counts the others', () => {
  const { tell, told, warned, teller } = telling()
  tell({ unknown: [record('1', 'New'), record('2', 'New'), record('3', 'Newer')] })
  expect(told).toEqual([
    ['event.unknown', { subscription, type: 'New', eventId: '1', position: 7 }],
    ['event.unknown', { subscription, type: 'Newer', eventId: '3', position: 7 }],
  ])
  expect(warned).toHaveLength(2)
  expect([...teller.unknownTypes]).toEqual([
    ['New', 2],
    ['Newer', 1],
  ])
})

it('warns of it only where that is wanted', () => {
  const { tell, told, warned } = telling('skip')
  tell({ unknown: [record('1', 'New')] })
  expect([told.length, warned.length]).toEqual([1, 0])
})

it('counts a thousand unknown types, and then others', () => {
  const { tell, teller } = telling()
  tell({ unknown: Array.from({ length: 1_002 }, (_, i) => record(String(i), `type ${i}`)) })
  tell({ unknown: [record('x', 'type 0')] })
  expect([teller.unknownTypes.size, teller.unknownTypes.get('(others)'), teller.unknownTypes.get('type 0')]).toEqual([
    1_001, 2, 2,
  ])
})

it('tells of an event that blocks its partition, and warns of it by itself: other keys are affected', () => {
  const inOrder = defineHandler('notify', { events: bank, order: 'partition', on: { Credited: () => undefined } })
  const { tell, told, warned } = telling('warn', inOrder)
  tell({ stopped: [stopped('a')] })
  tell({ released: ['a'] })
  expect(told.map(([name]) => name)).toEqual([
    'lane.held',
    'subscription.blocked',
    'lane.released',
    'subscription.resumed',
  ])
  expect(told[1]).toMatchObject(['subscription.blocked', { partition: 0, by: 'order', failure: { message: 'no ***' } }])
  expect(warned).toMatchObject([{ position: 7, eventId: 'e a', error: 'no ***' }])
})
