import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, debited } from '../../../test/fixtures.ts'
import { ask } from '../../../test/redrive/asking.ts'
import { away } from '../../../test/noting.ts'
import { HoldfastError } from '../../errors.ts'
import {
  createLog,
  defineProjection,
  defineSubscription,
  type Projection,
  type Source,
  type SqlProjection,
  type Store,
} from '../../index.ts'
import { defineSqlProjection } from '../../sqlite/index.ts'
import { isIn, type Share } from '../../source/share.ts'
import { logSource } from '../../source/source.ts'
import type { Commit, CommitOutcome } from '../../subscription/subscription-store.ts'
import { at, claimed, commitOf, deedOf, letter } from '../../testing/contracts/fixtures.ts'
import { createScriptedSource } from '../../testing/source.ts'
import { PageLoop, type PageLoopParts, suspectsOf } from './page-loop.ts'
import type { Partition } from '../ownership/partition.ts'
import { RowCache } from '../ownership/row-cache.ts'
import { ExclusiveRun } from '../crash/exclusive-run.ts'
import { Ownership } from '../ownership/ownership.ts'

const leaseMs = 9_000
const pollMs = 400

interface Kind {
  readonly consumer?: Projection | SqlProjection
  readonly source?: Source
  readonly share?: Share
  readonly pageEvents?: number
  readonly only?: 'letters'
  readonly isInherited?: boolean
  readonly exclusiveRun?: ExclusiveRun
  /** The highest position that was there at the beginning. */
  readonly end?: number
}

const stoppedClock = { now: () => 0, mono: () => 0 }

