import { describe, expect, it } from 'vitest'
import type { Event, RecordedEvent } from '../../event/event.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { HandlerContext } from '../../handler/handler.ts'
import { systemChannel } from '../../runtime/system.ts'
import { EngineEmitter, type EngineEventName } from '../events.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'
import { HandlerReporter } from './handler-reporter.ts'

const record = { id: 'e-1', type: 'Credited', key: 'a', position: 7, body: '{"owner":"Ada"}' } as RecordedEvent
const failure = describeFailure({ name: 'Refused', message: 'not now', code: 'E1' }, 'transient', 'x')

function tracing(...names: EngineEventName[]) {
  const logged: unknown[] = []
  const told: unknown[] = []
  const note = (level: string) => (fields: object, message: string) => void logged.push([level, fields, message])
  const logger = { info: note('info'), warn: note('warn'), error: note('error') }
  const emitter = new EngineEmitter(logger, systemChannel)
  for (const name of names) emitter.on(name, (event) => void told.push({ name, ...event }))
  const parts = { subscription: { name: 'notify' }, share: { partition: 2, of: 4 }, emitter, logger } as unknown
  return { reporter: new HandlerReporter(parts as WorkerParts), logged, told }
}

describe('a partition that stands still', () => {
  it.for([failure, undefined])('is told of and logged, with what it stands at: %j', (why) => {
    const { reporter, logged, told } = tracing('subscription.blocked')
    reporter.stood('outage', why)
    expect(told).toEqual([
      { name: 'subscription.blocked', subscription: 'notify', partition: 2, by: 'outage', failure: why },
    ])
    const more = why && { class: 'transient', errorType: 'Refused', code: 'E1', error: 'not now' }
    const fields = { subscription: 'notify', partition: 2, by: 'outage', ...more }
    expect(logged).toEqual([['warn', fields, expect.any(String)]])
  })

  it('is told of when it goes on', () => {
    const { reporter, logged, told } = tracing('subscription.resumed')
    reporter.resumed()
    expect(told).toEqual([{ name: 'subscription.resumed', subscription: 'notify', partition: 2 }])
    // The runner logs it, once for all partitions.
    expect(logged).toEqual([])
  })
})

it('gives a handler a logger that says which event it is about', () => {
  const { reporter, logged } = tracing()
  const logger = reporter.loggerOf(record, 3)
  for (const level of ['info', 'warn', 'error'] as const) logger[level]({ more: 1 }, level)
  const about = { subscription: 'notify', eventId: 'e-1', eventType: 'Credited', attempt: 3, more: 1 }
  expect(logged).toEqual(['info', 'warn', 'error'].map((level) => [level, about, level]))
})

it('has no value of the event in what failed, nor in an error that a handler logs', () => {
  const { reporter, logged, told } = tracing('handler.failed', 'message.nacked', 'message.dlq')
  const failed = describeFailure(new TypeError('Ada is not in table people'), 'permanent', 'bug')
  reporter.failed(record, 1, 5, failed)
  reporter.nacked(record, failed, 100)
  reporter.parked(record, failed)
  expect(told).toMatchObject(
    [1, 2, 3].map(() => ({ failure: { errorType: 'TypeError', message: '*** is not in table people' } })),
  )
  reporter.loggerOf(record, 1).warn({ error: new RangeError('no Ada'), mine: 'Ada' }, 'Ada')
  expect(logged).toMatchObject([['warn', { error: { name: 'RangeError', message: 'no ***' }, mine: 'Ada' }, 'Ada']])
})

it('tells by what an event is correlated, where that can be told', () => {
  const { reporter, told } = tracing('handler.started')
  for (const metadata of [undefined, '{"correlationId":"c","causationId":"d"}', 'no JSON'])
    reporter.started({ ...record, metadata }, 1)
  const plain = { name: 'handler.started', subscription: 'notify', partition: 2, eventId: 'e-1', eventType: 'Credited' }
  const event = { ...plain, key: 'a', position: 7, attempt: 1 }
  expect(told).toEqual([event, { ...event, correlationId: 'c', causationId: 'd' }, event])
})

describe('the hook of a user', () => {
  const event = { id: 'e-1', data: { owner: 'Ada' } } as unknown as Event
  const ctx = {} as HandlerContext

  it('is told, and whatever it throws is in the log and nowhere else', async () => {
    const { reporter, logged } = tracing()
    const thrown = new Error('a bug of Ada')
    const heard: unknown[] = []
    reporter.hook(undefined, 'error', event, ctx)
    reporter.hook((...args) => void heard.push(args), 'error', event, ctx)
    reporter.hook(() => Promise.reject(thrown), 'error', event, ctx)
    await new Promise(setImmediate)
    expect(heard).toEqual([['error', event, ctx]])
    expect(logged).toEqual([
      ['error', { subscription: 'notify', eventId: 'e-1', error: new Error('a bug of ***') }, 'onError threw'],
    ])
  })
})
