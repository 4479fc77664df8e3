import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import {
  createEngine,
  createLog,
  definePolicy,
  failure,
  fixed,
  noRetry,
  park,
  type Policy,
  recovering,
  retry,
  skip,
  type Store,
} from '../../src/index.ts'
import { createPostgresStore } from '../../src/postgres/index.ts'
import { bank, createWorld, credited, type World } from '../fixtures.ts'
import { type Call, fill, keysOf, noting, unreachable } from '../noting.ts'
import { cloneDatabase, describeServers } from '../postgres/databases.ts'
import { aRetryReachesOneHandler, theOrderOfAKeyIsKept } from './checks.ts'
import { type Consume, holdfast, lostBy, pass } from './consume.ts'
import { each, naive, read } from './naive.ts'

/** Moves its cursor on, notes the position that failed, and tries it again in passes that come after. */
function recoveringInPasses(passes: number, everyMs: number, pauseMs = 0): Consume {
  return naive(async (tools) => {
    const failed = new Map<string, number>()
    let nextPass = everyMs
    while (!tools.isStopped()) {
      const { events } = await read(tools)
      for (const event of events) {
        for (const handler of tools.handlers)
          await tools.call(handler, event).catch(() => failed.set(event.id, event.position))
        tools.position = event.position
      }
      if (tools.world.runtime.clock.mono() >= nextPass) {
        nextPass += everyMs
        await recover(tools, failed)
      }
      await tools.sleep(100)
    }
  })

  async function recover(tools: Parameters<Parameters<typeof naive>[0]>[0], failed: Map<string, number>) {
    for (const [id, position] of failed) {
      const [event] = (await read({ store: tools.store, position: position - 1 })).events
      const tries = (triesOf.get(id) ?? 0) + 1
      triesOf.set(id, tries)
      try {
        if (event) for (const handler of tools.handlers) await tools.call(handler, event)
        failed.delete(id)
      } catch {
        if (tries === passes) failed.delete(id)
      }
      if (pauseMs > 0) await tools.sleep(pauseMs)
    }
  }
}
const triesOf = new Map<string, number>()

describe('an outage longer than the retries, whose events are lost', () => {
  async function anOutageLosesNothing(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, keysOf(5), 1)
    const done: Call[] = []
    const { handler } = noting(
      world,
      (call) => {
        if (world.runtime.clock.mono() < 600_000) throw failure.transient('the database is down')
        done.push(call)
      },
      { failure: recovering() },
    )
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 600_000)
    await fill(world, ['late'], 1)
    await pass(world, 120_000)
    const lost = await lostBy(world, consumer, done)
    await consumer.stop()
    return lost.length > 0 || done.length < 6 ? [`${done.length} of 6 events were done`] : []
  }

  it('does not happen', async () => expect(await anOutageLosesNothing(holdfast)).toEqual([]))

  it('is found where three passes are all there is', async () => {
    expect(await anOutageLosesNothing(recoveringInPasses(3, 30_000))).toEqual(['1 of 6 events were done'])
  })
})

describe('a recovery that is serial and inline', () => {
  async function liveEventsDoNotWait(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, keysOf(60), 1)
    const done: Call[] = []
    const { handler } = noting(
      world,
      (call) => {
        if (call.key !== 'live' && world.runtime.clock.mono() < 5_000) throw failure.transient('not yet')
        done.push(call)
      },
      { failure: definePolicy({ transient: retry({ attempts: 9, backoff: fixed('4s') }).then(park), outage: false }) },
    )
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 9_000)
    await fill(world, ['live'], 1)
    await pass(world, 2_000)
    const wasQuick = done.some(({ key }) => key === 'live')
    const recovered = done.filter(({ key }) => key !== 'live').length
    await consumer.stop()
    return [
      ...(wasQuick ? [] : ['a live event waits for the recovery of others']),
      ...(recovered === 60 ? [] : ['what could be done again is done one after the other']),
    ]
  }

  it('does not happen', async () => expect(await liveEventsDoNotWait(holdfast)).toEqual([]))

  it('is found where the loop sleeps for every position that failed', async () => {
    expect(await liveEventsDoNotWait(recoveringInPasses(9, 8_000, 1_000))).toEqual([
      'a live event waits for the recovery of others',
      'what could be done again is done one after the other',
    ])
  })
})