/** A loop over the log of a real store, step by step, by a clock that only moves when it is told to. */
async function looping(options: Kind = {}) {
  const { consumer = balances, source, share = { partition: 0, of: 1 }, pageEvents = 10, only } = options
  const { isInherited = false } = options
  const world = await createWorld()
  const { runtime } = world
  const { name, table, version } = consumer
  const spec = { name, table, start: 0, partitions: share.of, kind: consumer.kind }
  await world.store.subscriptions.register(spec)
  const claim = { subscription: name, partition: share.partition, owner: 'me', leaseMs, version }
  const lease = claimed(await world.store.subscriptions.claim(claim))
  let elapsed = 0
  const clock = { now: () => runtime.clock.now() + elapsed, mono: () => runtime.clock.mono() + elapsed }
  const { exclusiveRun = new ExclusiveRun(clock) } = options
  const told: unknown[] = []
  const working: boolean[] = []
  const seen = { loads: 0, changed: 0, woken: 0, commits: [] as Commit[], reads: [] as number[] }
  const next = { commit: undefined as (() => CommitOutcome) | undefined }
  const { subscriptions } = world.store
  const commit = async (one: Commit) => {
    seen.commits.push(one)
    const instead = next.commit
    next.commit = undefined
    return instead ? instead() : subscriptions.commit(one)
  }
  const store: Store = { ...world.store, subscriptions: { ...subscriptions, commit } }
  const subscription = defineSubscription(consumer, source ? { source } : {})
  const read = source ?? logSource(store.log)
  const counting: Source = {
    ...read,
    read: (after, ...rest) => {
      seen.reads.push(after)
      return read.read(after, ...rest)
    },
  }
  const forced = new AbortController()
  const parts = {
    store,
    subscription,
    source: counting,
    share,
    runtime: { ...runtime, clock },
    settings: { leaseMs, pollMs, pageEvents, pageBytes: 1_000_000, only, instance: 'me' },
    emitter: { emit: (event: string, fields: object) => void told.push([event, fields]) },
    logger: { warn: () => undefined },
    watchdog: { began: (what: string) => void told.push(what) },
    outcomeReporter: {
      tell: ({ stopped }: { stopped: readonly { lane: string }[] }) => void told.push(stopped.length),
    },
    rate: { add: (...args: number[]) => void told.push(['rate', ...args]) },
    exclusiveRun,
    fit: { events: pageEvents },
    changed: () => void seen.changed++,
    fenced: () => void told.push('fenced'),
    working: (isBehind: boolean) => void working.push(isBehind),
    wake: () => void seen.woken++,
    stopping: new AbortController().signal,
    forced: forced.signal,
    isInherited,
  }
  const ownership = new Ownership(parts as unknown as PageLoopParts, forced.signal, () => undefined)
  ownership.lease = lease
  const watchesGaps = read.versions === 'unordered'
  const loading = { isAway: false }
  const load = async (): Promise<Partition | undefined> => {
    seen.loads++
    if (loading.isAway) throw away()
    const state = await subscriptions.load(name, share.partition)
    if (!state || state.epoch !== lease.epoch) return undefined
    ownership.load(state)
    const lanes = await store.letters.heldLanes(name, share.partition)
    return {
      store,
      subscription,
      share,
      watchesGaps,
      doneBefore: 0,
      logged: source === undefined && consumer.keyOf === undefined,
      held: new Map(lanes.map((lane) => [lane.lane, lane])),
      rows: new RowCache(store, consumer, watchesGaps, 1_000_000),
      now: () => clock.now(),
    }
  }
  const create = async () => {
    const known = (await load()) as Partition
    const state = await subscriptions.load(name, share.partition)
    const end = options.end ?? (await (read.end?.() ?? read.head()))
    return new PageLoop({ ...parts, ownership, load, state, end } as unknown as PageLoopParts, consumer, known)
  }
  return {
    world,
    log: createLog({ store: world.store, events: bank, ...runtime }),
    loop: await create(),
    create,
    load: loading,
    ownership,
    parts,
    told,
    working,
    seen,
    next,
    lease,
    forced,
    elapse: (ms: number) => void (elapsed += ms),
    stored: async () =>
      (await subscriptions.load(name, share.partition)) as NonNullable<Awaited<ReturnType<typeof subscriptions.load>>>,
    held: async () =>
      (await world.store.letters.list({ subscription: name }))
        .filter(({ endedAt }) => endedAt === undefined)
        .map(({ lane, status, event }) => `${lane} ${status} ${event.position}`),
    /** Steps until one has nothing to do, and gives what they were. */
    settle: async (loop: PageLoop) => {
      const steps: string[] = []
      for (let i = 0; i < 200 && steps.at(-1) !== 'idle' && steps.at(-1) !== 'lost'; i++) steps.push(await loop.step())
      return steps
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

const many = (count: number) => Array.from({ length: count }, () => credited(1))
const fenced = (): CommitOutcome => ({ outcome: 'fenced', epoch: 99, owner: 'she' })

type Setup = Awaited<ReturnType<typeof looping>>

/** How often something is asked of the store from now on. */
function countCalls({ parts, world }: Setup, name: 'acquit' | 'load'): () => number {
  const { subscriptions } = world.store
  let calls = 0
  Object.assign(parts.store.subscriptions, {
    [name]: (...args: [string, number, string]) => {
      calls++
      return subscriptions[name](...args)
    },
  })
  return () => calls
}

/** What processes before this one had begun when they died. */
async function died({ world, lease, create, stored }: Setup, ...positions: number[]): Promise<PageLoop> {
  for (const [i, position] of positions.entries()) {
    const { position: from } = (await stored()).checkpoint
    const trial = { position, instance: `dead-${i}` }
    const commit = { ...commitOf(lease), table: undefined, from, to: at(from), trial }
    expect(await world.store.subscriptions.commit(commit)).toEqual({ outcome: 'committed' })
  }
  return create()
}

/** A projection that throws at debits until it is mended. */
function buggy() {
  const bug = { isBad: true, tookMs: 0, setup: undefined as Setup | undefined }
  const consumer = defineProjection('bug', {
    events: bank,
    initial: () => ({ n: 0 }),
    on: {
      Credited: ({ n }) => {
        bug.setup?.elapse(bug.tookMs)
        return { n: n + 1 }
      },
      Debited: ({ n }) => {
        if (bug.isBad) throw new Error('a bug')
        return { n: n - 1 }
      },
    },
  })
  return { bug, consumer }
}

/** No sum above 50. */
function limitSums(file: string, table: string) {
  const db = new DatabaseSync(file)
  for (const verb of ['INSERT', 'UPDATE'])
    db.exec(
      `CREATE TRIGGER most_${verb} BEFORE ${verb} ON ${table} WHEN new.sum > 50 BEGIN SELECT RAISE(ABORT, 'too much'); END`,
    )
  db.close()
}

function unlimitSums(file: string) {
  const db = new DatabaseSync(file)
  for (const verb of ['INSERT', 'UPDATE']) db.exec(`DROP TRIGGER most_${verb}`)
  db.close()
}

const sums = defineProjection('sums', {
  events: bank,
  initial: () => ({ sum: 0 }),
  on: { Credited: (row, { data }) => ({ sum: row.sum + data.amount }) },
  columns: { sum: 'integer' },
})

describe('a page', () => {
  it('is committed with its checkpoint, and told of', async () => {
    await using setup = await looping()
    const { loop, log, told, working, seen } = setup
    await log.append('a', [credited(1), debited(9), credited(2)])
    expect(await loop.step()).toBe('worked')
    expect((await setup.stored()).checkpoint).toMatchObject({
      position: 3,
      counts: { applied: 1, held: 2 },
      commits: 1,
    })
    const counts = { applied: 1, duplicate: 0, filtered: 0, held: 2, discarded: 0 }
    expect(told).toEqual([
      'balances, 3 events from position 1 on',
      ['rate', 0, 0, 3],
      ['page.committed', { subscription: 'balances', partition: 0, position: 3, events: 3, counts, durationMs: 0 }],
      1,
    ])
    expect([working, seen.changed]).toEqual([[false, false], 1])
    expect(seen.commits[0]).toMatchObject({ from: 0, commits: 0, to: { position: 3, eventType: 'Credited' } })
    expect(seen.commits[0]?.redriven).toBeUndefined()
    expect(await setup.held()).toEqual(['a parked 2', 'a queued 3'])
    expect(await loop.step()).toBe('idle')
    expect(seen.commits).toHaveLength(1)
    expect([loop.standing(), loop.hasUnwritten, loop.isDue]).toEqual([{ state: 'live' }, false, false])
  })

  it('that follows on another without a rest means that it is behind', async () => {
    await using setup = await looping({ pageEvents: 2 })
    const { loop, log, working } = setup
    await log.append('a', many(6))
    await loop.step()
    await loop.step()
    expect(working).toEqual([false, false, false, true])
    working.length = 0
    loop.restMs()
    await loop.step()
    expect(working).toEqual([false, false])
  })

  it('that is the end of its source leaves nothing to do', async () => {
    await using setup = await looping()
    const { source: log } = setup.parts
    const source: Source = { ...log, read: async (...args) => ({ ...(await log.read(...args)), isEnd: true }) }
    Object.assign(setup.parts, { source, watchdog: undefined })
    const loop = await setup.create()
    await setup.log.append('a', many(3))
    setup.next.commit = () => ({ outcome: 'paused', pause: { reason: 'x', at: 1 } })
    // Unless it came to nothing.
    expect(await loop.step()).toBe('refused')
    expect(setup.working).toEqual([])
    expect(await loop.step()).toBe('idle')
    expect((await setup.stored()).checkpoint.position).toBe(3)
  })

  it('asks for the next one while it is committed, and for each once', async () => {
    await using setup = await looping({ pageEvents: 2 })
    await setup.log.append('a', many(5))
    expect(await setup.settle(setup.loop)).toEqual(['worked', 'worked', 'worked', 'idle'])
    expect(setup.seen.reads).toEqual([0, 2, 4, 5])
    // While it is performed, in SQL.
    const reads: number[] = []
    const own = defineSqlProjection('own', {
      events: bank,
      on: { Credited: () => void reads.push(sql.seen.reads.length) },
    })
    await using sql = await looping({ pageEvents: 2, consumer: own })
    await sql.log.append('a', many(5))
    await sql.settle(sql.loop)
    expect(sql.seen.reads).toEqual([0, 2, 4, 5])
    expect(reads.slice(0, 4)).toEqual([2, 2, 3, 3])
  })

  it('of anybody else’s source is checked', async () => {
    const source = { ...createScriptedSource(), versions: 'contiguous' as const }
    await using setup = await looping({ source })
    const event = { key: 'a', type: 'Credited', data: { amount: 1 } }
    source.deliver({ ...event, version: 1, position: 1 }, { ...event, version: 2, position: 1 })
    await expect(setup.loop.step()).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  it('is not read by one that only lets letters go', async () => {
    await using setup = await looping({ only: 'letters' })
    await setup.log.append('a', many(3))
    expect(await setup.loop.step()).toBe('idle')
    expect([setup.seen.reads, setup.seen.commits]).toEqual([[], []])
  })

  it('stays well within the lease: it is cut when it takes too long, and grows again when it does not', async () => {
    let tookMs = 600
    const slow = defineProjection('slow', {
      events: bank,
      initial: () => ({ n: 0 }),
      on: {
        Credited: ({ n }) => {
          setup.elapse(tookMs)
          return { n: n + 1 }
        },
      },
    })
    await using setup = await looping({ consumer: slow, pageEvents: 12 })
    const { loop, log, parts } = setup
    await log.append('a', many(60))
    await loop.step()
    // 12 events took 7.2 s, and a third of the lease is 3 s.
    expect(parts.fit.events).toBe(5)
    // The second was read before that was known. The third takes as long as it may, and no longer.
    await loop.step()
    const [, committed] = setup.told.filter((one) => Array.isArray(one) && one[0] === 'page.committed') as [
      unknown,
      [string, object],
    ]
    expect(committed[1]).toMatchObject({ durationMs: 7_200 })
    await loop.step()
    expect(parts.fit.events).toBe(10)
    tookMs = 10_000
    await loop.step()
    expect(parts.fit.events).toBe(1)
    tookMs = 1
    const fits: number[] = []
    for (let i = 0; i < 4; i++) {
      await loop.step()
      fits.push(parts.fit.events)
    }
    expect(fits).toEqual([2, 4, 8, 12])
  })
})

describe('what is in memory', () => {
  it('is read again when a commit threw, or when it was refused, and only then', async () => {
    await using setup = await looping()
    const { loop, log, seen, next } = setup
    await log.append('a', many(3))
    next.commit = () => {
      throw away()
    }
    await expect(loop.step()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(seen.loads).toBe(1)
    const pause = { reason: 'x', at: 1 }
    next.commit = () => ({ outcome: 'paused', pause })
    expect(await loop.step()).toBe('refused')
    expect([seen.loads, setup.ownership.pause]).toEqual([2, pause])
    // As the store has it, there is no pause any more.
    expect(await loop.step()).toBe('worked')
    expect(await loop.step()).toBe('idle')
    expect(seen.loads).toBe(3)
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 3, counts: { applied: 3 } })
  })

  it('does not count as a page before, when it was read again', async () => {
    await using setup = await looping({ pageEvents: 2 })
    await setup.log.append('a', many(6))
    await setup.loop.step()
    setup.next.commit = () => {
      throw away()
    }
    await expect(setup.loop.step()).rejects.toThrow('took the store away')
    await setup.loop.step()
    expect(setup.working).toEqual([false, false, false, false])
  })

  it('is what the store has, also where nobody knew that a commit was there', async () => {
    const source = createScriptedSource()
    await using setup = await looping({ source })
    const { loop } = setup
    const event = (version: number) => ({ key: 'a', type: 'Credited', version, data: { amount: version } })
    source.deliver(event(2))
    await setup.settle(loop)
    expect(await setup.held()).toEqual(['a waiting 1'])
    source.deliver(event(1))
    const { subscriptions } = setup.world.store
    setup.next.commit = () => {
      const { commits } = setup.seen
      const lost = subscriptions.commit(commits.at(-1) as Commit)
      return lost.then(() => Promise.reject(away())) as unknown as CommitOutcome
    }
    await expect(loop.step()).rejects.toThrow('took the store away')
    await setup.settle(loop)
    // The version that was missing is there, so what waited for it goes.
    expect(await setup.held()).toEqual([])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 2, duplicate: 0, held: 0 })
  })

  it('is nothing when the partition is somebody else’s', async () => {
    await using setup = await looping()
    await setup.log.append('a', many(3))
    setup.next.commit = fenced
    expect(await setup.loop.step()).toBe('lost')
    expect(setup.ownership.lease).toBeUndefined()
    expect(await setup.loop.step()).toBe('lost')
    expect(setup.seen.commits).toHaveLength(1)
    await setup.loop.finish()
    expect(setup.seen.commits).toHaveLength(1)
  })

  it('goes when it is abandoned, and nobody waits for it', async () => {
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    await using setup = await looping({ exclusiveRun })
    setup.loop.abandon()
    await setup.loop.finish()
    await setup.loop.step()
    expect(setup.seen.loads).toBe(2)
    expect(exclusiveRun.enter({ wake: () => undefined })).toBe(true)
  })

  it('is of no use when the lease can not be kept', async () => {
    await using setup = await looping()
    await setup.log.append('a', many(3))
    await setup.world.runtime.advance(leaseMs + 1)
    await setup.world.store.subscriptions.claim({ subscription: 'balances', partition: 0, owner: 'she', leaseMs })
    expect(await setup.loop.step()).toBe('lost')
    expect(setup.seen.commits).toEqual([])
  })

  it('is dropped by one that a load finds to be the owner no more', async () => {
    await using setup = await looping()
    setup.next.commit = () => {
      throw away()
    }
    await setup.log.append('a', many(3))
    await expect(setup.loop.step()).rejects.toThrow('took the store away')
    // As one that was asked to hand it on, and did not hear that it has.
    const { subscriptions } = setup.world.store
    await subscriptions.release(setup.lease, false)
    await subscriptions.claim({ subscription: 'balances', partition: 0, owner: 'she', leaseMs })
    expect(await setup.loop.step()).toBe('lost')
  })
})

describe('who may not go on', () => {
  it('because it is paused does nothing, and lets the others be alone', async () => {
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    await using setup = await looping({ exclusiveRun })
    await setup.log.append('a', many(3))
    setup.ownership.pause = { reason: 'x', at: 1 }
    expect(await setup.loop.step()).toBe('paused')
    expect(setup.seen.reads).toEqual([])
    setup.ownership.pause = undefined
    expect(await setup.loop.step()).toBe('worked')
    expect(exclusiveRun.enter({ wake: () => undefined })).toBe(true)
  })

  it('because somebody else is alone is not live, and is woken', async () => {
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    const other = { wake: () => undefined }
    await using setup = await looping({ exclusiveRun })
    await setup.log.append('a', many(3))
    exclusiveRun.enter(other)
    for (let i = 0; i < 2; i++)
      expect([await setup.loop.step(), setup.loop.standing()]).toEqual(['idle', { state: 'catching-up' }])
    // Something may be due; but it is woken when it may begin.
    expect(setup.loop.restMs()).toBe(leaseMs / 3)
    exclusiveRun.leave(other)
    expect(setup.seen.woken).toBe(1)
    expect([await setup.loop.step(), setup.loop.standing()]).toEqual(['worked', { state: 'live' }])
    // What it had read was at hand when it was its turn.
    expect(setup.seen.reads).toEqual([0])
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 3, counts: { applied: 3 } })
  })

  it('because somebody else is alone is not kept from seeing that there is nothing to do', async () => {
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    await using setup = await looping({ exclusiveRun, isInherited: true })
    exclusiveRun.enter({ wake: () => undefined })
    expect([await setup.loop.step(), setup.loop.standing()]).toEqual(['idle', { state: 'live' }])
    expect(setup.loop.isSuspect).toBe(false)
  })

  it('because somebody else is alone has its lanes and its page in the same order after that', async () => {
    const { bug, consumer } = buggy()
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    const other = { wake: () => undefined }
    await using setup = await looping({ consumer, exclusiveRun })
    await setup.log.append('a', [debited(1), debited(1)])
    await setup.settle(setup.loop)
    bug.isBad = false
    await ask(setup.world.store, 'bug')
    await setup.log.append('a', [credited(1)])
    setup.loop.redriven()
    exclusiveRun.enter(other)
    const { length: commits } = setup.seen.commits
    for (let i = 0; i < 2; i++) expect(await setup.loop.step()).toBe('idle')
    expect([setup.seen.commits.length, setup.loop.restMs()]).toEqual([commits, leaseMs / 3])
    exclusiveRun.leave(other)
    await setup.settle(setup.loop)
    expect(await setup.held()).toEqual([])
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 3, counts: { applied: 3, held: 0 } })
    const [first, second] = setup.seen.commits.slice(commits)
    expect([first?.letters.length, second?.to.position]).toEqual([2, 3])
  })
})

