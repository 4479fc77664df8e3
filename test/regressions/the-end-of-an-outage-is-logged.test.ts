import { createEngine, createLog, defineHandler, definePolicy, failure, type Store, StoreError } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, type World } from '../fixtures.ts'

type Line = readonly [message: string, fields: Readonly<Record<string, unknown>>]

/** The warnings of an engine that runs while something is away for twenty seconds. */
async function linesOf(world: World, subscriptions: Parameters<World['engine']>[0], options: { store?: Store }) {
  const lines: Line[] = []
  const warn = (fields: object, message: string) => void lines.push([message, { ...fields }])
  const logger = { info: () => undefined, warn, error: warn }
  const engine = createEngine({
    store: world.store,
    subscriptions: subscriptions ?? [],
    logger,
    ...world.runtime,
    ...options,
  })
  await engine.start()
  await world.runtime.advance(60_000)
  await engine.stop()
  return lines
}

describe('the end of an outage', () => {
  it('of a store that is away from the start is logged once', async () => {
    await using world = await createWorld()
    const { subscriptions } = world.store
    const until = world.runtime.clock.now() + 20_000
    const register: typeof subscriptions.register = async (spec) => {
      if (world.runtime.clock.now() < until) throw new StoreError('STORE_UNAVAILABLE', 'The test took the store away.')
      return subscriptions.register(spec)
    }
    const store = { ...world.store, subscriptions: { ...subscriptions, register } }
    expect((await linesOf(world, [balances], { store })).map(([message]) => message)).toEqual([
      'the store failed; the subscription is blocked and retries',
      'recovered; the subscription continues',
    ])
  })

  it('of the store is logged once, with how long it lasted', async () => {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    const { subscriptions } = world.store
    const until = world.runtime.clock.now() + 20_000
    const commit: typeof subscriptions.commit = async (page) => {
      if (world.runtime.clock.now() < until) throw new StoreError('STORE_UNAVAILABLE', 'The test took the store away.')
      return subscriptions.commit(page)
    }
    const store = { ...world.store, subscriptions: { ...subscriptions, commit } }
    const lines = await linesOf(world, [balances], { store })
    expect(lines.map(([message]) => message)).toEqual([
      'the store failed; the subscription is blocked and retries',
      'recovered; the subscription continues',
    ])
    expect(lines[1]?.[1]).toMatchObject({ subscription: 'balances', by: 'store' })
    expect(lines[1]?.[1]['blockedMs']).toBeGreaterThan(15_000)
    expect(lines[1]?.[1]['blockedMs']).toBeLessThan(35_000)
  })

  it('of what a handler calls is logged once, with how long it lasted', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c', 'd']) await log.append(key, [credited(1)])
    const until = world.runtime.clock.now() + 20_000
    const notify = defineHandler('notify', {
      events: bank,
      failure: definePolicy(),
      on: {
        Credited: () => {
          if (world.runtime.clock.now() < until) throw failure.transient('away')
        },
      },
    })
    const lines = (await linesOf(world, [notify], {})).filter(([message]) => !message.startsWith('lanes are held'))
    expect(lines.map(([message]) => message)).toEqual([
      'the partition is blocked; it tries one event from time to time',
      'recovered; the subscription continues',
    ])
    expect(lines[1]?.[1]).toMatchObject({ subscription: 'notify', by: 'outage' })
    expect(lines[1]?.[1]['blockedMs']).toBeGreaterThan(15_000)
  })
})
