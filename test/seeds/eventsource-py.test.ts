import { describe, expect, it } from 'vitest'
import {
  classify,
  createLog,
  definePolicy,
  type Engine,
  failure,
  type FailureClass,
  fixed,
  park,
  retry,
} from '../../src/index.ts'
import { balances, bank, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import { away, type Call, type Fault, faulty, fill, keysOf, noting, unreachable } from '../noting.ts'
import { nothingIsLostBehindABreaker, patientPolicy, swallowingBreaker, theOrderOfAKeyIsKept } from './checks.ts'
import { type Consume, holdfast, lostBy, pass } from './consume.ts'
import { each, naive, read } from './naive.ts'

describe('silent mass loss behind an open breaker', () => {
  it('does not happen', async () => expect(await nothingIsLostBehindABreaker(holdfast)).toEqual([]))

  it('is found where an open breaker counts as an error like any other, and errors are passed over', async () => {
    expect(await nothingIsLostBehindABreaker(swallowingBreaker())).toEqual([
      '100 of 100 events are neither done nor kept',
    ])
  })
})

describe('callbacks, classes and dead letters that nobody calls', () => {
  async function whatIsDeclaredIsUsed(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const used = { onError: false, rule: false }
    const { handler } = noting(world, () => Promise.reject(new Error('declined')), {
      failure: definePolicy({
        rules: [
          () => {
            used.rule = true
            return 'permanent'
          },
        ],
      }),
      onError: () => void (used.onError = true),
    })
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 10_000)
    const letters = await consumer.letters()
    await consumer.stop()
    return [
      ...(used.onError ? [] : ['onError was never told']),
      ...(used.rule ? [] : ['the rule was never asked']),
      ...(letters.length === 1 ? [] : ['there is no letter']),
    ]
  }

  it('are none of ours', async () => expect(await whatIsDeclaredIsUsed(holdfast)).toEqual([]))

  it('are found where a loop takes them and never looks at them', async () => {
    const deaf = each(async (event, { handlers, call }) => {
      for (const handler of handlers) await call(handler, event).catch(() => undefined)
    })
    expect(await whatIsDeclaredIsUsed(deaf)).toEqual([
      'onError was never told',
      'the rule was never asked',
      'there is no letter',
    ])
  })
})

describe('live double delivery under concurrent savers', () => {
  async function eachIsDeliveredOnce(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    const { handler, calls } = noting(world, () => world.runtime.timers.sleep(10))
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 1_000)
    const log = createLog({ store: world.store, events: bank })
    // While one of them is being handled, the others are saved; each save is told.
    for (const key of keysOf(10)) await log.append(key, [credited(1)])
    await pass(world, 10_000)
    await consumer.stop()
    return calls.length === 10 ? [] : [`10 events were delivered ${calls.length} times`]
  }

  it('does not happen', async () => expect(await eachIsDeliveredOnce(holdfast)).toEqual([]))

  it('is found where every wake-up begins to read for itself', async () => {
    const unlocked = naive(async (tools) => {
      const drain = async () => {
        const { events } = await read(tools)
        for (const event of events) {
          for (const handler of tools.handlers) await tools.call(handler, event)
          tools.position = event.position
        }
      }
      tools.store.log.onAppend(() => void drain())
    })
    expect(await eachIsDeliveredOnce(unlocked)).toEqual([
      expect.stringMatching(/^10 events were delivered \d\d+ times$/),
    ])
  })
})

describe('a hot loop in an outage', () => {
  async function attemptsAreFew(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, keysOf(150), 1)
    const { handler, calls } = noting(world, () => Promise.reject(failure.transient('down')))
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 2_000)
    const attempts = calls.length
    await consumer.stop()
    return attempts < 100 ? [] : [`${attempts > 1_000 ? 'thousands' : attempts} of attempts in 2 s`]
  }

  it('does not happen', async () => expect(await attemptsAreFew(holdfast)).toEqual([]))

  it('is found where a page that failed is read again at once', async () => {
    const hot = naive(async (tools) => {
      while (!tools.isStopped()) {
        const { events } = await read(tools)
        for (const event of events)
          for (const handler of tools.handlers) await tools.call(handler, event).catch(() => undefined)
        await tools.world.runtime.timers.yield()
      }
    })
    expect(await attemptsAreFew(hot)).toEqual(['thousands of attempts in 2 s'])
  })
})

describe('a lost wake-up that is lost liveness', () => {
  async function whatNobodyAnnouncedIsFound(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    const { handler, calls } = noting(world)
    const { log } = world.store
    const store = { ...world.store, log: { ...log, onAppend: () => () => undefined } }
    const consumer = await consume({ world, handlers: [handler], store })
    await pass(world, 1_000)
    await fill(world, ['a', 'b', 'c'], 1)
    await pass(world, 1_000)
    await consumer.stop()
    return calls.length === 3 ? [] : [`${3 - calls.length} of 3 events were never seen`]
  }

  it('does not happen: what nobody announced is found by looking', async () => {
    expect(await whatNobodyAnnouncedIsFound(holdfast)).toEqual([])
  })

  it('is found where only the bus wakes', async () => {
    const sleepy = naive(async (tools) => {
      let isBusy = false
      const drain = async () => {
        if (isBusy) return
        isBusy = true
        for (const event of (await read(tools)).events) {
          for (const handler of tools.handlers) await tools.call(handler, event)
          tools.position = event.position
        }
        isBusy = false
      }
      tools.store.log.onAppend(() => void drain())
      await drain()
    })
    expect(await whatNobodyAnnouncedIsFound(sleepy)).toEqual(['3 of 3 events were never seen'])
  })
})

