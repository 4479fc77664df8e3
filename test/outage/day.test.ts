import { expect, it } from 'vitest'
import { bounded, createLog, differentiated, failure } from '../../src/index.ts'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import { calm, type Call, heard, noting, stateOf } from '../noting.ts'

const [second, hour] = [1_000, 3_600_000]

/** 20 events for each of 500 keys, named by where they go: `endpoint-7/key-3`. */
const endpoints = Array.from({ length: 20 }, (_, i) => `endpoint-${i}`)
const keys = endpoints.flatMap((endpoint) => Array.from({ length: 25 }, (_, i) => `${endpoint}/key-${i}`))

async function append(world: World, from: number, to: number): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  const amounts = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  for (const key of keys) await log.append(key, amounts.map(credited))
}

/** The amounts of a key as they went through, once each and in order, or what is wrong with them. */
function wentThrough(calls: readonly Call[], failed: ReadonlySet<Call>): Map<string, number[]> {
  const amounts = new Map<string, number[]>(keys.map((key) => [key, []]))
  for (const call of calls) if (!failed.has(call)) amounts.get(call.key)?.push(call.amount)
  return amounts
}

const inOrder = Array.from({ length: 20 }, (_, i) => i + 1)

it('a day without an answer: nothing is parked, nothing is burned, and a minute later all of it is done, in order', async () => {
  await using world = await createWorld()
  await append(world, 1, 10)
  let isDown = true
  const failed = new Set<Call>()
  const { handler, calls } = noting(
    world,
    (call) => {
      if (!isDown) return
      failed.add(call)
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    },
    { failure: bounded() },
  )
  const engine = world.engine([handler], calm(world))
  const told = heard(engine, 'message.dlq', 'subscription.blocked', 'subscription.resumed')
  await engine.start()
  await world.runtime.advance(12 * hour)
  await append(world, 11, 20)
  await world.runtime.advance(12 * hour)

  // A probe every half minute, the first ones sooner.
  expect(calls.length).toBeGreaterThan(2_000)
  expect(calls.length).toBeLessThan(6_000)
  expect(told.map(({ name }) => name)).toEqual(['subscription.blocked'])
  expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'outage' })
  const lanes = await world.store.letters.heldLanes('notify', 0)
  // What was held before it was known for an outage has all of its attempts again.
  expect(lanes.filter(({ status, tries = 0 }) => status !== 'retrying' || tries > 0)).toEqual([])
  expect((await heldOf(engine, 'notify')).filter(({ attempts }) => attempts.length > 1)).toEqual([])

  isDown = false
  for (let i = 0; i < 60; i++) await world.runtime.advance(second)
  expect(told.map(({ name }) => name)).toEqual(['subscription.blocked', 'subscription.resumed'])
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 10_000, held: 0, discarded: 0 })
  for (const amounts of wentThrough(calls, failed).values()) expect(amounts).toEqual(inOrder)
  expect(await engine.verify('notify')).toMatchObject({ ok: true, events: 10_000 })
})

it('one endpoint down for a day: the others flow, and it loses nothing', async () => {
  await using world = await createWorld()
  await append(world, 1, 10)
  let isDown = true
  const failed = new Set<Call>()
  const { handler, calls } = noting(
    world,
    (call) => {
      if (!isDown || !call.key.startsWith('endpoint-7/')) return
      failed.add(call)
      throw failure.dependency('endpoint-7')
    },
    { failure: differentiated(), breaker: { key: ({ key }) => key.split('/')[0] as string, cooldown: '5m' } },
  )
  const engine = world.engine([handler], calm(world))
  const told = heard(engine, 'message.dlq', 'subscription.blocked')
  await engine.start()
  for (let i = 0; i < 60; i++) await world.runtime.advance(second)
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 4_750, held: 250 })
  await world.runtime.advance(12 * hour)
  await append(world, 11, 20)
  for (let i = 0; i < 60; i++) await world.runtime.advance(second)
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 9_500, held: 500 })
  await world.runtime.advance(12 * hour)

  expect(await stateOf(engine)).toMatchObject({ state: 'live' })
  expect(told).toEqual([])
  // A probe for every cooldown, and those that were under way when it opened.
  expect(failed.size).toBeGreaterThan(200)
  expect(failed.size).toBeLessThan(400)
  const held = await heldOf(engine, 'notify')
  expect(new Set(held.map(({ status }) => status))).toEqual(new Set(['waiting', 'queued']))
  expect(Math.max(...held.map(({ attempts }) => attempts.length))).toBe(1)

  isDown = false
  // The breaker asks after each cooldown; from its first answer on it is a matter of a moment.
  const before = calls.length
  while (calls.length === before) await world.runtime.advance(second)
  for (let i = 0; i < 60; i++) await world.runtime.advance(second)
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 10_000, held: 0, discarded: 0 })
  for (const amounts of wentThrough(calls, failed).values()) expect(amounts).toEqual(inOrder)
  expect(await engine.verify('notify')).toMatchObject({ ok: true, events: 10_000 })
})
