import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bank, createWorld, credited, type World } from '../fixtures.ts'
import { fill, heard, keysOf, noting, run } from '../noting.ts'
import {
  createLog,
  defineEvents,
  defineHandler,
  definePolicy,
  defineSubscription,
  type EngineEventName,
  failure,
  fixed,
  park,
  retry,
} from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { operatorOf } from '../acts.ts'
import { createSqliteStore } from '../../src/sqlite/index.ts'

const quick = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false })

const traced = [
  'handler.started',
  'handler.completed',
  'handler.failed',
  'handler.skipped',
  'message.acked',
  'message.nacked',
  'message.dlq',
] as const satisfies readonly EngineEventName[]

const all = [
  ...traced,
  'subscription.state',
  'partition.claimed',
  'partition.fenced',
  'page.committed',
  'lane.held',
  'lane.released',
  'event.unknown',
  'subscription.paused',
  'subscription.blocked',
  'subscription.resumed',
  'breaker.opened',
  'breaker.half_open',
  'breaker.closed',
  'store.failed',
] as const satisfies readonly EngineEventName[]

describe('a handler tells', () => {
  it('each thing that happens to an event, once, in order, with everything to find it by', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [{ ...credited(1), metadata: { correlationId: 'order-7', causationId: 'cause-3' } }])
    const { handler, calls } = noting(
      world,
      async ({ ctx }) => {
        await world.runtime.timers.sleep(100)
        if (ctx.attempt === 1) throw failure.transient('not yet')
      },
      { failure: quick },
    )
    const engine = world.engine([handler])
    const told = heard(engine, ...traced, 'lane.held', 'lane.released')
    await run(world, engine, 10_000)
    const id = {
      subscription: 'notify',
      partition: 0,
      eventId: calls[0]?.id,
      eventType: 'Credited',
      key: 'a',
      position: 1,
      correlationId: 'order-7',
      causationId: 'cause-3',
    }
    const why = expect.objectContaining({ class: 'transient', rule: 'said', message: 'not yet' }) as unknown
    const { eventId, eventType, position } = id
    expect(told).toEqual([
      { name: 'handler.started', ...id, attempt: 1 },
      { name: 'handler.failed', ...id, attempt: 1, durationMs: 100, failure: why },
      { name: 'message.nacked', ...id, failure: why, retryInMs: 2_000 },
      {
        name: 'lane.held',
        subscription: 'notify',
        lane: 'a',
        status: 'retrying',
        eventId,
        eventType,
        position,
        failure: why,
      },
      { name: 'handler.started', ...id, attempt: 2 },
      { name: 'handler.completed', ...id, attempt: 2, durationMs: 100 },
      { name: 'message.acked', ...id },
      { name: 'lane.released', subscription: 'notify', lane: 'a' },
    ])
  })

  it('what was parked or skipped, and why', async () => {
    await using world = await createWorld()
    await fill(world, ['bad', 'needless'], 1)
    const { handler } = noting(
      world,
      ({ key }) => {
        throw key === 'bad' ? failure.permanent('never') : failure.skip('nobody is there')
      },
      { failure: quick },
    )
    const engine = world.engine([handler])
    const told = heard(engine, ...traced, 'lane.held')
    await run(world, engine, 10_000)
    expect(told.filter(({ name }) => name !== 'handler.started' && name !== 'handler.failed')).toMatchObject([
      { name: 'message.dlq', key: 'bad', failure: { class: 'permanent', message: 'never' } },
      { name: 'handler.skipped', key: 'needless', reason: 'nobody is there' },
      { name: 'lane.held', lane: 'bad', status: 'parked' },
    ])
  })

  it('that it is acked when it is in the store, and not before', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const { handler } = noting(world)
    const engine = world.engine([handler])
    const positions: (number | undefined)[] = []
    engine.on('message.acked', () => {
      void world.store.subscriptions
        .load('notify', 0)
        .then((state) => positions.push(state?.checkpoint.position))
        .catch(() => undefined)
    })
    await run(world, engine, 1_000)
    expect(positions).toEqual([1])
  })

  it('that somebody paused it, and that it goes on, once each', async () => {
    await using world = await createWorld()
    const { handler } = noting(world)
    const engine = world.engine([handler])
    const told = heard(engine, 'subscription.paused', 'subscription.resumed')
    await run(world, engine, 1_000)
    await world.operator().pause('notify', 'they are moving house')
    await world.runtime.advance(5_000)
    await world.operator().resume('notify', 'done')
    await world.runtime.advance(5_000)
    expect(told).toEqual([
      { name: 'subscription.paused', subscription: 'notify', reason: 'they are moving house' },
      { name: 'subscription.resumed', subscription: 'notify', partition: undefined },
    ])
  })

  it('that another process paused it, too', async () => {
    await using world = await createWorld()
    const [one, two] = [noting(world), noting(world)]
    const first = world.engine([one.handler], { name: 'first' })
    const second = world.engine([two.handler], { name: 'second' })
    const told = heard(second, 'subscription.paused', 'subscription.resumed')
    await using other = await createSqliteStore({ file: world.store.file, clock: world.runtime.clock })
    const elsewhere = operatorOf(other, [], world.runtime)
    await first.start()
    await second.start()
    await world.runtime.advance(1_000)
    await elsewhere.pause('notify', 'a test')
    await world.runtime.advance(1_000)
    await elsewhere.resume('notify', 'done')
    await world.runtime.advance(1_000)
    expect(told.map(({ name }) => name)).toEqual(['subscription.paused', 'subscription.resumed'])
  })

  it('what its breaker does, once for each change', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(10), 1)
    let isDown = true
    const { handler } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('down')
      },
      { failure: quick, breaker: { opens: { failures: 5 }, cooldown: '10s' } },
    )
    const engine = world.engine([handler])
    const told = heard(engine, 'breaker.opened', 'breaker.half_open', 'breaker.closed')
    await run(world, engine, 15_000)
    isDown = false
    await world.runtime.advance(30_000)
    expect(told.map(({ name }) => name)).toEqual([
      'breaker.opened',
      'breaker.half_open',
      'breaker.opened',
      'breaker.half_open',
      'breaker.closed',
    ])
    expect(told[0]).toEqual({ name: 'breaker.opened', breaker: 'notify', retryAt: Date.UTC(2026, 0, 1) + 10_000 })
  })

  it('is not disturbed by who listens', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const { handler } = noting(world, ({ key }) => (key === 'b' ? Promise.reject(failure.permanent('no')) : undefined))
    const engine = world.engine([handler])
    for (const name of all)
      engine.on(name, () => {
        throw new Error('a listener of the worst kind')
      })
    await run(world, engine, 5_000)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2, held: 2 } })
  })
})