describe('how long it may rest', () => {
  it('is until the lease must be kept, and shorter where a checkpoint is to be written', async () => {
    await using setup = await looping()
    await setup.loop.step()
    expect(setup.loop.restMs()).toBe(leaseMs / 3)
    setup.ownership.seen = 7
    expect(setup.loop.restMs()).toBe(1_000)
  })

  it('is until the next poll, for a source of its own', async () => {
    const source: Source = { ...logSource((await createWorld()).store.log), versions: 'contiguous' }
    await using setup = await looping({ source })
    await setup.loop.step()
    expect(setup.loop.restMs()).toBe(pollMs)
  })

  it('is none while a lane may be due, except for one that is paused', async () => {
    await using setup = await looping()
    expect([setup.loop.isDue, setup.loop.restMs()]).toEqual([true, 0])
    setup.ownership.pause = { reason: 'x', at: 1 }
    expect(setup.loop.restMs()).toBe(leaseMs / 3)
    setup.ownership.pause = undefined
    await setup.loop.step()
    expect([setup.loop.isDue, setup.loop.restMs()]).toEqual([false, leaseMs / 3])
    setup.loop.redriven()
    expect([setup.loop.isDue, setup.loop.restMs()]).toEqual([true, 0])
  })

  it('is until a redrive that must go slowly may go on', async () => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer })
    const { loop } = setup
    await setup.log.append('a', [debited(1), ...many(2)])
    await setup.settle(loop)
    bug.isBad = false
    await ask(setup.world.store, 'bug', { rate: 2 })
    loop.redriven()
    expect(await setup.settle(loop)).toEqual(['worked', 'worked', 'idle'])
    expect(await setup.held()).toEqual(['a retrying 2', 'a queued 3'])
    expect(loop.restMs()).toBe(500)
    setup.elapse(500)
    expect([loop.restMs(), await loop.step()]).toEqual([0, 'worked'])
    expect(await setup.held()).toEqual(['a retrying 3'])
    // A page is no part of it, whatever is held for it.
    bug.isBad = true
    await setup.log.append('b', [debited(1), ...many(5)])
    await setup.settle(loop)
    expect([loop.restMs(), (await setup.held())[0]]).toEqual([500, 'a retrying 3'])
  })
})