describe('the order of an aggregate, broken by its recovery', () => {
  it('is kept', async () => expect(await theOrderOfAKeyIsKept(holdfast)).toEqual([]))

  it('is found broken where failed positions are done later, behind those that came after', async () => {
    expect(await theOrderOfAKeyIsKept(recoveringInPasses(3, 5_000))).toEqual([
      'the events of a were done in the order 1,3,2',
    ])
  })
})

describe('a dead letter without an error', () => {
  /** A handler that fails at half past, on a store that may keep less than it is given. */
  async function theLetterTellsWhy(wrap: (store: Store) => Store): Promise<string[]> {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    const { handler } = noting(world, () => Promise.reject(new RangeError('no such account', { cause: 'a typo' })), {
      failure: definePolicy({ unknown: retry({ attempts: 2, backoff: fixed('30s') }).then(park) }),
    })
    await world.runtime.advance(1_800_000)
    const engine = world.engine([handler], { store: wrap(world.store) })
    await engine.start()
    await pass(world, 60_000)
    const [letter] = await engine.letters({ subscription: 'notify' })
    const [attempt] = letter?.attempts ?? []
    const { failure: why, at = 0 } = attempt ?? {}
    return [
      ...(why?.errorType === 'RangeError' && why.message === 'no such account'
        ? []
        : [`its reason is ${why?.message}`]),
      ...(why?.stack?.includes('protean.test.ts') ? [] : ['it has no stack']),
      ...(at >= Date.UTC(2026, 0, 1) + 1_800_000 ? [] : ['the time of its failure is not when it failed']),
    ]
  }

  it('is none of ours: type, message, stack, and when it happened', async () => {
    expect(await theLetterTellsWhy((store) => store)).toEqual([])
  })

  it('is found where the store keeps the event and not what happened to it', async () => {
    const forgetful = (store: Store): Store => ({
      ...store,
      subscriptions: {
        ...store.subscriptions,
        commit: (commit) =>
          store.subscriptions.commit({
            ...commit,
            at: Date.UTC(2026, 0, 1),
            held: commit.held.map((letter) => ({
              ...letter,
              failure: letter.failure && { ...letter.failure, errorType: 'unknown', message: 'unknown', stack: null },
            })),
          }),
      },
    })
    expect(await theLetterTellsWhy(forgetful)).toEqual([
      'its reason is unknown',
      'it has no stack',
      'the time of its failure is not when it failed',
    ])
  })
})

describe('a replay that hits every handler', () => {
  it('does not: a retry is that of one subscription', async () => {
    expect(await aRetryReachesOneHandler(holdfast)).toEqual([])
  })

  it('is found where what failed is published again', async () => {
    const republishing = each(async (event, tools) => {
      for (let isThrough = false; !isThrough; ) {
        isThrough = true
        for (const handler of tools.handlers) await tools.call(handler, event).catch(() => (isThrough = false))
        if (!isThrough) await tools.sleep(1_000)
      }
    })
    expect(await aRetryReachesOneHandler(republishing)).toEqual(['the bystander was called 2 times too often'])
  })
})

