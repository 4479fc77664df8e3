import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import type { RecordedEvent } from '../../event/event.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { EngineEmitter } from '../events.ts'
import { balances, bank } from '../../../test/fixtures.ts'
import { defineHandler } from '../../index.ts'
import { OutcomeReporter } from './outcome-reporter.ts'

function telling(unknown: 'warn' | 'skip' = 'warn', consumer: Subscription['consumer'] = balances) {
  const virtual = createVirtualRuntime()
  let sleeping = 0
  const sleep: typeof virtual.timers.sleep = async (...args) => {
    sleeping++
    await virtual.timers.sleep(...args)
    sleeping--
  }
  const runtime = { ...virtual, timers: { ...virtual.timers, sleep }, advance: (ms: number) => virtual.advance(ms) }
  const told: [string, object][] = []
  const warned: object[] = []
  const emit = (name: string, event: object) => told.push([name, event])
  const emitter = { emit, isHeard: () => true } as unknown as EngineEmitter
  const logger = { info: () => undefined, error: () => undefined, warn: (fields: object) => void warned.push(fields) }
  const outcomeReporter = new OutcomeReporter(
    { name: 'balances', unknown, consumer } as unknown as Subscription,
    runtime,
    emitter,
    logger,
  )
  const tell = (more: Partial<Parameters<OutcomeReporter['tell']>[0]>) =>
    outcomeReporter.tell({ stopped: [], released: [], unknown: [], redriven: [], ...more }, 0)
  return { runtime, outcomeReporter, tell, told, warned, logger, sleeps: () => sleeping }
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

describe('logs lanes that are held', () => {
  const fields = {
    subscription,
    status: 'parked',
    class: 'permanent',
    errorType: 'Refused',
    code: 'E1',
    error: 'no ***',
  }
  const other = describeFailure({ name: 'Late', message: 'too late' }, 'transient', 'fold')
  const failed = (lane: string, error: unknown = other) => ({ ...stopped(lane), failure: error as typeof failure })
  const kind = (i: number) =>
    describeFailure(
      { name: `Error${String.fromCharCode(65 + (i >> 4), 65 + (i & 15))}`, message: 'no' },
      'permanent',
      'fold',
    )

  it('alike in one line for each ten seconds, with the number of them', async () => {
    const { tell, warned, runtime } = telling()
    tell({})
    expect(warned).toEqual([])
    tell({ stopped: [stopped('a'), stopped('b')] })
    tell({ stopped: [stopped('c')] })
    await runtime.advance(9_999)
    tell({ stopped: [stopped('d')] })
    expect(warned).toEqual([{ ...fields, lanes: 2, lane: 'a', eventId: 'e a' }])
    await runtime.advance(1)
    expect(warned.slice(1)).toEqual([{ ...fields, lanes: 2, lane: 'c', eventId: 'e c' }])
    tell({ stopped: [stopped('e')] })
    expect(warned).toHaveLength(2)
    await runtime.advance(10_000)
    expect(warned.slice(2)).toEqual([{ ...fields, lanes: 1, lane: 'e', eventId: 'e e' }])
    await runtime.advance(60_000)
    expect(warned).toHaveLength(3)
    tell({ stopped: [stopped('f')] })
    expect(warned.slice(3)).toEqual([{ ...fields, lanes: 1, lane: 'f', eventId: 'e f' }])
  })

  it('that fail in different ways, each at once and in a line of its own', async () => {
    const { tell, warned, runtime } = telling()
    tell({ stopped: [stopped('a'), failed('b'), stopped('c')] })
    expect(warned).toMatchObject([
      { lanes: 2, lane: 'a', errorType: 'Refused' },
      { lanes: 1, lane: 'b', errorType: 'Late' },
    ])
    await runtime.advance(5_000)
    tell({ stopped: [failed('d', kind(0)), failed('e'), stopped('f')] })
    expect(warned.slice(2)).toMatchObject([{ lanes: 1, lane: 'd', errorType: 'ErrorAA' }])
    await runtime.advance(5_000)
    expect(warned.slice(3)).toMatchObject([
      { lanes: 1, lane: 'f', errorType: 'Refused' },
      { lanes: 1, lane: 'e', errorType: 'Late' },
    ])
  })

  it('once for each lane that is held again', async () => {
    const { tell, warned, runtime } = telling()
    for (const lane of ['a', 'b', 'b', 'b']) tell({ stopped: [stopped(lane)] })
    await runtime.advance(10_000)
    expect(warned).toMatchObject([
      { lanes: 1, lane: 'a' },
      { lanes: 1, lane: 'b' },
    ])
  })

  it('without a failure by their status', () => {
    const { tell, warned } = telling()
    tell({ stopped: [{ ...failed('a', undefined), status: 'waiting', failure: undefined }, stopped('b')] })
    expect(warned).toEqual([
      { subscription, lanes: 1, lane: 'a', status: 'waiting', eventId: 'e a' },
      { ...fields, lanes: 1, lane: 'b', eventId: 'e b' },
    ])
  })

  it('and all of them when the subscription fails or stops, and then at once', async () => {
    const { tell, warned, runtime, outcomeReporter } = telling()
    tell({ stopped: [stopped('a')] })
    tell({ stopped: [stopped('b'), stopped('c')] })
    outcomeReporter.flush()
    expect(warned.slice(1)).toMatchObject([{ lanes: 2, lane: 'b' }])
    tell({ stopped: [stopped('d')] })
    outcomeReporter.stop()
    expect(warned.slice(2)).toMatchObject([{ lanes: 1, lane: 'd' }])
    tell({ stopped: [stopped('e')] })
    tell({ stopped: [stopped('f')] })
    expect(warned.slice(3)).toMatchObject([
      { lanes: 1, lane: 'e' },
      { lanes: 1, lane: 'f' },
    ])
    await runtime.advance(60_000)
    expect(warned).toHaveLength(5)
  })

  it('of a hundred kinds of failures at the same time; of the oldest before it is forgotten', async () => {
    const { tell, warned, runtime } = telling()
    tell({ stopped: Array.from({ length: 100 }, (_, i) => failed(`a${i}`, kind(i))) })
    tell({ stopped: Array.from({ length: 100 }, (_, i) => failed(`b${i}`, kind(i))) })
    expect(warned).toHaveLength(100)
    tell({ stopped: [failed('c', kind(100))] })
    expect(warned.slice(100)).toMatchObject([{ lane: 'b0', errorType: 'ErrorAA' }, { lane: 'c' }])
    await runtime.advance(10_000)
    expect(warned).toHaveLength(201)
  })

  it('and continues when the logger throws', async () => {
    const { tell, runtime, warned, logger } = telling()
    tell({ stopped: [stopped('a')] })
    tell({ stopped: [stopped('b')] })
    const { warn } = logger
    logger.warn = () => {
      throw new Error('The disk is full.')
    }
    await runtime.advance(10_000)
    logger.warn = warn
    tell({ stopped: [stopped('c')] })
    await runtime.advance(10_000)
    expect(warned).toMatchObject([{ lane: 'a' }, { lane: 'c' }])
  })

  it('without a timer while there is nothing to log', async () => {
    const { runtime, tell, outcomeReporter, sleeps } = telling()
    tell({ stopped: [stopped('a')] })
    expect(sleeps()).toBe(0)
    tell({ stopped: [stopped('b')] })
    expect(sleeps()).toBe(1)
    await runtime.advance(10_000)
    expect(sleeps()).toBe(0)
    tell({ stopped: [stopped('c')] })
    expect(sleeps()).toBe(1)
    outcomeReporter.stop()
    await runtime.advance(0)
    expect(sleeps()).toBe(0)
  })
})

it('tells of the first event of an unknown type, and counts the others', () => {
  const { tell, told, warned, outcomeReporter } = telling()
  tell({ unknown: [record('1', 'New'), record('2', 'New'), record('3', 'Newer')] })
  expect(told).toEqual([
    ['event.unknown', { subscription, type: 'New', eventId: '1', position: 7 }],
    ['event.unknown', { subscription, type: 'Newer', eventId: '3', position: 7 }],
  ])
  expect(warned).toHaveLength(2)
  expect([...outcomeReporter.unknownTypes]).toEqual([
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
  const { tell, outcomeReporter } = telling()
  tell({ unknown: Array.from({ length: 1_002 }, (_, i) => record(String(i), `type ${i}`)) })
  tell({ unknown: [record('x', 'type 0')] })
  expect([
    outcomeReporter.unknownTypes.size,
    outcomeReporter.unknownTypes.get('(others)'),
    outcomeReporter.unknownTypes.get('type 0'),
  ]).toEqual([1_001, 2, 2])
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