describe('what is in an event', () => {
  // Short: of a text that is no JSON, V8 quotes a few characters.
  const canary = 'c4n4ry'
  const letters = defineEvents({ Sent: z.object({ secret: z.string(), length: z.number() }) })
  const data = { secret: canary, length: 3 }
  const metadata = { actor: canary, note: { text: canary } }

  /** Everything that an engine tells and logs, as JSON with all there is in an error. */
  async function everythingSaid(world: World, subscriptions: Parameters<World['engine']>[0]): Promise<string> {
    const said: unknown[] = []
    const note = (fields: object, message: string) => said.push([fields, message])
    const engine = world.engine(subscriptions, { logger: { info: note, warn: note, error: note } })
    for (const name of all) engine.on(name, (event) => said.push([name, event]))
    await run(world, engine, 30_000)
    said.push(await engine.status())
    return JSON.stringify(said, (_, value: unknown) =>
      value instanceof Error ? [value.message, value.stack, value.cause, Object.entries(value)] : value,
    )
  }

  it('is nowhere in what is told or logged, whatever happens to it', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: letters })
    for (const key of ['well', 'retried', 'parked', 'skipped', 'null', 'hook'])
      await log.append(key, [{ type: 'Sent', data, metadata }])
    await log.raw.append('misfit', [{ type: 'Sent', data: { secret: { text: canary }, length: canary } }])
    await log.raw.append('unknown', [{ type: 'Strange', data }])
    const handler = defineHandler('notify', {
      events: letters,
      on: {
        Sent: ({ key, data: { secret } }, { attempt, logger }) => {
          logger.info({ more: 'text', error: new Error(secret) }, 'a line of the handler')
          if (key === 'retried' && attempt === 1) throw failure.transient(`not yet ${secret}`)
          if (key === 'parked') throw new TypeError(`a bug in table people of ${secret}`, { cause: new Error(secret) })
          if (key === 'skipped') throw failure.skip(`not needed for ${secret}`)
          if (key === 'null') throw null
          if (key === 'hook') throw failure.transient(`in vain: "${secret.toUpperCase()}"`)
        },
      },
      failure: quick,
      onError: () => {
        throw new Error(`the hook fails at ${canary}`)
      },
      dedupe: { by: 'id' },
    })
    const said = await everythingSaid(world, [defineSubscription(handler, { unknown: 'hold' })])
    for (const sign of [
      'a line of the handler',
      'the hook fails',
      'a bug in table people of ***',
      'message.dlq',
      'handler.completed',
      'misfit',
      'Strange',
    ])
      expect(said).toContain(sign)
    expect(said.toLowerCase()).not.toContain(canary)
  })

  it('is nowhere in it either when it is no JSON at all', async () => {
    await using world = await createWorld()
    const scripted = createScriptedSource()
    scripted.deliver(
      { key: 'a', type: 'Sent', body: `${canary} is not JSON` },
      { key: 'b', type: 'Sent', body: `{"secret":"x","length":${canary}}` },
      { key: 'c', type: 'Sent', body: new TextEncoder().encode(`"${canary}`) },
      { key: 'd', type: 'Sent', data, metadata: `{"actor":"${canary}` },
    )
    const handler = defineHandler('notify', { events: letters, on: { Sent: () => undefined }, failure: quick })
    const said = await everythingSaid(world, [
      defineSubscription(handler, { source: { ...scripted, versions: 'none' } }),
    ])
    expect(said.match(/"message.dlq"/g)).toHaveLength(4)
    expect(said).not.toContain(canary)
  })
})