describe('a crash that strands what was in flight', () => {
  async function anotherProcessTakesOver(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'c'], 1)
    let isDead = false
    const hanging = noting(world, () => new Promise(() => undefined), { timeout: '1h' })
    const dying = unreachable(world.store, () => isDead)
    const first = await consume({ world, handlers: [hanging.handler], store: dying, name: 'first' })
    await pass(world, 1_000)
    isDead = true
    const healthy = noting(world)
    const second = await consume({ world, handlers: [healthy.handler], name: 'second' })
    await pass(world, 60_000)
    await second.stop()
    await first.stop()
    const stranded = hanging.calls.filter(({ id }) => !healthy.calls.some((call) => call.id === id)).length
    return [
      ...(hanging.calls.length > 0 ? [] : ['nothing was in flight, so this proves nothing']),
      ...(stranded === 0 ? [] : [`${stranded} of 3 events are stranded`]),
    ]
  }

  it('does not: who takes the partition takes all of it', async () => {
    expect(await anotherProcessTakesOver(holdfast)).toEqual([])
  })

  it('is found where what was read belongs to a consumer that will never come again', async () => {
    const pending = new Set<string>()
    const byName = naive(async (tools) => {
      const { events } = await read(tools)
      const mine = events.filter(({ id }) => !pending.has(id))
      for (const { id } of mine) pending.add(id)
      await Promise.all(mine.flatMap((event) => tools.handlers.map((handler) => tools.call(handler, event))))
    })
    expect(await anotherProcessTakesOver(byName)).toEqual(['3 of 3 events are stranded'])
  })
})

describe('an undecodable event that is copied without end', () => {
  async function itIsKeptOnce(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.raw.append('bad', [{ type: 'Credited', data: { amount: 'much' } }])
    await log.append('well', [credited(1)])
    const { handler, calls } = noting(world)
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 2_000)
    const letters = (await consumer.letters()).length
    await consumer.stop()
    return [
      ...(letters === 1 ? [] : [`it was kept ${letters > 10 ? 'over and over' : `${letters} times`}`]),
      ...(calls.length === 1 ? [] : ['what came after it was never read']),
    ]
  }

  it('is kept once, and the rest goes on', async () => expect(await itIsKeptOnce(holdfast)).toEqual([]))

  it('is found where it is moved and never acknowledged', async () => {
    const unacknowledged = naive(async (tools) => {
      while (!tools.isStopped()) {
        // What is pending is read first.
        const [event] = (await read(tools)).events
        if (event && typeof (JSON.parse(event.body as string) as { amount: unknown }).amount !== 'number')
          tools.keep(event)
        await tools.world.runtime.timers.yield()
      }
    })
    expect(await itIsKeptOnce(unacknowledged)).toEqual([
      'it was kept over and over',
      'what came after it was never read',
    ])
  })
})

describe('a cursor that moves on before the failure is written down, with a crash between (ADR)', () => {
  /** Dies at the moment when the failure should be written down: before anything reached the store, or after all of it did. */
  type Dying = (world: World, done: Call[], when: 'before' | 'after') => Promise<number>

  const poisoned = (world: World, done: Call[]) =>
    noting(world, (call) => {
      if (call.key === 'bad') throw failure.permanent('never')
      done.push(call)
    }).handler

  const ours: Dying = async (world, done, when) => {
    let isDead = false
    const { subscriptions } = world.store
    const dying: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        commit: async (commit) => {
          const isIt = commit.held.length > 0
          if (isIt && when === 'after') await subscriptions.commit(commit)
          isDead ||= isIt
          if (isIt) throw new Error('killed')
          return subscriptions.commit(commit)
        },
      },
    }
    await holdfast({ world, handlers: [poisoned(world, done)], store: unreachable(dying, () => isDead), name: 'first' })
    await pass(world, 10_000)
    const second = await holdfast({ world, handlers: [poisoned(world, done)], name: 'second' })
    await pass(world, 60_000)
    return (await lostBy(world, second, done)).length
  }

  const cursorFirst: Dying = async ({ store }, done, when) => {
    const kept = { position: 0, failed: new Set<string>() }
    const run = async (dies: boolean) => {
      for (const event of (await store.log.readAll(kept.position, { events: 100, bytes: 2 ** 20 })).events) {
        kept.position = event.position
        if (event.key !== 'bad') done.push({ id: event.id } as Call)
        else if (dies && when === 'before') return
        else kept.failed.add(event.id)
      }
    }
    await run(true)
    await run(false)
    const all = (await store.log.readAll(0, { events: 100, bytes: 2 ** 20 })).events
    return all.filter(({ id }) => !kept.failed.has(id) && !done.some((call) => call.id === id)).length
  }

  async function theFailureIsThereWithTheCheckpoint(dying: Dying, when: 'before' | 'after'): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['a', 'bad', 'c'], 1)
    const lost = await dying(world, [], when)
    return lost === 0 ? [] : [`${lost} event was passed, and nobody knows that it failed`]
  }

  it.for(['before', 'after'] as const)('loses nothing when it dies %s the commit', async (when) => {
    expect(await theFailureIsThereWithTheCheckpoint(ours, when)).toEqual([])
  })

  it('is found where they are two writes', async () => {
    expect(await theFailureIsThereWithTheCheckpoint(cursorFirst, 'before')).toEqual([
      '1 event was passed, and nobody knows that it failed',
    ])
  })
})