describe('what belongs to others', () => {
  const half = { partition: 0, of: 2 }
  const keys = ['a', 'b', 'c', 'd', 'e', 'f']
  const foreign = keys.find((key) => !isIn(half, key)) as string
  const own = keys.find((key) => isIn(half, key)) as string

  it('moves the checkpoint now and then, not with every page', async () => {
    await using setup = await looping({ share: half })
    const { loop, ownership, seen } = setup
    await setup.settle(loop)
    await setup.log.append(foreign, many(1))
    ownership.committedAt = setup.parts.runtime.clock.mono()
    const before = seen.changed
    // It got further, so it looks again; and somebody may wait for that.
    expect(await setup.settle(loop)).toEqual(['worked', 'idle'])
    expect([ownership.seen, seen.changed - before, seen.commits.length]).toEqual([1, 1, 0])
    expect(loop.restMs()).toBe(1_000)
    setup.elapse(999)
    await loop.step()
    expect(seen.commits).toHaveLength(0)
    setup.elapse(1)
    expect(await loop.step()).toBe('idle')
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 1, eventId: undefined, counts: { applied: 0 } })
    setup.elapse(5_000)
    await loop.step()
    expect(seen.commits).toHaveLength(1)
    expect(loop.restMs()).toBe(leaseMs / 3)
    await setup.log.append(own, many(1))
    await setup.log.append(foreign, many(1))
    await setup.settle(loop)
    const { eventId } = (await setup.stored()).checkpoint
    expect([seen.commits.length, eventId !== undefined]).toEqual([2, true])
    await setup.log.append(foreign, many(1))
    setup.elapse(500)
    await setup.settle(loop)
    expect(seen.commits).toHaveLength(2)
    setup.elapse(500)
    await setup.settle(loop)
    // The last event is still the last of its own.
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 4, eventId, commits: 3 })
  })

  it('is written by one that stops, unless it is paused or nothing is in memory', async () => {
    await using setup = await looping({ share: half })
    const { loop, ownership, seen } = setup
    await setup.log.append(foreign, many(1))
    await setup.settle(loop)
    ownership.pause = { reason: 'x', at: 1 }
    await loop.finish()
    expect(seen.commits).toHaveLength(0)
    ownership.pause = undefined
    loop.abandon()
    await loop.finish()
    expect(seen.commits).toHaveLength(0)
    await setup.settle(loop)
    await loop.finish()
    await loop.finish()
    expect(seen.commits).toHaveLength(1)
    expect((await setup.stored()).checkpoint.position).toBe(1)
  })

  it('ends the ownership when that was refused', async () => {
    await using setup = await looping({ share: half })
    await setup.log.append(foreign, many(1))
    setup.elapse(1_000)
    setup.next.commit = fenced
    expect(await setup.loop.step()).toBe('lost')
  })
})

describe('a row that the database refuses', () => {
  it('holds the one event that made it so, and nothing else of its page', async () => {
    await using setup = await looping({ consumer: sums })
    limitSums(setup.world.store.file, 'sums')
    await setup.log.append('a', [credited(1), credited(2), credited(99), credited(3)])
    await setup.log.append('b', [credited(5)])
    await setup.log.append('c', [credited(60)])
    const steps = await setup.settle(setup.loop)
    expect(steps.filter((step) => step === 'refused').length).toBeGreaterThan(1)
    expect(await setup.held()).toEqual(['a parked 3', 'a queued 4', 'c parked 6'])
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 6, counts: { applied: 3, held: 3 } })
    const rows = await setup.world.store.rows.load(sums.table, ['a', 'b', 'c'])
    expect([...rows.values()].map(({ key, json }) => [key, json])).toEqual([
      ['a', '{"sum":3}'],
      ['b', '{"sum":5}'],
    ])
    // Whoever was careful is as quick as before.
    await setup.log.append('b', many(8))
    setup.seen.commits.length = 0
    await setup.settle(setup.loop)
    expect(setup.seen.commits).toHaveLength(1)
    // Once it is allowed, it goes through: nothing is held against it.
    const db = new DatabaseSync(setup.world.store.file)
    for (const verb of ['INSERT', 'UPDATE']) db.exec(`DROP TRIGGER most_${verb}`)
    db.close()
    await ask(setup.world.store, 'sums')
    setup.loop.redriven()
    await setup.settle(setup.loop)
    expect(await setup.held()).toEqual([])
  })

  it('is found by the key of the projection, where it has one', async () => {
    const own = defineProjection('own', {
      events: bank,
      key: ({ key }) => `row-${key}`,
      initial: () => ({ sum: 0 }),
      on: { Credited: (row, { data }) => ({ sum: row.sum + data.amount }) },
      columns: { sum: 'integer' },
    })
    await using setup = await looping({ consumer: own })
    limitSums(setup.world.store.file, 'own')
    await setup.log.append('a', [credited(1), credited(99)])
    await setup.log.append('b', [credited(5)])
    await setup.settle(setup.loop)
    expect(await setup.held()).toEqual(['row-a parked 2'])
  })

  it('of nobody is an error, before anything is held for it', async () => {
    await using setup = await looping({ consumer: sums })
    await setup.log.append('a', many(2))
    setup.next.commit = () => ({ outcome: 'rejected', key: 'nobody', error: new Error('no') })
    await expect(setup.loop.step()).rejects.toMatchObject({ code: 'INTERNAL' })
    expect(await setup.held()).toEqual([])
  })
})

describe('in SQL of the user’s own', () => {
  it('what an earlier run held is not held, and a bystander is not blamed', async () => {
    const seen: string[] = []
    const own = defineSqlProjection('own', {
      events: bank,
      on: {
        Credited: ({ id, key, data }) => {
          seen.push(`${key}${data.amount}`)
          if (data.amount === 13) throw new TypeError(`not ${id}`)
        },
      },
    })
    await using setup = await looping({ consumer: own })
    const { raw } = setup.log
    await raw.append('a', [{ type: 'Credited', data: { amount: 'no number' } }])
    await raw.append('b', [credited(13), credited(1)])
    await raw.append('c', [credited(2)])
    await setup.settle(setup.loop)
    expect(await setup.held()).toEqual(['a parked 1', 'b parked 2', 'b queued 3'])
    expect(seen).toEqual(['b13', 'b13', 'c2'])
    await raw.append('b', [credited(3)])
    await raw.append('d', [credited(4)])
    await setup.settle(setup.loop)
    expect(seen.slice(3)).toEqual(['d4'])
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 6, counts: { applied: 2, held: 4 } })
  })

  it('is not tried a second time for what no second time could mend', async () => {
    let runs = 0
    const own = defineSqlProjection('own', { events: bank, on: { Credited: () => void runs++ } })
    await using setup = await looping({ consumer: own })
    await setup.log.append('a', many(1))
    const perform = async () => {
      runs++
      throw new HoldfastError('INTERNAL', 'ours')
    }
    Object.assign(setup.parts.store.subscriptions, { perform })
    await expect(setup.loop.step()).rejects.toMatchObject({ code: 'INTERNAL' })
    expect(runs).toBe(1)
  })

  it('comes to nothing when nobody waits any longer', async () => {
    const own = defineSqlProjection('own', { events: bank, on: { Credited: () => setup.forced.abort() } })
    await using setup = await looping({ consumer: own })
    await setup.log.append('a', many(1))
    await expect(setup.loop.step()).rejects.toThrow(/aborted/)
    expect((await setup.stored()).checkpoint.position).toBe(0)
  })
})

