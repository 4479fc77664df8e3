import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, debited } from '../../../test/fixtures.ts'
import { away, keysOf } from '../../../test/noting.ts'
import { createParts, leaseMs } from '../../../test/parts.ts'
import { ask } from '../../../test/redrive/asking.ts'
import {
  createLog,
  defineHandler,
  definePolicy,
  defineProjection,
  defineSubscription,
  failure,
  fixed,
  HoldfastError,
  retry,
  type Source,
  StoreError,
} from '../../index.ts'
import { isIn, type Share } from '../../source/share.ts'
import { logSource } from '../../source/source.ts'
import type { Consumer } from '../../subscription/subscription.ts'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import { createScriptedSource } from '../../testing/source.ts'
import { Throughput } from '../../runtime/throughput.ts'
import { OutcomeReporter } from '../outcome/outcome-reporter.ts'
import { isFinal, versionOf, Worker, type WorkerEnd } from './worker.ts'

it('waits for what can be mended by waiting, and for nothing else', () => {
  for (const error of [
    new Error('anything'),
    undefined,
    new StoreError('STORE_UNAVAILABLE', 'It is away.'),
    new StoreError('STORE_BUSY', 'It is busy.'),
  ])
    expect(isFinal(error)).toBe(false)
  expect(isFinal(new StoreError('STORE_CLOSED', 'It was closed.'))).toBe(true)
  expect(isFinal(new HoldfastError('SOURCE_REGRESSED', 'It lost something.'))).toBe(true)
})

it('goes on from where it is with whatever the code of a handler became, and keeps versions of projections apart', () => {
  const second = defineProjection('balances', { events: bank, initial: () => ({}), on: {}, version: 2 })
  const handler = defineHandler('notify', { events: bank, on: {} })
  expect([balances, second, handler].map((consumer) => versionOf(defineSubscription(consumer)))).toEqual([
    1,
    2,
    undefined,
  ])
})

interface Given {
  readonly consumer?: Consumer
  readonly source?: Source
  readonly start?: number
  readonly only?: 'letters'
  readonly share?: Share
}

/** A worker on a real store, by a clock that only moves when it is told to. */
async function working(given: Given = {}) {
  const { consumer = balances, source, start = 0, only, share = { partition: 0, of: 1 } } = given
  const world = await createWorld()
  const { runtime } = world
  const subscription = defineSubscription(consumer, source ? { source } : {})
  const { name, kind, table } = subscription.consumer
  await world.store.subscriptions.register({ name, kind, table, partitions: share.of, start })
  const { parts, instead, calls, logged, claimBy } = createParts(world, subscription, only)
  const told: [string, object][] = []
  for (const one of ['partition.claimed', 'store.failed'] as const)
    parts.emitter.on(one, (fields) => void told.push([one, fields]))
  const states: string[] = []
  const worker: Worker = new Worker({
    ...parts,
    source: source ?? logSource(world.store.log),
    share,
    outcomeReporter: new OutcomeReporter(subscription, runtime, parts.emitter, parts.logger),
    rate: new Throughput(),
    fit: { events: 10 },
    changed: () => void states.push(worker.state.state),
    fenced: () => undefined,
  })
  const run = async (ms = 0) => {
    const running = worker.run()
    const ended = { end: undefined as WorkerEnd | undefined }
    void running.then((end) => (ended.end = end))
    await runtime.advance(ms)
    return ended
  }
  const stored = async () => (await world.store.subscriptions.load(name, 0)) as PartitionState
  const log = createLog({ store: world.store, events: bank, ...runtime })
  return {
    world,
    runtime,
    worker,
    run,
    instead,
    calls,
    told,
    logged,
    states,
    claimBy,
    stored,
    log,
    name,
    held: () => world.store.letters.heldLanes(name, 0),
    [Symbol.asyncDispose]: async () => {
      worker.stop()
      worker.force()
      await world[Symbol.asyncDispose]()
    },
  }
}

const throwsAway = () => Promise.reject(away())
const parking = {
  events: bank,
  initial: () => ({ n: 0 }),
  on: {
    Credited: ({ n }: { readonly n: number }) => ({ n: n + 1 }),
    Debited: () => {
      throw new Error('a bug')
    },
  },
}
const parks = defineProjection('parks', parking)

