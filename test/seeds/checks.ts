import { definePolicy, failure, fixed, park, retry } from '../../src/index.ts'
import { createWorld } from '../fixtures.ts'
import { type Call, fill, keysOf, noting } from '../noting.ts'
import { type Consume, lostBy, pass } from './consume.ts'
import { each, type Tools } from './naive.ts'

// Several of the seeds are wrong in the same way. What they share is here.

export const patientPolicy = definePolicy({
  transient: retry({ attempts: 4, backoff: fixed('2s') }).then(park),
  outage: false,
})

/** While a breaker is open, nothing is passed over; and when it closes, all of it is done. */
export async function nothingIsLostBehindABreaker(consume: Consume): Promise<string[]> {
  await using world = await createWorld()
  const keys = keysOf(20)
  await fill(world, keys, 5)
  const done: Call[] = []
  const { handler } = noting(
    world,
    (call) => {
      if (world.runtime.clock.mono() < 60_000) throw failure.transient('down')
      done.push(call)
    },
    { failure: patientPolicy, breaker: { opens: { failures: 5 }, cooldown: '30s' } },
  )
  const consumer = await consume({ world, handlers: [handler] })
  await pass(world, 240_000)
  const lost = await lostBy(world, consumer, done)
  const undone = 100 - new Set(done.map(({ id }) => id)).size
  await consumer.stop()
  return [
    ...(lost.length > 0 ? [`${lost.length} of 100 events are neither done nor kept`] : []),
    ...(lost.length === 0 && undone > 0 ? [`${undone} of 100 events wait though the breaker could be closed`] : []),
  ]
}

/** Opens after five failures, for half a minute; and what it does not let through is nobody's any more. */
export function swallowingBreaker(): Consume {
  let failures = 0
  let openUntil = 0
  return each(async (event, { world, handlers, call }: Tools) => {
    const now = world.runtime.clock.mono()
    if (now < openUntil) return
    try {
      for (const handler of handlers) await call(handler, event)
      failures = 0
    } catch {
      if (++failures >= 5) openUntil = now + 30_000
    }
  })
}

/** The events of a key are done in order, or wait; one that failed is not overtaken, not even by its own retry. */
export async function theOrderOfAKeyIsKept(consume: Consume): Promise<string[]> {
  await using world = await createWorld()
  await fill(world, ['a', 'b'], 3)
  const done: Call[] = []
  const { handler } = noting(
    world,
    (call) => {
      if (call.key === 'a' && call.amount === 2 && call.ctx.attempt === 1) throw failure.transient('once')
      done.push(call)
    },
    { failure: patientPolicy },
  )
  const consumer = await consume({ world, handlers: [handler] })
  await pass(world, 60_000)
  await consumer.stop()
  return ['a', 'b'].flatMap((key) => {
    const order = done.filter((call) => call.key === key).map(({ amount }) => amount)
    return order.join() === '1,2,3' ? [] : [`the events of ${key} were done in the order ${order.join()}`]
  })
}

/** A retry is that of the handler that failed, and no other hears of it. */
export async function aRetryReachesOneHandler(consume: Consume): Promise<string[]> {
  await using world = await createWorld()
  await fill(world, ['a', 'b'], 2)
  const failing = noting(
    world,
    ({ amount, ctx }) => {
      if (amount === 2 && ctx.attempt < 3) throw failure.transient('not yet')
    },
    { name: 'failing', failure: patientPolicy },
  )
  const bystander = noting(world, undefined, { name: 'bystander', failure: patientPolicy })
  const consumer = await consume({ world, handlers: [failing.handler, bystander.handler] })
  await pass(world, 60_000)
  await consumer.stop()
  const twice = bystander.calls.length - new Set(bystander.calls.map(({ id }) => id)).size
  return twice > 0 ? [`the bystander was called ${twice} times too often`] : []
}

/** What says that it will fail every time is kept for a person, and nothing is passed over in silence. */
export async function aPermanentFailureIsKept(consume: Consume): Promise<string[]> {
  await using world = await createWorld()
  await fill(world, ['a', 'b', 'c'], 2)
  const done: Call[] = []
  const { handler } = noting(
    world,
    (call) => {
      if (call.key === 'b' && call.amount === 1) throw failure.permanent('a 404')
      done.push(call)
    },
    { failure: patientPolicy },
  )
  const consumer = await consume({ world, handlers: [handler] })
  await pass(world, 30_000)
  const lost = await lostBy(world, consumer, done)
  await consumer.stop()
  return lost.map(({ key, version }) => `${key} ${version} is neither done nor kept`)
}
