import { describe, expect, it } from 'vitest'
import { classify, failure, type HandlerContext } from '../../src/index.ts'
import { createWorld } from '../fixtures.ts'
import { fill, keysOf, noting } from '../noting.ts'
import {
  aPermanentFailureIsKept,
  aRetryReachesOneHandler,
  nothingIsLostBehindABreaker,
  theOrderOfAKeyIsKept,
} from './checks.ts'
import { type Consume, holdfast, pass } from './consume.ts'
import { each, eventOf, naive, read } from './naive.ts'

describe('a permanent error that is logged and skipped (guide)', () => {
  it('is kept', async () => expect(await aPermanentFailureIsKept(holdfast)).toEqual([]))

  it('is found lost where nothing but a log line is left of it', async () => {
    const logged = each(async (event, { handlers, call }) => {
      for (const handler of handlers) await call(handler, event).catch(() => undefined)
    })
    expect(await aPermanentFailureIsKept(logged)).toEqual(['b 1 is neither done nor kept'])
  })
})

describe('an open breaker that counts as success: it will be retried later, by nobody (guide)', () => {
  it('is not ours: what it did not let through waits', async () => {
    expect(await nothingIsLostBehindABreaker(holdfast)).toEqual([])
  })

  it('is found where the handler returns as if it had worked', async () => {
    let failures = 0
    const success = each(async (event, { handlers, call, keep }) => {
      // "just skip (will retry later when the circuit closes)"
      if (failures >= 5) return
      for (const handler of handlers)
        await call(handler, event).catch(() => {
          failures++
          keep(event)
        })
    })
    expect(await nothingIsLostBehindABreaker(success)).toEqual(['95 of 100 events are neither done nor kept'])
  })
})

describe('a retry from the dead letters that is a publish on the bus (guide)', () => {
  /** What failed goes to the end of the line, and from there to everybody. */
  const publishing = () =>
    naive(async (tools) => {
      const line: Parameters<typeof tools.call>[1][] = []
      while (!tools.isStopped()) {
        const { events } = await read(tools)
        line.push(...events)
        tools.position = events.at(-1)?.position ?? tools.position
        for (const event of line.splice(0)) {
          let failed = false
          for (const handler of tools.handlers) await tools.call(handler, event).catch(() => (failed = true))
          if (failed) line.push(event)
        }
        await tools.sleep(1_000)
      }
    })

  it('reaches the one handler that failed', async () => expect(await aRetryReachesOneHandler(holdfast)).toEqual([]))

  it('is found where it reaches all of them', async () => {
    expect(await aRetryReachesOneHandler(publishing())).toEqual([
      expect.stringMatching(/^the bystander was called \d+ times too often$/),
    ])
  })

  it('comes before what is newer', async () => expect(await theOrderOfAKeyIsKept(holdfast)).toEqual([]))

  it('is found where it comes behind', async () => {
    expect(await theOrderOfAKeyIsKept(publishing())).toEqual(['the events of a were done in the order 1,3,2'])
  })
})

describe('looking whether it was done, doing it, and then noting it (guide)', () => {
  async function twoWorkersDoItOnce(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, keysOf(10), 2)
    const { handler, calls } = noting(world, () => world.runtime.timers.sleep(200))
    const workers = []
    for (const name of ['first', 'second']) workers.push(await consume({ world, handlers: [handler], name }))
    await pass(world, 60_000)
    for (const worker of workers) await worker.stop()
    const twice = calls.length - new Set(calls.map(({ id }) => id)).size
    return twice === 0 ? [] : [`${twice} of 20 events were done twice`]
  }

  it('is not how two of our processes share the work: one of them owns it', async () => {
    expect(await twoWorkersDoItOnce(holdfast)).toEqual([])
  })

  it('is found where both look before either of them has noted anything', async () => {
    const processed = new Set<string>()
    const checkThenAct = each(async (event, { handlers, call }) => {
      if (processed.has(event.id)) return
      for (const handler of handlers) await call(handler, event)
      processed.add(event.id)
    })
    expect(await twoWorkersDoItOnce(checkThenAct)).toEqual(['20 of 20 events were done twice'])
  })
})

describe('compensations in a list that is never cleared (guide)', () => {
  /** A handler that notes how to take a step back, where its attempt can find it, and takes back what it noted when it fails. */
  async function eachTakesBackItsOwn(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    const undos = new WeakMap<object, string[]>()
    const undone: string[] = []
    const { handler } = noting(world, ({ key, ctx }) => {
      const mine = undos.get(ctx) ?? []
      undos.set(ctx, [...mine, key])
      if (key === 'a') return
      undone.push(...(undos.get(ctx) ?? []))
      throw failure.permanent('the second step fails')
    })
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 10_000)
    await consumer.stop()
    return undone.includes('a') ? ['what a did was taken back because b failed'] : []
  }

  // Steps that survive a crash are the business of sagas, which are not there yet; this much is a handler's.
  it('are those of one attempt: each has a context of its own', async () => {
    expect(await eachTakesBackItsOwn(holdfast)).toEqual([])
  })

  it('are found where all attempts share one', async () => {
    const { signal } = new AbortController()
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const instance: HandlerContext = {
      subscription: 'notify',
      signal,
      attempt: 1,
      idempotencyKey: '',
      deadline: 0,
      redrive: undefined,
      logger: silent,
      dryRun: false,
      effect: async (_what, run) => run(),
    }
    const shared = each(async (event, { handlers, keep }) => {
      for (const handler of handlers) {
        const call = async () => handler.functions.get(event.type)?.(eventOf(event), instance)
        await call().catch(() => keep(event))
      }
    })
    expect(await eachTakesBackItsOwn(shared)).toEqual(['what a did was taken back because b failed'])
  })
})

describe('a class that is told by words in the message (guide)', () => {
  /** Messages in which somebody who looks for "lock", "timeout" or "connection" finds what is not there. */
  const misleading = [
    'the customer is blocked',
    'the account must be unlocked first',
    'clock is not a valid field',
    'connection id invalid',
    'timeout must be a number',
    'no route named 503',
  ]

  function theTextDecidesNothing(tell: (error: Error) => string): string[] {
    return misleading
      .filter((message) => tell(new Error(message)) !== tell(new Error('')))
      .map((message) => `"${message}" is ${tell(new Error(message))}`)
  }

  it('is none of ours: codes and classes of errors decide', () => {
    expect(theTextDecidesNothing((error) => classify(error, [], 0).class)).toEqual([])
    expect(classify(Object.assign(new Error('the customer is blocked'), { status: 422 }), [], 0)).toMatchObject({
      class: 'permanent',
      evidence: 'HTTP 422',
    })
  })

  it('is found where parts of words are looked for', () => {
    const byWords = ({ message }: Error) =>
      ['timeout', 'connection', 'lock', '503'].some((word) => message.includes(word)) ? 'transient' : 'unknown'
    expect(theTextDecidesNothing(byWords)).toHaveLength(misleading.length)
  })
})
