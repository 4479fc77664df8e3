import { describe, expect, it } from 'vitest'
import { defineSubscription, failure } from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { createWorld } from '../fixtures.ts'
import { type Call, calm, fill, noting, type Options } from '../noting.ts'
import { patientPolicy } from './checks.ts'
import { type Consume, holdfast, lostBy, pass } from './consume.ts'
import { each } from './naive.ts'

describe('a deduplication window of five minutes (ADR 0004)', () => {
  const [minute, day] = [60_000, 86_400_000]

  async function aRepeatIsKnownWhenever(dedupe: NonNullable<Options['dedupe']>): Promise<string[]> {
    await using world = await createWorld()
    const source = createScriptedSource()
    const { handler, calls } = noting(world, undefined, { dedupe })
    const subscription = defineSubscription(handler, { source: { ...source, versions: 'none' } })
    const engine = world.engine([subscription], calm(world))
    await engine.start()
    const found: string[] = []
    for (const [what, waitMs] of [
      ['at first', 0],
      ['after a minute', minute],
      ['after ten minutes', 10 * minute],
      ['after a day', day],
      ['after a week', 7 * day],
    ] as const) {
      await world.runtime.advance(waitMs)
      source.deliver({ key: 'a', type: 'Credited', data: { amount: 1 }, id: 'the same' })
      const before = calls.length
      await world.runtime.advance(1_000)
      if (calls.length > before && what !== 'at first') found.push(`it was done again ${what}`)
    }
    return found
  }

  it('is not what keeps ours from doing things twice: a mark can stay for ever', async () => {
    expect(await aRepeatIsKnownWhenever({ by: 'id', window: 'forever' })).toEqual([])
  })

  it('is found where the mark goes after five minutes', async () => {
    expect(await aRepeatIsKnownWhenever({ by: 'id', window: '5m' })).toEqual([
      'it was done again after ten minutes',
      'it was done again after a day',
      'it was done again after a week',
    ])
  })

  it('is not needed for what the log has once: the checkpoint knows, a day later and in another process', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const { handler, calls } = noting(world)
    for (let i = 0; i < 3; i++) {
      const engine = world.engine([handler], calm(world))
      await engine.start()
      await world.runtime.advance(day)
      await engine.stop()
    }
    expect(calls).toHaveLength(4)
  })
})

describe('an endpoint that is down, and whose events are logged and short-circuited (ADR 0004)', () => {
  async function theEndpointMissesNothing(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['down/1', 'down/2', 'well/1'], 4)
    const done: Call[] = []
    const { handler } = noting(
      world,
      (call) => {
        if (call.key.startsWith('down') && world.runtime.clock.mono() < 600_000) throw failure.transient('no answer')
        done.push(call)
      },
      {
        failure: patientPolicy,
        breaker: { opens: { failures: 2 }, cooldown: '5m', key: ({ key }) => key.split('/')[0] as string },
      },
    )
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 60_000)
    const early = done.filter(({ key }) => key === 'well/1').length
    await pass(world, 1_200_000)
    const lost = await lostBy(world, consumer, done)
    await consumer.stop()
    const orders = ['down/1', 'down/2'].map((key) => done.filter((call) => call.key === key).map((call) => call.amount))
    return [
      ...(early === 4 ? [] : ['the endpoint that is well had to wait']),
      ...(lost.length === 0 ? [] : [`${lost.length} events of the endpoint are lost`]),
      ...(lost.length > 0 || orders.every((order) => order.join() === '1,2,3,4') ? [] : ['they came in another order']),
    ]
  }

  it('gets all of them when it is back, in order, and the others do not wait', async () => {
    expect(await theEndpointMissesNothing(holdfast)).toEqual([])
  })

  it('is found where an open breaker is a reason to go on without them', async () => {
    const openUntil = new Map<string, number>()
    const shortCircuit = each(async (event, { world, handlers, call }) => {
      const endpoint = event.key.split('/')[0] as string
      const now = world.runtime.clock.mono()
      if (now < (openUntil.get(endpoint) ?? 0)) return
      for (const handler of handlers) await call(handler, event).catch(() => openUntil.set(endpoint, now + 300_000))
    })
    expect(await theEndpointMissesNothing(shortCircuit)).toEqual(['8 events of the endpoint are lost'])
  })
})