describe('a processing timeout that cancels the retry', () => {
  async function theRetryIsFinished(consume: Consume): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'c'], 1)
    const { handler, callsOf } = noting(
      world,
      ({ key }) => (key === 'b' ? Promise.reject(failure.transient('poison')) : undefined),
      // 0, 2 and 4 s: longer than an attempt may take.
      {
        failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false }),
        timeout: '3s',
      },
    )
    const consumer = await consume({ world, handlers: [handler] })
    await pass(world, 30_000)
    const letters = (await consumer.letters()).map(({ key }) => key)
    await consumer.stop()
    return [
      ...(callsOf('b').length === 3 ? [] : [`b was tried ${callsOf('b').length} times instead of 3`]),
      ...(letters.join() === 'b' ? [] : ['b is neither done nor kept']),
    ]
  }

  it('does not happen: the time is that of an attempt', async () =>
    expect(await theRetryIsFinished(holdfast)).toEqual([]))

  it('is found where the time is that of all attempts together', async () => {
    const timed = each(async (event, { handlers, call, keep, sleep }) => {
      let isLate = false
      const retrying = async () => {
        for (let tries = 1; !isLate; tries++) {
          try {
            for (const handler of handlers) await call(handler, event)
            return
          } catch {
            if (tries === 3) return keep(event)
            await sleep(2_000)
          }
        }
      }
      await Promise.race([retrying(), sleep(3_000).then(() => (isLate = true))])
    })
    expect(await theRetryIsFinished(timed)).toEqual(['b was tried 2 times instead of 3', 'b is neither done nor kept'])
  })
})

/** A projection of the bank: how it is run on a store whose commits fail as told, and the balance of `a` in the end. */
type Project = (world: World, fault: () => Fault) => Promise<{ readonly balance: number; readonly letters: number }>

const ourProjection: Project = async (world, fault) => {
  const engine = world.engine([balances], { store: faulty(world.store, fault) })
  await engine.start()
  await pass(world, 60_000)
  return { balance: await balanceOf(engine), letters: (await heldOf(engine)).length }
}

async function balanceOf(engine: Engine): Promise<number> {
  return (await engine.read(balances).get('a'))?.data.balance ?? 0
}

/** Applies in a transaction, writes the checkpoint in another one, and does both again if one of them fails. */
const twoTransactions: Project = async ({ store }, fault) => {
  let balance = 0
  let letters = 0
  for (const { body } of (await store.log.readAll(0, { events: 100, bytes: 2 ** 20 })).events) {
    for (let tries = 1; ; tries++) {
      balance += (JSON.parse(body as string) as { amount: number }).amount
      if (fault() === undefined) break
      if (tries < 3) continue
      letters++
      break
    }
  }
  return { balance, letters }
}

describe('a checkpoint that fails and re-applies the event', () => {
  async function theEventIsAppliedOnce(project: Project, kind: Fault): Promise<string[]> {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(100)])
    let failures = 0
    const { balance, letters } = await project(world, () => (failures++ < 3 ? kind : undefined))
    return [
      ...(balance === 100 ? [] : [`the balance is ${balance} instead of 100`]),
      ...(letters === 0 ? [] : ['an event that was applied is a dead letter']),
    ]
  }

  it.for(['before', 'after'] as const)('does not happen when it fails %s its effect', async (kind) => {
    expect(await theEventIsAppliedOnce(ourProjection, kind)).toEqual([])
  })

  it('is found where the two are two transactions', async () => {
    expect(await theEventIsAppliedOnce(twoTransactions, 'before')).toEqual([
      'the balance is 300 instead of 100',
      'an event that was applied is a dead letter',
    ])
  })
})

describe('severities that are compared as strings', () => {
  const byGravity: readonly FailureClass[] = ['transient', 'unknown', 'dependency', 'infrastructure', 'permanent']
  const said = (name: FailureClass) => Object.assign(new Error(name), { as: name })
  const rule = (error: unknown) => (error as { as?: FailureClass }).as

  /** Of two failures at once, which one counts. */
  function theGraverOneCounts(gravest: (classes: readonly FailureClass[]) => FailureClass): string[] {
    return byGravity.flatMap((graver, i) =>
      byGravity.slice(0, i).flatMap((lesser) =>
        [
          [graver, lesser],
          [lesser, graver],
        ]
          .filter((pair) => gravest(pair) !== graver)
          .map((pair) => `of ${pair.join(' and ')}, ${gravest(pair)} counts`),
      ),
    )
  }

  it('are none of ours: the order of classes is a list', () => {
    expect(theGraverOneCounts((classes) => classify(new AggregateError(classes.map(said)), [rule], 0).class)).toEqual(
      [],
    )
  })

  it('are found where the greater text wins', () => {
    const alphabetical = (classes: readonly FailureClass[]) => classes.toSorted().at(-1) as FailureClass
    expect(theGraverOneCounts(alphabetical)).toContain('of permanent and transient, transient counts')
  })
})