describe('a worker', () => {
  it('owns its partition from its claim until it is stopped, and tells what it does', async () => {
    await using setup = await working()
    const { worker, run, told, states } = setup
    expect([worker.isOwner, worker.state, worker.reached(0)]).toEqual([
      false,
      { state: 'starting', owner: undefined },
      false,
    ])
    await setup.log.append('a', [credited(1)])
    const ended = await run(100)
    expect([worker.isOwner, worker.reached(1), worker.reached(2)]).toEqual([true, true, false])
    expect(told).toEqual([['partition.claimed', { subscription: 'balances', partition: 0, epoch: 1, position: 0 }]])
    worker.stop()
    await setup.runtime.advance(0)
    expect([ended.end, worker.isOwner]).toEqual([{ end: 'stopped' }, false])
    expect(states.filter((state, i) => state !== states[i - 1])).toEqual(['catching-up', 'live'])
    expect(await setup.claimBy('she')).toMatchObject({ outcome: 'claimed', isInherited: false })
  })

  it('says that something has changed when it has, and not with every look', async () => {
    await using setup = await working()
    await setup.run(100)
    const { length } = setup.states
    await setup.runtime.advance(5 * leaseMs)
    expect(setup.states).toHaveLength(length)
  })

  it('ends at once where somebody else has the partition', async () => {
    await using setup = await working()
    await setup.claimBy('she')
    const ended = await setup.run()
    expect([ended.end, setup.told]).toEqual([{ end: 'refused' }, []])
  })

  it('ends when somebody else takes it, and names who that is', async () => {
    await using setup = await working()
    const { worker, world } = setup
    const ended = await setup.run(100)
    await world.store.subscriptions.release({ subscription: 'balances', partition: 0, owner: 'me', epoch: 1 }, false)
    await setup.claimBy('she')
    expect([worker.heard(1), ended.end]).toEqual([false, undefined])
    expect(worker.heard(2)).toBe(true)
    await setup.runtime.advance(0)
    expect([ended.end, worker.state]).toEqual([{ end: 'lost' }, { state: 'starting', owner: 'she' }])
  })

  it.for(['another epoch', 'nothing at all'])('ends when it finds %s as soon as it has claimed it', async (what) => {
    await using setup = await working()
    const { instead, worker } = setup
    const state = await setup.stored()
    instead.load = async () => (what === 'another epoch' ? { ...state, epoch: 7, owner: 'she' } : undefined)
    const ended = await setup.run(100)
    expect([ended.end, worker.isOwner, worker.state.state]).toEqual([{ end: 'lost' }, false, 'starting'])
    expect(setup.told).toEqual([])
  })

  it('knows the time of the store, however long it works', async () => {
    const handler = defineHandler('notify', {
      events: bank,
      on: { Credited: () => Promise.reject(failure.transient('not now')) },
      failure: definePolicy({ transient: retry({ attempts: 9, backoff: fixed('1h') }), outage: false }),
    })
    await using setup = await working({ consumer: handler })
    const { runtime } = setup
    await runtime.advance(7_000)
    await setup.run(5_000)
    await setup.log.append('a', [credited(1)])
    setup.worker.wake()
    const at = runtime.clock.now()
    await runtime.advance(200)
    const [hold] = await setup.held()
    expect([(hold?.dueAt ?? 0) - at >= 3_600_000, (hold?.dueAt ?? 0) - at <= 3_600_200]).toEqual([true, true])
  })

  it('is woken by what a handler has done, and keeps it soon', async () => {
    let end = () => {}
    const handler = defineHandler('notify', {
      events: bank,
      on: { Credited: () => new Promise<void>((resolve) => (end = resolve)) },
    })
    await using setup = await working({ consumer: handler })
    await setup.log.append('a', [credited(1)])
    await setup.run(1_000)
    end()
    await setup.runtime.advance(100)
    expect((await setup.stored()).checkpoint.position).toBe(1)
  })
})

describe('a redrive', () => {
  it('is begun at once by the worker that hears of it, and by none that is not there yet', async () => {
    await using setup = await working({ consumer: parks })
    setup.worker.redriven()
    await setup.log.append('a', [debited(1), credited(1)])
    await setup.run(100)
    expect(await setup.held()).toMatchObject([{ lane: 'a', status: 'parked' }])
    const id = await ask(setup.world.store, 'parks', { act: 'discard' })
    await setup.runtime.advance(100)
    expect(await setup.world.store.redrives.find(id)).toMatchObject({ status: 'running' })
    setup.worker.redriven()
    await setup.runtime.advance(0)
    expect(await setup.held()).toEqual([])
  })

  it('is all that one does who only lets letters go: nothing is read, and its source need not be there', async () => {
    const source: Source = { ...createScriptedSource(), head: throwsAway, read: throwsAway }
    await using setup = await working({ only: 'letters', source })
    expect(setup.worker.reached(99)).toBe(false)
    await setup.run(100)
    expect([setup.worker.reached(99), setup.worker.hasSeen(99)]).toEqual([true, false])
  })
})

