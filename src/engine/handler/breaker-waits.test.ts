import { createMemoryBreakerStore, createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { operatorOf } from '../../../test/breaker/world.ts'
import { createBreakers } from '../../breaker/breakers.ts'
import { breakerSettings } from '../../breaker/settings.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Event } from '../../event/event.ts'
import type { Handler } from '../../handler/handler.ts'
import { BreakerWaits, type Pass } from './breaker-waits.ts'

const event = (key: unknown) => ({ data: key }) as Event
const held = (lane: string, status: HeldLane['status'], breaker?: string): HeldLane => ({
  lane,
  status,
  since: 0,
  done: undefined,
  head: 1,
  headPosition: 1,
  breaker,
})

interface Setup {
  readonly lanes: readonly HeldLane[]
  readonly hasKey: boolean
  readonly hasBreaker: boolean
}

function waiting({ lanes = [], hasKey = true, hasBreaker = true }: Partial<Setup> = {}) {
  const runtime = createVirtualRuntime()
  const store = { breakers: createMemoryBreakerStore(runtime) }
  const breakers = createBreakers({ store, processId: 'p', runtime })
  const settings = breakerSettings({ opens: { failures: 1 }, cooldown: '10s' })
  const key = ({ data }: Event) => data as string
  const handler = { name: 'notify', ...(hasBreaker && { breaker: { settings, ...(hasKey && { key }) } }) } as Handler
  return {
    runtime,
    waits: new BreakerWaits(handler, breakers, lanes),
    operator: operatorOf(store.breakers, runtime),
  }
}

describe('to enter', () => {
  it('is no question without a breaker', async () => {
    expect(await waiting({ hasBreaker: false }).waits.enter(event('a'))).toEqual({ entry: 'none' })
  })

  it('is a question to the breaker of the key, or to that of the handler', async () => {
    expect(await waiting().waits.enter(event('a'))).toMatchObject({ entry: 'closed', breaker: { name: 'notify:a' } })
    expect(await waiting({ hasKey: false }).waits.enter(event('a'))).toMatchObject({ breaker: { name: 'notify' } })
  })

  it('fails where nobody can tell which breaker it is', async () => {
    for (const key of ['', 5, undefined])
      expect(await waiting().waits.enter(event(key))).toMatchObject({
        entry: 'failed',
        error: expect.any(TypeError) as unknown,
      })
  })

  it('is refused while it is open, with when to ask again', async () => {
    const { waits, runtime } = waiting()
    const pass = await waits.enter(event('a'))
    waits.report('lane', pass, false)
    await runtime.advance(0)
    expect(await waits.enter(event('a'))).toEqual({ entry: 'open', breaker: 'notify:a', afterMs: 10_000 })
    expect(await waits.enter(event('b'))).toMatchObject({ entry: 'closed' })

    const whole = waiting({ hasKey: false })
    whole.waits.report('lane', await whole.waits.enter(event('a')), false)
    await whole.runtime.advance(0)
    expect(await whole.waits.enter(event('a'))).toEqual({ entry: 'open', breaker: undefined, afterMs: 10_000 })
  })

  it('and never to be answered gives a probe back', async () => {
    const { waits, runtime } = waiting()
    waits.report('lane', await waits.enter(event('a')), false)
    await runtime.advance(10_000)
    const probe = await waits.enter(event('a'))
    expect(probe.entry).toBe('probe')
    expect((await waits.enter(event('a'))).entry).toBe('open')
    waits.report('lane', probe, undefined)
    await runtime.advance(0)
    const again = await waits.enter(event('a'))
    expect(again.entry).toBe('probe')
    waits.report('lane', again, true)
    await runtime.advance(0)
    expect((await waits.enter(event('a'))).entry).toBe('closed')
  })
})

describe('lanes that wait', () => {
  const none: Pass = { entry: 'none' }

  it('are those that were held for a breaker', () => {
    const { waits } = waiting({
      lanes: [held('a', 'waiting', 'x'), held('b', 'waiting'), held('c', 'parked', 'x'), held('d', 'retrying', 'x')],
    })
    expect([waits.nextAt(), waits.next(0), waits.nextAt(), waits.next(9_999)]).toEqual([0, 'a', undefined, undefined])
  })

  it('go one at a time until that one was answered', () => {
    const { waits } = waiting()
    for (const lane of ['a', 'b', 'c']) waits.add('x', lane)
    waits.postpone('x', 500)
    expect([waits.nextAt(), waits.next(499)]).toEqual([500, undefined])
    expect(waits.next(500)).toBe('a')
    // The verdict on it is waited for, but not for ever.
    expect([waits.nextAt(), waits.next(1_499), waits.next(1_500)]).toEqual([1_500, undefined, 'b'])
    waits.report('b', none, true)
    expect([waits.nextAt(), waits.next(1_501), waits.next(1_501)]).toEqual([0, 'c', undefined])
  })

  it('do not follow one that failed, or of which nothing is known', () => {
    const { waits } = waiting()
    waits.add('x', 'a')
    waits.add('x', 'b')
    expect(waits.next(0)).toBe('a')
    waits.report('a', none, false)
    waits.report('a', none, undefined)
    expect(waits.next(0)).toBeUndefined()
    // It waits again, so what it is answered later is about something else.
    waits.add('x', 'a')
    waits.report('a', none, true)
    expect(waits.next(0)).toBeUndefined()
  })

  it('follow an answer of their breaker, whoever had asked', async () => {
    const { waits } = waiting()
    waits.add('notify:k', 'a')
    waits.postpone('notify:k', 10_000)
    waits.report('other', await waits.enter(event('k')), true)
    expect(waits.next(0)).toBe('a')
  })

  it('wait again when it is open again, each breaker for itself', () => {
    const { waits } = waiting()
    waits.postpone('x', 700)
    waits.add('x', 'a')
    waits.add('y', 'b')
    waits.postpone('y', 300)
    expect([waits.nextAt(), waits.next(299), waits.next(300), waits.nextAt()]).toEqual([300, undefined, 'b', 700])
    waits.report('b', none, true)
    waits.postpone('y', 900)
    waits.add('y', 'c')
    expect([waits.next(899), waits.next(899), waits.next(900)]).toEqual(['a', undefined, 'c'])
  })
})

describe('a look at what lanes wait for', () => {
  it('happens twice a second while something waits, and not otherwise', async () => {
    const { waits, runtime } = waiting()
    expect(waits.lookAt(false)).toBeUndefined()
    expect(waits.lookAt(true)).toBeUndefined()
    waits.stand('notify:k')
    expect(waits.lookAt(false)).toBeUndefined()
    expect(waits.lookAt(true)).toBe(Number.NEGATIVE_INFINITY)
    waits.add('notify:k', 'a')
    // It is tried at once, and only if it is refused there is something to look at: the code may have another breaker for it by now.
    expect(waits.lookAt(false)).toBeUndefined()
    waits.postpone('notify:k', runtime.clock.mono() + 10_000)
    await waits.look(runtime.clock, false)
    expect(waits.lookAt(false)).toBe(runtime.clock.mono() + 500)
    expect(waits.next(runtime.clock.mono())).toBe('a')
    expect(waits.lookAt(false)).toBeUndefined()
    const without = waiting({ hasBreaker: false, lanes: [held('a', 'waiting', 'x')] })
    expect(without.waits.lookAt(true)).toBeUndefined()
  })

  it('releases all lanes of one that was reset, and postpones those of one that was isolated', async () => {
    const { waits, runtime, operator } = waiting()
    for (const key of ['k', 'l']) waits.report('lane', await waits.enter(event(key)), false)
    await runtime.advance(0)
    for (const lane of ['a', 'b']) waits.add('notify:k', lane)
    waits.add('notify:l', 'c')
    const now = runtime.clock.mono()
    waits.postpone('notify:k', now + 10_000)
    waits.postpone('notify:l', now + 10_000)
    await runtime.advance(9_000)
    await operator.resetBreaker('notify:k', 'it is back')
    await operator.isolateBreaker('notify:l', 'they asked us to')
    await waits.look(runtime.clock, false)
    const later = runtime.clock.mono() + 1_500
    expect([waits.next(later), waits.next(later), waits.next(later)]).toEqual(['a', 'b', undefined])
    expect(waits.nextAt()).toBe(runtime.clock.mono() + 10_000)
  })

  it('is due at once after an act of an operator, also if that came during a look', async () => {
    const { waits, runtime, operator } = waiting()
    waits.report('lane', await waits.enter(event('k')), false)
    await runtime.advance(0)
    waits.add('notify:k', 'a')
    waits.postpone('notify:k', runtime.clock.mono() + 10_000)
    await waits.look(runtime.clock, false)
    expect(waits.lookAt(false)).toBe(runtime.clock.mono() + 500)
    await operator.resetBreaker('notify:k', 'it is back')
    waits.lookSoon()
    const looking = waits.look(runtime.clock, false)
    waits.lookSoon()
    await looking
    expect(waits.lookAt(false)).toBe(Number.NEGATIVE_INFINITY)
    await waits.look(runtime.clock, false)
    expect(waits.lookAt(false)).toBe(runtime.clock.mono() + 500)
    expect(waits.next(runtime.clock.mono())).toBe('a')
  })

  it('sends one lane where a probe may go out, and none more while its verdict is awaited', async () => {
    const { waits, runtime } = waiting()
    waits.report('lane', await waits.enter(event('k')), false)
    for (const lane of ['a', 'b']) waits.add('notify:k', lane)
    waits.postpone('notify:k', runtime.clock.mono() + 60_000)
    await runtime.advance(10_000)
    await waits.look(runtime.clock, false)
    expect([waits.next(runtime.clock.mono()), waits.next(runtime.clock.mono())]).toEqual(['a', undefined])
    await runtime.advance(500)
    await waits.look(runtime.clock, false)
    expect(waits.next(runtime.clock.mono())).toBeUndefined()
    await runtime.advance(500)
    await waits.look(runtime.clock, false)
    expect(waits.next(runtime.clock.mono())).toBe('b')
  })

  it('tells a partition that stands still when it may go on, once', async () => {
    const { waits, runtime, operator } = waiting({ hasKey: false })
    waits.report('lane', await waits.enter(event('k')), false)
    await runtime.advance(0)
    waits.stand('notify')
    expect(await waits.look(runtime.clock, true)).toEqual({ entry: 'open', afterMs: 10_000 })
    await runtime.advance(500)
    expect(await waits.look(runtime.clock, false)).toBeUndefined()
    await operator.resetBreaker('notify', 'it is back')
    expect(await waits.look(runtime.clock, true)).toEqual({ entry: 'closed' })
    await runtime.advance(500)
    expect(await waits.look(runtime.clock, true)).toBeUndefined()
  })
})
