import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { delays } from '../../failure/backoff.ts'
import type { Failure } from '../../failure/failure.ts'
import { Flow } from './flow.ts'

const like = (fingerprint: string) => ({ fingerprint }) as Failure
const [one, other] = [like('one'), like('other')]
const backoff = delays(['1s', '2s', '3s'])

function flowing(concurrency = 4) {
  const runtime = createVirtualRuntime()
  return { runtime, flow: new Flow({ lanes: 2, backoff }, concurrency, runtime) }
}

describe('lanes that fail alike', () => {
  it('are an outage when they are enough, with no answer between', () => {
    const { flow } = flowing()
    expect(flow.failed('a', one)).toBeUndefined()
    expect(flow.failed('a', one)).toBeUndefined()
    expect(flow.failed('b', other)).toBeUndefined()
    expect(flow.failed('b', one)).toEqual(new Set(['a', 'b']))
    expect(flow.inARow).toBe(4)
  })

  it('are none with an answer between, and a lane that failed before it is no news', () => {
    const { flow } = flowing()
    flow.failed('a', one)
    expect(flow.answered(0)).toBe(false)
    expect(flow.inARow).toBe(0)
    expect(flow.failed('b', one)).toBeUndefined()
    expect(flow.failed('a', one)).toBeUndefined()
    // Since it failed again nobody has answered.
    expect(flow.failed('a', one)).toEqual(new Set(['a', 'b']))
  })

  it('are no news either when others were answered before they first failed', () => {
    const { flow } = flowing()
    flow.answered(0)
    flow.failed('a', one)
    flow.answered(0)
    flow.failed('b', one)
    expect(flow.failed('a', one)).toBeUndefined()
  })

  it('are news again when they had their verdict', () => {
    const { flow } = flowing()
    flow.failed('a', one)
    flow.answered(0)
    flow.settled('a', false)
    flow.failed('b', one)
    expect(flow.failed('a', one)).toEqual(new Set(['a', 'b']))
  })

  it('count by whom they ask', () => {
    const { flow } = flowing()
    flow.failed('a', one, 'bank')
    expect(flow.failed('b', one, 'bank')).toBeUndefined()
    expect(flow.failed('c', one, 'mail')).toEqual(new Set(['a', 'b', 'c']))
  })

  it('are none where nobody wants to know', () => {
    const without = new Flow(undefined, 4, createVirtualRuntime())
    expect([without.failed('a', one), without.failed('b', one), without.inARow]).toEqual([undefined, undefined, 2])
  })

  it('must be twice as many the next time, until one of the accused went through', () => {
    const { flow } = flowing()
    const fail = (...lanes: string[]) => lanes.map((lane) => flow.failed(lane, one)?.size)
    expect(fail('a', 'b')).toEqual([undefined, 2])
    flow.answered(0)
    for (const lane of ['a', 'b', 'c', 'd', 'e']) flow.failed(lane, other)
    flow.answered(0)
    for (const lane of ['c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) flow.settled(lane, true)
    expect(fail('c', 'd', 'e', 'f')).toEqual([undefined, undefined, undefined, 4])
    flow.answered(0)
    flow.settled('c', true)
    expect(fail('g', 'h')).toEqual([undefined, 2])
  })

  it('must be as many as ever when all of the accused have their verdicts', () => {
    const { flow } = flowing()
    flow.failed('a', one)
    flow.failed('b', one)
    flow.answered(0)
    flow.settled('a', false)
    expect([flow.failed('c', one), flow.failed('d', one)]).toEqual([undefined, undefined])
    flow.answered(0)
    flow.settled('b', false)
    expect([flow.failed('e', one), flow.failed('f', one)?.size]).toEqual([undefined, 2])
  })

  it('in a hundred ways are forgotten', () => {
    const { flow } = flowing()
    flow.failed('a', one)
    for (let i = 0; i < 99; i++) flow.failed(`lane ${i}`, like(`f${i}`))
    expect(flow.failed('b', one)).toBeUndefined()
    expect(flow.failed('c', one)).toEqual(new Set(['b', 'c']))
  })
})

describe('a standstill', () => {
  it('lets nothing begin until its time, and then one', async () => {
    const { flow, runtime } = flowing()
    expect([flow.limit(), flow.nextAt(), flow.isAnybodys]).toEqual([4, undefined, false])
    flow.stand('outage', one, backoff, 2)
    expect(flow.standstill).toMatchObject({
      why: 'outage',
      failure: one,
      lanes: 2,
      probes: 0,
      since: runtime.clock.now(),
    })
    expect([flow.limit(), flow.nextAt(), flow.isAnybodys]).toEqual([0, 1_000, true])
    await runtime.advance(999)
    expect(flow.limit()).toBe(0)
    await runtime.advance(1)
    expect(flow.limit()).toBe(1)
  })

  it('waits as long as it is told', () => {
    const { flow } = flowing()
    flow.stand('breaker', undefined, backoff, 0, 250)
    expect(flow.nextAt()).toBe(250)
    flow.probedUntil(777)
    expect(flow.nextAt()).toBe(777)
  })

  it('lasts longer with each probe that failed, and not by what was under way before', async () => {
    const { flow, runtime } = flowing()
    flow.stand('pause', one, backoff)
    flow.probed()
    expect([flow.nextAt(), flow.standstill?.probes]).toEqual([1_000, 0])
    await runtime.advance(1_000)
    flow.probed()
    expect([flow.nextAt(), flow.standstill?.probes]).toEqual([3_000, 1])
    await runtime.advance(2_000)
    flow.probed(60_000)
    expect(flow.nextAt()).toBe(63_000)
  })

  it('is nothing to one that flows', () => {
    const { flow } = flowing()
    flow.probed(5)
    flow.probedUntil(5)
    flow.doubt(1_000)
    expect([flow.nextAt(), flow.limit(), flow.isAnybodys]).toEqual([undefined, 4, false])
  })

  it('is anybody’s, but for one that a policy or the order wants; a block can be doubted', () => {
    const { flow } = flowing()
    const isAnybodys = (why: Parameters<Flow['stand']>[0]) => {
      flow.stand(why, one, backoff)
      const before = flow.isAnybodys
      flow.doubt(1_000)
      return [before, flow.isAnybodys]
    }
    expect(isAnybodys('outage')).toEqual([true, true])
    expect(isAnybodys('pause')).toEqual([true, true])
    expect(isAnybodys('breaker')).toEqual([true, true])
    expect(isAnybodys('block')).toEqual([false, true])
    expect(isAnybodys('order')).toEqual([false, false])
  })

  it('ends with an answer; then 1, 2, 4 lanes run, up to all', async () => {
    const { flow, runtime } = flowing(5)
    flow.stand('outage', one, backoff)
    await runtime.advance(1_000)
    expect(flow.answered(1_000)).toBe(true)
    expect([flow.standstill, flow.limit()]).toEqual([undefined, 1])
    const limits = Array.from({ length: 5 }, () => [flow.answered(1_000), flow.limit()])
    expect(limits).toEqual([2, 4, 5, 5, 5].map((limit) => [false, limit]))
  })

  it('that was no outage, as somebody under way was answered, spares nobody', () => {
    const { flow } = flowing()
    flow.stand('outage', one, backoff)
    expect([flow.answered(0), flow.limit()]).toEqual([true, 4])
    flow.stand('pause', one, backoff)
    expect([flow.answered(0), flow.limit()]).toEqual([true, 1])
  })

  it.for(['block', 'order'] as const)('of one event, by %s, is not over for who was under way', async (why) => {
    const { flow, runtime } = flowing()
    flow.stand(why, one, backoff)
    flow.doubt(999)
    expect([flow.answered(999), flow.isAnybodys, flow.standstill?.why, flow.limit()]).toEqual([false, false, why, 0])
    await runtime.advance(1_000)
    flow.probed()
    expect([flow.answered(999), flow.standstill?.why]).toEqual([false, why])
    expect([flow.answered(1_000), flow.standstill, flow.limit()]).toEqual([true, undefined, 1])
  })

  it('that was probed spares them, also before its next probe', async () => {
    const { flow, runtime } = flowing()
    flow.stand('outage', one, backoff)
    await runtime.advance(1_000)
    flow.probed()
    expect([flow.answered(1_000), flow.limit()]).toEqual([true, 1])
  })
})