describe('a pause', () => {
  it('is obeyed at once, also when its reason changes, and so is its end', async () => {
    await using setup = await working()
    const { worker, runtime } = setup
    await setup.run(100)
    for (const reason of ['a test', 'another one']) {
      worker.setPause({ reason, at: 5 })
      await runtime.advance(0)
      expect(worker.state).toEqual({ state: 'paused', reason })
    }
    worker.setPause(undefined)
    await runtime.advance(0)
    expect(worker.state).toEqual({ state: 'live' })
  })

  it('that is told again changes nothing', async () => {
    await using setup = await working()
    const { worker, runtime, calls } = setup
    await setup.run(100)
    worker.setPause({ reason: 'a test', at: 5 })
    await runtime.advance(0)
    const [asked, changed] = [calls.length, setup.states.length]
    worker.setPause({ reason: 'a test', at: 5 })
    await runtime.advance(0)
    expect([calls.length, setup.states.length]).toEqual([asked, changed])
  })

  it('is over when it goes on, though its source takes its time', async () => {
    const source = createScriptedSource()
    await using setup = await working({ source })
    const { worker, runtime } = setup
    await setup.run(100)
    worker.setPause({ reason: 'a test', at: 5 })
    await runtime.advance(0)
    Object.assign(source, { read: () => new Promise(() => {}) })
    worker.setPause(undefined)
    await runtime.advance(0)
    expect(worker.state).toEqual({ state: 'catching-up' })
  })
})

describe('a store that is away', () => {
  it('is waited for, which is told each time and logged once', async () => {
    await using setup = await working()
    const { instead, worker, runtime, told, logged } = setup
    instead.claim = throwsAway
    const before = runtime.clock.now()
    await setup.run(1_000)
    const failures = told.filter(([name]) => name === 'store.failed')
    expect(failures.length).toBeGreaterThan(2)
    expect(failures[0]?.[1]).toMatchObject({ subscription: 'balances', attempt: 1, error: { code: away().code } })
    expect(logged).toMatchObject([[{ subscription: 'balances', error: { code: away().code } }, expect.any(String)]])
    expect(worker.state).toMatchObject({ state: 'blocked', by: 'store', attempts: failures.length })
    expect(worker.state.state === 'blocked' && worker.state.retryAt).toBeGreaterThan(before + 1_000)
  })

  it('is asked at once when somebody knows that it is there again', async () => {
    await using setup = await working()
    const { instead, worker, runtime } = setup
    instead.claim = throwsAway
    await setup.run(60_000)
    delete instead.claim
    await runtime.advance(1)
    expect(worker.isOwner).toBe(false)
    worker.heal()
    await runtime.advance(0)
    expect(worker.isOwner).toBe(true)
  })

  it('leaves its state behind when it works again', async () => {
    await using setup = await working()
    const { instead, runtime, states } = setup
    await setup.run(100)
    instead.commit = throwsAway
    await setup.log.append('a', [credited(1)])
    setup.worker.wake()
    await runtime.advance(100)
    delete instead.commit
    await runtime.advance(10_000)
    expect(states.filter((state, i) => state !== states[i - 1])).toEqual([
      'catching-up',
      'live',
      'blocked',
      'catching-up',
      'live',
    ])
  })

  it('keeps nobody who is to stop', async () => {
    await using setup = await working()
    setup.instead.claim = throwsAway
    const ended = await setup.run(60_000)
    setup.worker.stop()
    await setup.runtime.advance(0)
    expect(ended.end).toEqual({ end: 'stopped' })
  })
})

describe('the end of a worker', () => {
  /** A handler has done something, and the store goes away before it is written down. */
  async function unwritten() {
    let end = () => {}
    const on = { Credited: () => new Promise<void>((resolve) => (end = resolve)) }
    const setup = await working({ consumer: defineHandler('notify', { events: bank, on }) })
    await setup.log.append('a', [credited(1)])
    const ended = await setup.run(1_000)
    setup.instead.commit = throwsAway
    end()
    setup.worker.stop()
    await setup.runtime.advance(30_000)
    return { setup, ended }
  }

  it('waits for the store where something was done that can not be undone, until it is forced', async () => {
    const { setup, ended } = await unwritten()
    await using _ = setup
    expect(ended.end).toBeUndefined()
    setup.worker.force()
    await setup.runtime.advance(0)
    expect(ended.end).toEqual({ end: 'stopped' })
  })

  it('writes that down when the store is there again', async () => {
    const { setup, ended } = await unwritten()
    await using _ = setup
    delete setup.instead.commit
    await setup.runtime.advance(10_000)
    expect([ended.end, (await setup.stored()).checkpoint.position]).toEqual([{ end: 'stopped' }, 1])
  })

  it('does not wait for it where nothing is lost: it is told that the checkpoint is not the last', async () => {
    const half = { partition: 0, of: 2 }
    const others = keysOf(8).filter((key) => !isIn(half, key))
    await using setup = await working({ share: half })
    const ended = await setup.run(100)
    for (const key of others) await setup.log.append(key, [credited(1)])
    setup.worker.wake()
    await setup.runtime.advance(10)
    setup.instead.commit = throwsAway
    setup.worker.stop()
    await setup.runtime.advance(0)
    expect([ended.end, (await setup.stored()).checkpoint.position]).toEqual([{ end: 'stopped' }, 0])
    expect(setup.logged).toMatchObject([
      [{ subscription: 'balances', error: { code: away().code } }, expect.any(String)],
    ])
  })

  it('hands on what is suspected, also where it had not even begun', async () => {
    await using setup = await working()
    await setup.claimBy('dead')
    await setup.runtime.advance(leaseMs + 1)
    setup.instead.load = throwsAway
    const ended = await setup.run(100)
    setup.worker.stop()
    await setup.runtime.advance(0)
    expect(ended.end).toEqual({ end: 'stopped' })
    expect(await setup.claimBy('she')).toMatchObject({ outcome: 'claimed', isInherited: true })
  })
})