describe('held lanes and pages', () => {
  it('take turns, and a batch tells of itself as a page does', async () => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer, pageEvents: 2 })
    const { loop, log, told } = setup
    await log.append('a', [debited(1), credited(1), credited(1), credited(1)])
    await setup.settle(loop)
    bug.isBad = false
    await ask(setup.world.store, 'bug')
    loop.redriven()
    await log.append('b', many(3))
    told.length = 0
    const positions = async () => (await setup.stored()).checkpoint
    expect(await loop.step()).toBe('worked')
    expect(await setup.held()).toEqual(['a retrying 3', 'a queued 4'])
    expect(await positions()).toMatchObject({ position: 4, counts: { applied: 2, held: 2 } })
    expect(told).toMatchObject([
      'bug, 1 held lanes from position 1 on',
      ['rate', 0, 0, 2],
      ['page.committed', { events: 2, position: 4, counts: { applied: 2, held: -2 } }],
      0,
    ])
    await loop.step()
    expect(await positions()).toMatchObject({ position: 6, counts: { applied: 4, held: 2 } })
    await loop.step()
    expect(await setup.held()).toEqual([])
    expect(await setup.settle(loop)).toEqual(['worked', 'idle'])
    expect((await setup.world.store.redrives.list({ limit: 1 }))[0]).toMatchObject({ status: 'done', letters: 4 })
  })

  it('parks the letter whose row the database refuses', async () => {
    let isBad = true
    const own = defineProjection('own', {
      events: bank,
      initial: () => ({ sum: 0 }),
      on: {
        Credited: (row, { data }) => {
          if (isBad) throw new Error('a bug')
          return { sum: row.sum + data.amount }
        },
      },
      columns: { sum: 'integer' },
    })
    await using setup = await looping({ consumer: own })
    limitSums(setup.world.store.file, 'own')
    await setup.log.append('a', [credited(1), credited(99), credited(2)])
    await setup.log.append('b', [credited(3)])
    await setup.settle(setup.loop)
    isBad = false
    await ask(setup.world.store, 'own')
    setup.loop.redriven()
    // Live events don't come between a refusal and what is known from it.
    for (let i = 0; i < 40; i++) await setup.log.append('live', many(1))
    const steps = await setup.settle(setup.loop)
    expect(steps.filter((step) => step === 'refused')).toHaveLength(2)
    expect(await setup.held()).toEqual(['a parked 2', 'a queued 3'])
    const [parked] = await setup.world.store.letters.list({ subscription: 'own', position: 2 })
    expect(parked).toMatchObject({ attemptsTotal: 1, attempts: [{ failure: { rule: 'row' } }] })
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 42, held: 2 })
    // When it is let go again, it is tried again.
    unlimitSums(setup.world.store.file)
    await ask(setup.world.store, 'own')
    setup.loop.redriven()
    await setup.settle(setup.loop)
    expect(await setup.held()).toEqual([])
  })

  it('tries a letter again whose row was refused, when the rule is gone, and nobody heard that it was parked', async () => {
    await using setup = await looping({ consumer: sums })
    const { world, loop, seen } = setup
    limitSums(world.store.file, 'sums')
    await setup.log.append('a', [credited(60)])
    expect(await loop.step()).toBe('refused')
    setup.next.commit = (async () => {
      await world.store.subscriptions.commit(seen.commits.at(-1) as Commit)
      throw away()
    }) as never
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect(await setup.held()).toEqual(['a parked 1'])
    // It is found out again, as always, while the rule is there.
    const id = await ask(world.store, 'sums')
    loop.redriven()
    for (let i = 0; i < 8; i++) await loop.step()
    expect(await world.store.redrives.find(id)).toMatchObject({ byState: { failed: 1 } })
    unlimitSums(world.store.file)
    await ask(world.store, 'sums')
    loop.redriven()
    await setup.settle(loop)
    expect(await setup.held()).toEqual([])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 1, held: 0 })
  })

  it('tries a letter whose row was refused when it is let go, be it known or not that it was parked', async () => {
    for (const isKnown of [true, false]) {
      await using setup = await looping({ consumer: sums })
      const { world, loop, seen } = setup
      limitSums(world.store.file, 'sums')
      await setup.log.append('a', [credited(60)])
      expect(await loop.step()).toBe('refused')
      if (!isKnown)
        setup.next.commit = (async () => {
          await world.store.subscriptions.commit(seen.commits.at(-1) as Commit)
          throw away()
        }) as never
      const isThrown = await loop.step().then(
        () => false,
        () => true,
      )
      expect([isThrown, await setup.held()]).toEqual([!isKnown, ['a parked 1']])
      unlimitSums(world.store.file)
      await ask(world.store, 'sums')
      loop.redriven()
      await setup.settle(loop)
      expect([isKnown, await setup.held()]).toEqual([isKnown, []])
    }
  })

  it('tries a letter again whose row was refused, when a person changed it before it was parked', async () => {
    await using setup = await looping({ consumer: sums })
    const { world, loop, lease } = setup
    limitSums(world.store.file, 'sums')
    await setup.log.append('a', [credited(60)])
    await setup.settle(loop)
    await ask(world.store, 'sums')
    loop.redriven()
    // Once with others, and once by itself; from then on it is known to be refused.
    expect([await loop.step(), await loop.step()]).toEqual(['refused', 'refused'])
    setup.next.commit = () => ({ outcome: 'fenced', epoch: lease.epoch, owner: lease.owner })
    expect(await loop.step()).toBe('refused')
    unlimitSums(world.store.file)
    await setup.settle(loop)
    expect(await setup.held()).toEqual([])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 1, held: 0 })
  })

  it('tries an event again whose row was refused before somebody paused it', async () => {
    await using setup = await looping({ consumer: sums })
    const { world, loop } = setup
    limitSums(world.store.file, 'sums')
    await setup.log.append('a', [credited(60)])
    expect(await loop.step()).toBe('refused')
    await world.store.subscriptions.pause('sums', { reason: 'the rule is wrong', at: 0 }, deedOf('pause'))
    expect(await loop.step()).toBe('paused')
    unlimitSums(world.store.file)
    await world.store.subscriptions.resume('sums', deedOf('resume'))
    loop.abandon()
    await setup.settle(loop)
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 1, held: 0 })
  })

  it('holds many whose rows are refused, though the store fails now and then', async () => {
    await using setup = await looping({ consumer: sums, pageEvents: 30 })
    limitSums(setup.world.store.file, 'sums')
    for (let i = 0; i < 12; i++) await setup.log.append(`key-${i}`, [credited(60)])
    const failed = { loads: 0, commits: 0 }
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 4; j++) expect(await setup.loop.step()).toBe('refused')
      setup.load.isAway = true
      await setup.loop.step().catch(() => failed.loads++)
      setup.load.isAway = false
      setup.next.commit = () => {
        throw away()
      }
      await setup.loop.step().catch(() => failed.commits++)
    }
    expect(failed).toEqual({ loads: 3, commits: 3 })
    expect(await setup.loop.step()).toBe('worked')
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 12, counts: { applied: 0, held: 12 } })
  })

  it('are both kept well within the lease', async () => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer, pageEvents: 12 })
    await setup.log.append('a', [debited(1), ...many(11)])
    await setup.settle(setup.loop)
    Object.assign(bug, { isBad: false, tookMs: 600, setup })
    await ask(setup.world.store, 'bug')
    setup.loop.redriven()
    setup.elapse(2_000)
    await setup.loop.step()
    // 11 letters took 6.6 s, 12 came to an end, and a third of the lease is 3 s.
    expect(setup.parts.fit.events).toBe(5)
  })

  it('are let go in SQL as well', async () => {
    let isBad = true
    const seen: number[] = []
    const own = defineSqlProjection('own', {
      events: bank,
      on: {
        Credited: ({ data }) => {
          if (isBad) throw new Error('a bug')
          seen.push(data.amount)
        },
      },
    })
    await using setup = await looping({ consumer: own })
    await setup.log.append('a', [credited(1), credited(2)])
    await setup.settle(setup.loop)
    isBad = false
    await ask(setup.world.store, 'own')
    setup.loop.redriven()
    await setup.settle(setup.loop)
    expect([seen, await setup.held()]).toEqual([[1, 2], []])
  })
})