describe('dead letters that can be turned off, so that what fails is discarded (ADR)', () => {
  const policies: readonly Policy[] = [
    noRetry(),
    definePolicy({ permanent: skip('not needed') }),
    definePolicy({ permanent: park }),
  ]

  async function noSettingDiscardsInSilence(wrap: (store: Store) => Store): Promise<string[]> {
    const found = new Set<string>()
    for (const policy of policies) {
      await using world = await createWorld()
      await fill(world, ['a', 'b'], 2)
      const { handler } = noting(
        world,
        ({ key }) => (key === 'b' ? Promise.reject(failure.permanent('no')) : undefined),
        { failure: policy },
      )
      const engine = world.engine([handler], { store: wrap(world.store) })
      await engine.start()
      await pass(world, 10_000)
      const { ok } = await engine.verify('notify')
      const letters = await engine.letters({ subscription: 'notify' })
      if (letters.length < 2) found.add(`with ${policy.name}, what fails leaves no trace`)
      if (!ok) found.add('and verify says so')
    }
    return [...found]
  }

  it('are always on: what is skipped is recorded, with who and why', async () => {
    expect(await noSettingDiscardsInSilence((store) => store)).toEqual([])
  })

  it('are found off where the store drops them', async () => {
    const dropping = (store: Store): Store => ({
      ...store,
      subscriptions: {
        ...store.subscriptions,
        commit: (commit) => store.subscriptions.commit({ ...commit, held: [], lanes: [] }),
      },
    })
    expect(await noSettingDiscardsInSilence(dropping)).toEqual(
      expect.arrayContaining(['with none, what fails leaves no trace', 'and verify says so']),
    )
  })
})

describeServers('an event that commits late and is skipped (#1088)', (server) => {
  it('is waited for; where readers ask for what is above the last position, it is gone', async () => {
    await using database = await cloneDatabase(server)
    await using store = await createPostgresStore({ connection: database.url })
    const log = createLog({ store, events: bank })
    const handled: number[] = []
    const handler = noting({ runtime: { clock: { mono: () => 0 } } } as unknown as World, ({ amount }) => {
      handled.push(amount)
    }).handler
    await using engine = createEngine({ store, subscriptions: [handler], poll: '20ms' })
    await engine.start()

    const client = new Client({ connectionString: database.url })
    await client.connect()
    const naiveReader = { last: 0, seen: 0 }
    const look = async () => {
      const { rows } = await client.query<{ position: string }>(
        'SELECT position FROM holdfast.holdfast_events WHERE position > $1 ORDER BY position',
        [naiveReader.last],
      )
      naiveReader.seen += rows.length
      naiveReader.last = Number(rows.at(-1)?.position ?? naiveReader.last)
    }
    const slow = new Client({ connectionString: database.url })
    await slow.connect()
    await slow.query('BEGIN')
    await log.append('slow', [credited(1)], { tx: slow })
    await log.append('quick', [credited(2)])
    await look()
    await slow.query('COMMIT')
    await look()
    await engine.drain()
    await Promise.all([client.end(), slow.end()])
    expect(handled.toSorted((a, b) => a - b)).toEqual([1, 2])
    expect(naiveReader.seen).toBe(1)
  })
})