describe('a trial of its own', () => {
  async function afterDeath(given: Given = {}) {
    const setup = await working(given)
    await setup.log.append('a', [credited(1)])
    await setup.claimBy('dead')
    await setup.runtime.advance(leaseMs + 1)
    return setup
  }
  const acquittals = ({ calls }: { readonly calls: readonly string[] }) =>
    calls.filter((call) => call === 'acquit').length

  it('is taken back when it ends, and only if there may be one', async () => {
    await using quiet = await working()
    await quiet.run(100)
    quiet.worker.stop()
    await quiet.runtime.advance(0)
    expect(acquittals(quiet)).toBe(0)
    await using setup = await afterDeath()
    await setup.run(100)
    setup.worker.stop()
    await setup.runtime.advance(0)
    expect(acquittals(setup)).toBe(1)
  })

  it('that can not be taken back is told, and it ends all the same', async () => {
    await using setup = await afterDeath()
    const { instead, logged } = setup
    const ended = await setup.run(100)
    instead.acquit = throwsAway
    setup.worker.stop()
    await setup.runtime.advance(0)
    expect(ended.end).toEqual({ end: 'stopped' })
    expect(logged).toMatchObject([[{ subscription: 'balances', error: { code: away().code } }, expect.any(String)]])
  })

  it.for([
    ['me-1', 1],
    ['dead-1', 0],
  ] as const)('from a time when it had the partition before is taken back first: %s', async ([instance, times]) => {
    await using setup = await working()
    const state = await setup.stored()
    setup.instead.load = async (...args) => {
      const now = await setup.world.store.subscriptions.load(...args)
      return { ...state, ...now, trials: [{ position: 0, instance }] }
    }
    await setup.run(100)
    expect(acquittals(setup)).toBe(times)
  })
})

describe('what it knows of its source', () => {
  it.for([
    ['waits at a gap of one that may repeat and reorder', 'unordered', 0, 'waiting'],
    ['does not where it began in the middle, and the first is not the first', 'unordered', 1, undefined],
    ['waits for nothing where nobody counts', 'none', 0, undefined],
  ] as const)('%s', async ([, versions, start, status]) => {
    const source = { ...createScriptedSource(), versions } as ReturnType<typeof createScriptedSource>
    await using setup = await working({ source, start })
    for (const version of [2, 3, 4])
      source.deliver({ key: 'a', type: 'Credited', data: { amount: 1 }, ...(versions === 'unordered' && { version }) })
    await setup.run(100)
    const [hold] = await setup.held()
    expect([hold?.status, (await setup.stored()).checkpoint.position]).toEqual([status, 3])
  })

  it('says of what it holds whether the log has it as well', async () => {
    const poison = { type: 'Debited', data: { amount: 1 } } as const
    const letterOf = async (given: Given, append: (setup: Awaited<ReturnType<typeof working>>) => unknown) => {
      await using setup = await working(given)
      await append(setup)
      await setup.run(100)
      return (await setup.world.store.letters.list({ subscription: setup.name }))[0]
    }
    const source = createScriptedSource()
    source.deliver({ key: 'a', version: 1, ...poison })
    const keyed = defineProjection('keyed', { ...parking, key: () => 'one' })
    expect(await letterOf({ consumer: parks }, ({ log }) => log.append('a', [poison]))).toMatchObject({ logged: true })
    expect(await letterOf({ consumer: parks, source }, () => undefined)).toMatchObject({ logged: false })
    expect(await letterOf({ consumer: keyed }, ({ log }) => log.append('a', [poison]))).toMatchObject({ logged: false })
  })
})