describe('after a death', () => {
  it('says what it tries before it tries it, and takes that back with its outcome', async () => {
    await using setup = await looping({ isInherited: true, pageEvents: 3 })
    const { loop, seen } = setup
    await setup.log.append('a', many(3))
    expect(loop.isSuspect).toBe(true)
    await loop.step()
    expect(seen.commits.map(({ trial, endedTrials, to }) => [trial?.position, endedTrials, to.position])).toEqual([
      [0, undefined, 0],
      [undefined, [0, 0], 3],
    ])
    expect([(await setup.stored()).trials, loop.isSuspect, loop.mayHaveTrials]).toEqual([[], false, true])
    expect(await loop.step()).toBe('idle')
    await setup.log.append('a', many(1))
    await loop.step()
    expect(seen.commits[2]?.endedTrials).toEqual([])
  })

  it('is over where there is nothing to be tried', async () => {
    await using setup = await looping({ isInherited: true })
    expect([await setup.loop.step(), setup.loop.isSuspect]).toEqual(['idle', false])
    expect(setup.seen.commits).toEqual([])
  })

  it('tries nothing when that could not be said', async () => {
    await using setup = await looping({ isInherited: true })
    await setup.log.append('a', many(3))
    setup.next.commit = fenced
    expect(await setup.loop.step()).toBe('lost')
    expect(setup.seen.commits).toHaveLength(1)
    expect(setup.told).not.toContainEqual('balances, 3 events from position 1 on')
  })

  it('says so of held lanes too, or does not try them', async () => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer, isInherited: true })
    await setup.log.append('a', [debited(1)])
    await setup.settle(setup.loop)
    bug.isBad = false
    await ask(setup.world.store, 'bug')
    const loop = await setup.create()
    setup.seen.commits.length = 0
    setup.next.commit = () => ({ outcome: 'paused', pause: { reason: 'x', at: 1 } })
    expect(await loop.step()).toBe('refused')
    expect(await setup.held()).toEqual(['a parked 1'])
    await setup.settle(loop)
    expect(setup.seen.commits.map(({ trial, endedTrials }) => [trial?.position, endedTrials])).toEqual([
      [0, undefined],
      [0, undefined],
      [undefined, []],
      // There is nothing behind them.
      [undefined, [0, 0]],
    ])
    expect(await setup.held()).toEqual([])
  })

  it('is over with the commit of the last page that there was, however short that is', async () => {
    await using setup = await looping({ isInherited: true, pageEvents: 5, end: 2 })
    await setup.log.append('a', many(2))
    await setup.loop.step()
    expect([setup.loop.isSuspect, (await setup.stored()).trials]).toEqual([false, []])
    expect(setup.seen.commits.map(({ to, endedTrials }) => [to.position, endedTrials])).toEqual([
      [0, undefined],
      [2, [0, 0]],
    ])
  })

  it('is not over with a page that is shorter than the one it may have been over', async () => {
    await using setup = await looping({ isInherited: true, pageEvents: 2, end: 2 })
    await setup.log.append('a', many(1))
    await setup.settle(setup.loop)
    expect([setup.loop.isSuspect, (await setup.stored()).trials]).toMatchObject([true, [{ position: 0 }]])
    await setup.log.append('a', many(1))
    await setup.settle(setup.loop)
    expect([setup.loop.isSuspect, (await setup.stored()).trials]).toEqual([false, []])
    expect(setup.seen.commits.filter(({ trial }) => trial !== undefined)).toHaveLength(1)
  })

  it.for([
    ['as many as a page has', [], [1, 2, 3, 5, 7, 8]],
    ['twice as many where something is held', [debited(1)], [2, 3, 4, 5, 6, 8, 9]],
  ] as const)('goes by single events after a second one, %s', async ([, before, positions]) => {
    await using setup = await looping({ pageEvents: 2, isInherited: true, end: 99 })
    const { log, seen } = setup
    if (before.length > 0) {
      await log.append('held', [...before])
      await setup.settle(setup.loop)
    }
    const loop = await died(setup, 0)
    seen.commits.length = 0
    await log.append('a', many(8))
    await setup.settle(loop)
    const pages = seen.commits.filter(({ trial }) => trial === undefined)
    // One more was read ahead by then.
    expect(pages.map(({ to }) => to.position)).toEqual([...positions])
    expect(await setup.stored()).toMatchObject({ trials: [] })
  })

  it.for([
    ['each letter by itself', [0], [true, true, true, false]],
    ['as many as a batch has', [], [true, false]],
  ] as const)('is over when as many letters as are suspected had their turn: %s', async ([, deaths, suspicious]) => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer, isInherited: true, pageEvents: 2, end: 99 })
    await setup.log.append('a', [debited(1), ...many(9)])
    for (let i = 0; i < 5; i++) await setup.loop.step()
    expect(await setup.held()).toHaveLength(10)
    bug.isBad = false
    await ask(setup.world.store, 'bug')
    const loop = await died(setup, ...deaths)
    const found: boolean[] = []
    for (let left = 10; left > 0 && found.at(-1) !== false; ) {
      await loop.step()
      const { length } = await setup.held()
      // Not the turns of pages, of which there are none, and not the beginning of the lane.
      if (length < left) found.push(loop.isSuspect)
      left = length
    }
    expect(found).toEqual([...suspicious])
    expect(await setup.stored()).toMatchObject({ trials: [] })
  })

  it('is not over in the middle of another source, which has more', async () => {
    const source = createScriptedSource()
    await using setup = await looping({ isInherited: true, source, pageEvents: 3 })
    for (const key of ['a', 'b', 'c', 'd', 'e'])
      source.deliver({ key, type: 'Credited', version: 1, data: { amount: 1 } })
    const loop = await died(setup, 0)
    const found: boolean[] = []
    for (let i = 0; i < 3; i++) {
      await loop.step()
      found.push(loop.isSuspect)
    }
    expect(found).toEqual([true, true, false])
  })

  it('goes on after a stop that moves the checkpoint over what belongs to others', async () => {
    const half = { partition: 0, of: 2 }
    const foreign = ['a', 'b', 'c', 'd'].find((key) => !isIn(half, key)) as string
    await using setup = await looping({ isInherited: true, share: half })
    const loop = await died(setup, 0)
    await setup.log.append(foreign, many(1))
    expect([await loop.step(), loop.isSuspect]).toEqual(['worked', true])
    await loop.finish()
    expect([loop.isSuspect, (await setup.stored()).trials]).toEqual([true, [dead]])
    expect(setup.seen.commits.at(-1)).toMatchObject({ to: { position: 1 }, endedTrials: undefined })
  })

  it('asks the store about an event before it is blamed, and about no other', async () => {
    await using setup = await looping({ isInherited: true })
    await setup.log.append('a', many(2))
    await setup.log.append('b', many(1))
    const loop = await died(setup, 0, 3, 3)
    const asked = countCalls(setup, 'load')
    await loop.step()
    await loop.step()
    expect(asked()).toBe(0)
    await loop.step()
    expect([asked(), await setup.held()]).toEqual([1, ['b parked 3']])
  })

  it('blames nobody any more who was about to be blamed, when those live whom it was taken to have killed', async () => {
    await using setup = await looping({ isInherited: true })
    await setup.log.append('a', many(2))
    const loop = await died(setup, 0, 1, 1)
    setup.next.commit = () => {
      throw away()
    }
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect(setup.seen.commits.at(-1)).toMatchObject({ counts: { held: 1 } })
    await setup.world.store.subscriptions.acquit('balances', 0, 'dead-1')
    await setup.settle(loop)
    expect(await setup.held()).toEqual([])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 2, held: 0 })
  })

  it('parks what the last two were over, and tries it when a person wants that', async () => {
    await using setup = await looping({ isInherited: true })
    await setup.log.append('a', many(2))
    await setup.log.append('b', many(1))
    const loop = await died(setup, 0, 1, 1)
    await loop.step()
    expect(await setup.held()).toEqual(['a parked 1'])
    const [first] = await setup.world.store.letters.list({ subscription: 'balances' })
    expect(first?.attempts).toMatchObject([{ failure: { code: 'EVENT_DEADLY', rule: 'crash' } }])
    // Whoever lets it go has mended it, and the deaths before that don't count, though they are not over.
    await ask(setup.world.store, 'balances')
    loop.redriven()
    expect(loop.isSuspect).toBe(true)
    await setup.settle(loop)
    expect(await setup.held()).toEqual([])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 3 })
  })

  it('takes back what is left of it where nothing is to be tried', async () => {
    await using setup = await looping({ isInherited: true })
    const loop = await died(setup, 0)
    setup.next.commit = fenced
    expect(await loop.step()).toBe('lost')
    expect(loop.isSuspect).toBe(true)
    await using other = await looping({ isInherited: true })
    const second = await died(other, 0)
    expect([await second.step(), second.isSuspect, (await other.stored()).trials]).toEqual(['idle', false, []])
    expect(other.seen.commits.map(({ endedTrials }) => endedTrials)).toEqual([[0, 0]])
  })

  it('is not over before what it may have been over was read', async () => {
    const half = { partition: 0, of: 2 }
    const foreign = ['a', 'b', 'c', 'd'].find((key) => !isIn(half, key)) as string
    await using setup = await looping({ isInherited: true, share: half })
    await setup.log.append(foreign, many(1))
    expect([await setup.loop.step(), setup.loop.isSuspect]).toEqual(['worked', true])
    expect([await setup.loop.step(), setup.loop.isSuspect]).toEqual(['idle', false])
  })

  it('is not over while a gap in the log hides what it may have been over', async () => {
    await using setup = await looping({ isInherited: true, end: 1 })
    const loop = await died(setup, 0)
    expect([await loop.step(), loop.isSuspect]).toEqual(['idle', true])
    expect((await setup.stored()).trials).toHaveLength(1)
    await setup.log.append('a', many(1))
    await setup.settle(loop)
    expect(setup.seen.commits.map(({ trial }) => trial?.position)).toContain(1)
    expect([loop.isSuspect, (await setup.stored()).trials]).toEqual([false, []])
  })

  it('is over at the end of another source, where what was there may never come', async () => {
    const source = { ...createScriptedSource(), head: async () => 1 }
    await using setup = await looping({ isInherited: true, source })
    const loop = await died(setup, 0)
    expect([await loop.step(), loop.isSuspect]).toEqual(['idle', false])
  })

  it('is not over while a lane is still to be let go', async () => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer, isInherited: true })
    await setup.log.append('a', [debited(1), credited(2), credited(3)])
    await setup.settle(setup.loop)
    bug.isBad = false
    await ask(setup.world.store, 'bug', { rate: 1 })
    const loop = await died(setup, 0)
    await setup.settle(loop)
    expect([loop.isDue, loop.isSuspect]).toEqual([true, true])
  })

  it('stays alone while it is on trial, until it is paused or gives up', async () => {
    const ends = {
      paused: async ({ world }: Setup, loop: PageLoop) => {
        await world.store.subscriptions.pause('balances', { reason: 'x', at: 1 }, deedOf('pause'))
        await loop.step()
      },
      abandoned: async (_setup: Setup, loop: PageLoop) => loop.abandon(),
    }
    for (const end of ['paused', 'abandoned'] as const) {
      const exclusiveRun = new ExclusiveRun(stoppedClock)
      const other = { wake: () => undefined }
      await using setup = await looping({ isInherited: true, exclusiveRun })
      await setup.log.append('a', many(3))
      const loop = await died(setup, 0)
      trialAnd(setup, away)
      await expect(loop.step()).rejects.toThrow('took the store away')
      expect(exclusiveRun.begin(other)).toBe(false)
      exclusiveRun.leave(other)
      await ends[end](setup, loop)
      expect(exclusiveRun.begin(other)).toBe(true)
      // Who gives up takes it back by itself.
      const own = (await setup.stored()).trials.filter(({ instance }) => instance === 'me')
      expect(own).toHaveLength(end === 'paused' ? 0 : 1)
    }
  })

  it.for(['while it waits to be alone', 'between two events'])(
    'lets the others go on when it is paused: %s',
    async (when) => {
      const exclusiveRun = new ExclusiveRun(stoppedClock)
      const [running, other] = [{ wake: () => undefined }, { wake: () => undefined }]
      await using setup = await looping({ isInherited: true, exclusiveRun })
      await setup.log.append('a', many(3))
      const loop = await died(setup, 0)
      const isWaiting = when === 'while it waits to be alone'
      if (isWaiting) exclusiveRun.begin(running)
      expect([await loop.step(), exclusiveRun.begin(other)]).toEqual([isWaiting ? 'idle' : 'worked', false])
      setup.ownership.pause = { reason: 'x', at: 1 }
      expect([await loop.step(), exclusiveRun.begin(other)]).toEqual(['paused', true])
    },
  )

  it.for([
    ['it is not known whether it is on trial', 0],
    ['the answer to what was tried is lost', 1],
  ] as const)('lets others have their turn when %s, though its source is away', async ([, commits]) => {
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    const other = { wake: () => undefined }
    await using setup = await looping({ isInherited: true, exclusiveRun })
    await setup.log.append('a', many(3))
    const loop = await died(setup, 0)
    const lost = () => {
      throw away()
    }
    if (commits === 0) setup.next.commit = lost
    else trialAnd(setup, lost)
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect(exclusiveRun.begin(other)).toBe(false)
    const { load } = setup
    setup.load.isAway = true
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect([exclusiveRun.begin(other), (await setup.stored()).trials]).toEqual([true, [dead]])
    exclusiveRun.end()
    exclusiveRun.leave(other)
    load.isAway = false
    await setup.settle(loop)
    expect((await setup.stored()).checkpoint).toMatchObject({ position: 3, counts: { applied: 3 } })
  })

  it('holds one whose row the database refuses for that, though others have their turn before it is held', async () => {
    const begun: unknown[] = []
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    const other = { wake: () => void begun.push(exclusiveRun.begin(other)) }
    await using setup = await looping({ consumer: sums, isInherited: true, exclusiveRun })
    limitSums(setup.world.store.file, 'sums')
    await setup.log.append('a', [credited(1), credited(60), credited(1)])
    await setup.log.append('b', [credited(1)])
    const loop = await died(setup, 0)
    expect([await loop.step(), exclusiveRun.begin(other)]).toEqual(['worked', false])
    expect([await loop.step(), begun]).toEqual(['refused', []])
    // It has taken its trial back before it asks for anything else.
    setup.load.isAway = true
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect([begun, (await setup.stored()).trials]).toEqual([[true], [dead]])
    setup.load.isAway = false
    expect(await loop.step()).toBe('idle')
    exclusiveRun.end()
    exclusiveRun.leave(other)
    await setup.settle(loop)
    expect(await setup.held()).toEqual(['a parked 2', 'a queued 3'])
    const [parked] = await setup.world.store.letters.list({ subscription: 'sums' })
    expect(parked?.failure?.rule).toBe('row')
    expect(await setup.stored()).toMatchObject({ trials: [], checkpoint: { counts: { applied: 2, held: 2 } } })
  })

  it('begins a lane that a person lets go before it tries it, and those who died over it count no more', async () => {
    const { bug, consumer } = buggy()
    await using setup = await looping({ consumer, isInherited: true, pageEvents: 1 })
    const { store } = setup.world
    await setup.log.append('a', [debited(1)])
    await setup.log.append('c', [debited(1)])
    for (let i = 0; i < 2; i++) await setup.loop.step()
    expect(await setup.held()).toEqual(['a parked 1', 'c parked 2'])
    await setup.log.append('b', many(4))
    bug.isBad = false
    const moved = await ask(store, 'bug', { filter: { lane: 'c' } })
    const id = await ask(store, 'bug', { filter: { lane: 'a' } })
    // That lane is not as it was when somebody wanted it to go.
    const due: Store['redrives']['due'] = async (...args) =>
      (await store.redrives.due(...args)).map((task) => (task.lane === 'c' ? { ...task, position: 99 } : task))
    Object.assign(setup.parts, { store: { ...setup.parts.store, redrives: { ...store.redrives, due } } })
    const loop = await died(setup, 0, 1)
    const positions = async () => (await setup.stored()).trials.map(({ position }) => position)
    setup.next.commit = () => ({ outcome: 'fenced', epoch: setup.lease.epoch, owner: setup.lease.owner })
    expect([await loop.step(), await setup.held()]).toEqual(['refused', ['a parked 1', 'c parked 2']])
    expect(await positions()).toContain(1)
    expect([await loop.step(), loop.isSuspect]).toEqual(['worked', true])
    expect(await positions()).not.toContain(1)
    expect(await setup.held()).toEqual(['a retrying 1', 'c parked 2'])
    expect(await store.redrives.find(id)).toMatchObject({ letters: 0, byState: { running: 1 } })
    expect(await store.redrives.find(moved)).toMatchObject({ byState: { passed: 1 } })
    // Four are suspected, and that it was begun is not one of them.
    expect([await loop.step(), loop.isSuspect]).toEqual(['worked', true])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 1, held: 2 })
    expect([await loop.step(), loop.isSuspect]).toEqual(['worked', true])
    expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 2, held: 1 })
    expect([await loop.step(), loop.isSuspect]).toEqual(['worked', true])
    expect([await loop.step(), loop.isSuspect]).toEqual(['worked', false])
    await setup.settle(loop)
    expect(await setup.stored()).toMatchObject({ trials: [], checkpoint: { counts: { applied: 5, held: 1 } } })
  })

  it('lets others have their turn when what is on trial is there no more', async () => {
    const exclusiveRun = new ExclusiveRun(stoppedClock)
    const other = { wake: () => undefined }
    const hidden = { isHidden: false }
    await using setup = await looping({ isInherited: true, exclusiveRun })
    await setup.log.append('a', many(3))
    const { source } = setup.parts
    const read: Source['read'] = (after, ...rest) =>
      hidden.isHidden ? Promise.resolve({ events: [], through: after, isEnd: false }) : source.read(after, ...rest)
    Object.assign(setup.parts, { source: { ...source, read } })
    const loop = await died(setup, 0)
    trialAnd(setup, away)
    await expect(loop.step()).rejects.toThrow('took the store away')
    hidden.isHidden = true
    const acquittals = countCalls(setup, 'acquit')
    expect([exclusiveRun.begin(other), await loop.step(), exclusiveRun.begin(other)]).toEqual([false, 'idle', true])
    expect((await setup.stored()).trials).toEqual([dead])
    // The store knows, and is not told again.
    await loop.step()
    expect(acquittals()).toBe(1)
  })
})

