import { expect, it } from 'vitest'
import type { Event } from '../../event/event.ts'
import type { HandlerContext } from '../../handler/handler.ts'
import { Attempt } from './attempt.ts'

const event = { id: 'e' } as Event
const ctx = {} as HandlerContext
const reason = new Error('too late')

it('ends as the handler does', async () => {
  expect(await new Attempt().run((given, context) => [given, context] as never, event, ctx)).toEqual({
    result: 'succeeded',
    value: [event, ctx],
  })
  const no = new Error('no')
  const failing = () => {
    throw no
  }
  expect(await new Attempt().run(failing, event, ctx)).toEqual({ result: 'failed', error: no })
  expect(await new Attempt().run(() => Promise.reject(no), event, ctx)).toEqual({ result: 'failed', error: no })
})

it('ends when it is given up, for the first reason that there was, and what comes later is heard by nobody', async () => {
  const attempt = new Attempt()
  const { signal } = attempt
  const { promise, reject } = Promise.withResolvers<never>()
  const result = attempt.run(() => promise, event, ctx)
  expect(signal.aborted).toBe(false)
  attempt.giveUp(reason)
  attempt.giveUp(new Error('another'))
  expect([signal.aborted, signal.reason, attempt.signal.reason]).toEqual([true, reason, reason])
  expect(await result).toEqual({ result: 'failed', error: reason })
  reject(new Error('later'))
  expect(await result).toEqual({ result: 'failed', error: reason })
})

it('has one signal, which is aborted also when it is asked for too late', () => {
  const attempt = new Attempt()
  attempt.giveUp(reason)
  expect([attempt.signal.aborted, attempt.signal.reason]).toEqual([true, reason])
  expect(attempt.signal).toBe(attempt.signal)
})