describe('a letter that could not be written and is lost (ADR-0004)', () => {
  async function nothingIsPassedWithoutItsLetter(consume: Consume, isDown: { value: boolean }): Promise<string[]> {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    const done: Call[] = []
    const { handler } = noting(world, (call) => {
      if (call.key === 'a') throw failure.permanent('never')
      done.push(call)
    })
    const { subscriptions } = world.store
    const store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        commit: (commit: Parameters<typeof subscriptions.commit>[0]) =>
          isDown.value && commit.held.length > 0 ? Promise.reject(away()) : subscriptions.commit(commit),
      },
    }
    const consumer = await consume({ world, handlers: [handler], store })
    await pass(world, 60_000)
    const during = await lostBy(world, consumer, done)
    isDown.value = false
    await pass(world, 60_000)
    const letters = await consumer.letters()
    await consumer.stop()
    return [
      ...during.map(({ key }) => `${key} was passed without a letter`),
      ...(letters.length === 1 ? [] : ['the letter was never written']),
    ]
  }

  it('does not happen: the checkpoint waits for it', async () => {
    expect(await nothingIsPassedWithoutItsLetter(holdfast, { value: true })).toEqual([])
  })

  it('is found where that is only logged', async () => {
    const isDown = { value: true }
    const careless = each(async (event, { handlers, call, keep }) => {
      try {
        for (const handler of handlers) await call(handler, event)
      } catch {
        // CRITICAL: the event may be lost.
        if (!isDown.value) keep(event)
      }
    })
    expect(await nothingIsPassedWithoutItsLetter(careless, isDown)).toEqual([
      'a was passed without a letter',
      'the letter was never written',
    ])
  })
})

describe('an effect and its checkpoint in two steps, with a crash between (ADR-0004)', () => {
  /** Runs until the process dies at a commit, and then again, as another process. */
  type CrashAndRun = (world: World, dies: 'before' | 'after') => Promise<number>

  const ours: CrashAndRun = async (world, dies) => {
    let isDead = false
    const dying = faulty(world.store, () => {
      isDead = true
      return dies
    })
    const first = world.engine([balances], { store: unreachable(dying, () => isDead), name: 'first' })
    await first.start()
    await pass(world, 30_000)
    const second = world.engine([balances], { name: 'second' })
    await second.start()
    await pass(world, 30_000)
    return balanceOf(second)
  }

  const twoSteps: CrashAndRun = async ({ store }, dies) => {
    const kept = { balance: 0, position: 0 }
    const process = async (crash: 'before' | 'after' | undefined) => {
      for (const { body, position } of (await store.log.readAll(kept.position, { events: 100, bytes: 2 ** 20 }))
        .events) {
        kept.balance += (JSON.parse(body as string) as { amount: number }).amount
        if (crash === 'before') return
        kept.position = position
        if (crash === 'after') return
      }
    }
    await process(dies)
    await process(undefined)
    return kept.balance
  }

  async function everyEventCountsOnce(crashAndRun: CrashAndRun, dies: 'before' | 'after'): Promise<string[]> {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(100), credited(10)])
    const balance = await crashAndRun(world, dies)
    return balance === 110 ? [] : [`the balance is ${balance} instead of 110`]
  }

  it.for(['before', 'after'] as const)('counts once, whether it dies %s the commit', async (dies) => {
    expect(await everyEventCountsOnce(ours, dies)).toEqual([])
  })

  it('counts twice where the checkpoint is a step of its own, and that is found', async () => {
    expect(await everyEventCountsOnce(twoSteps, 'before')).toEqual(['the balance is 210 instead of 110'])
  })
})

describe('the rest of an aggregate that goes on without the event that failed (ADR-0004)', () => {
  it('waits behind it', async () => expect(await theOrderOfAKeyIsKept(holdfast)).toEqual([]))

  it('is found where a dead letter is put aside and the rest is applied on the hole', async () => {
    const holed = each(async (event, { handlers, call, keep }) => {
      for (const handler of handlers) await call(handler, event).catch(() => keep(event))
    })
    expect(await theOrderOfAKeyIsKept(holed)).toEqual(['the events of a were done in the order 1,3'])
  })

  it('is held as it came, and nothing of it is done, where the event is parked', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    const { handler, callsOf } = noting(
      world,
      ({ amount }) => (amount === 2 ? Promise.reject(failure.permanent('never')) : undefined),
      { failure: patientPolicy },
    )
    const consumer = await holdfast({ world, handlers: [handler] })
    await pass(world, 10_000)
    expect(callsOf('a')).toEqual([1, 2])
    expect((await consumer.letters()).map(({ version }) => version)).toEqual([2, 3])
  })
})