describe('a source that does not answer, after a death', () => {
  /** One that has tried its first event alone, quickly, and is about to read the next. */
  async function between(answer: () => Promise<never>) {
    const setup = await looping({ isInherited: true })
    await setup.log.append('a', many(3))
    const { source, exclusiveRun } = setup.parts
    const read: Source['read'] = (after, ...rest) => (after === 0 ? source.read(after, ...rest) : answer())
    Object.assign(setup.parts, { source: { ...source, read } })
    const loop = await died(setup, 0)
    const other = { wake: () => undefined }
    expect([await loop.step(), exclusiveRun.begin(other)]).toEqual(['worked', false])
    return { setup, loop, asks: () => exclusiveRun.begin(other), [Symbol.asyncDispose]: setup[Symbol.asyncDispose] }
  }

  it('is not waited for when it says so', async () => {
    await using one = await between(() => Promise.reject(away()))
    await expect(one.loop.step()).rejects.toThrow('took the store away')
    expect(one.asks()).toBe(true)
  })

  it('is waited for a while when it does not', async () => {
    await using one = await between(() => new Promise(() => undefined))
    void one.loop.step()
    one.setup.elapse(5_000)
    expect(one.asks()).toBe(false)
    one.setup.elapse(1)
    expect(one.asks()).toBe(true)
  })
})

it('suspects as many as come up before those that the dead had at hand, within reason', () => {
  const found = [suspectsOf(7, 0), suspectsOf(1, 1), suspectsOf(1, 3), suspectsOf(10, 40), suspectsOf(10, 60)]
  expect([...found, suspectsOf(600, 5)]).toEqual([7, 2, 6, 800, 1_000, 1_200])
})

/** What `died` leaves behind. */
const dead = { position: 0, instance: 'dead-0' }

/** The next commit is made, and the one after it ends like this. */
function trialAnd({ next, world, seen }: Setup, end: () => Error): void {
  const { subscriptions } = world.store
  next.commit = () => {
    next.commit = () => {
      throw end()
    }
    return subscriptions.commit(seen.commits.at(-1) as Commit) as unknown as CommitOutcome
  }
}

it('what people decided in the live version holds for one that is built beside it', async () => {
  await using setup = await looping()
  const { subscriptions } = setup.world.store
  await setup.log.append('a', [credited(1), credited(2), credited(4)])
  await subscriptions.register({ name: 'live', table: undefined, start: 0, partitions: 1 })
  const claim = { subscription: 'live', partition: 0, owner: 'me', leaseMs }
  const lease = claimed(await subscriptions.claim(claim))
  const ending = { by: 'ann', reason: 'a test' }
  for (const position of [1, 2]) {
    const made = letter('a', position, 'discarded')
    const held = [{ ...made, logged: true, event: { ...made.event, position }, ending }]
    await subscriptions.commit({ ...commitOf(lease), table: undefined, held })
  }
  const { subscription } = setup.parts
  Object.assign(setup.parts, { subscription: { ...subscription, beside: 'live' } })
  const loop = await setup.create()
  await setup.settle(loop)
  expect((await setup.stored()).checkpoint.counts).toMatchObject({ applied: 1, discarded: 2 })
  const rows = await setup.world.store.rows.load(balances.table, ['a'])
  expect(rows.get('a')?.json).toBe('{"balance":4,"seen":1}')
})
