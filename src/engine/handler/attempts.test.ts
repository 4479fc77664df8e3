import { describe, expect, it } from 'vitest'
import { createDeskOf, type DeskSetup, heldLane, letterOf } from '../../../test/handler-state.ts'
import { definePolicy, type Event, failure, fixed, type HandlerContext, park, retry } from '../../index.ts'
import type { Commit } from '../../subscription/subscription-store.ts'
import { TokenBucket } from '../held/token-bucket.ts'
import { Suspicion } from '../crash/suspicion.ts'
import { Attempts } from './attempts.ts'
import type { HandlerState } from './handler-state.ts'
import { HeldLaneDrain } from './held-lane-drain.ts'
import { type Entry, entryOf, notSubscribed } from './entry.ts'
import { Suspects } from './suspects.ts'
import { Verdicts } from './verdicts.ts'

const slow = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false })

/** One retry in a while. */
const scarce = definePolicy({
  transient: retry({ attempts: 3, backoff: fixed('2s') }),
  budget: { retries: 1, per: '10s' },
  outage: false,
})

interface Call {
  readonly event: Event
  readonly ctx: HandlerContext
  readonly end: (error?: unknown) => void
}

/** One begins that does not end: whether another may be alone in the process all the same. */
const mayBeAloneBesideAnother = ({ exclusiveRun }: HandlerState['parts']) => {
  exclusiveRun.begin({ wake: () => undefined })
  return exclusiveRun.enter({ wake: () => undefined })
}

/** A handler of which each call ends when the test says so. */
function trying(setup: DeskSetup = {}, change: (handlerState: HandlerState) => Partial<HandlerState> = () => ({})) {
  const calls: Call[] = []
  const made = createDeskOf({
    ...setup,
    definition: {
      failure: slow,
      timeout: '1m',
      ...setup.definition,
      on: {
        Credited: (event, ctx) =>
          new Promise((resolve, reject) => {
            calls.push({ event, ctx, end: (error) => (error === undefined ? resolve(undefined) : reject(error)) })
          }),
      },
    },
  })
  const handlerState: HandlerState = { ...made.handlerState, ...change(made.handlerState) }
  let over = 0
  const verdicts = new Verdicts(handlerState, new HeldLaneDrain(handlerState), () => undefined)
  const attempts = new Attempts(handlerState, verdicts, () => over++)
  const live = (lane: string, ...positions: number[]): Entry[] => {
    const entries = positions.map((position) => entryOf(handlerState, letterOf(lane, position).event))
    handlerState.window.add(entries, Math.max(...positions))
    for (const entry of entries) handlerState.tracks.add(lane, entry)
    return entries
  }
  const beginWindow = (position: number) => handlerState.beginWindow.extend(position, position, made.now())
  const turn = () => made.runtime.advance(0)
  const called = () => calls.map(({ event }) => event.id)
  /** The one that is to be tried alone is recorded, and begins. */
  const record = async () => {
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    attempts.pump()
    await turn()
  }
  return { ...made, handlerState, attempts, calls, live, beginWindow, turn, called, record, over: () => over }
}

describe('what may be begun', () => {
  it('is one of each lane, as many as there is room for, and the next when one is over', async () => {
    const { attempts, live, beginWindow, turn, called, calls, over, handlerState } = trying({
      definition: { concurrency: 2 },
    })
    for (const lane of ['a', 'b', 'c']) live(lane, ...(lane === 'a' ? [1, 2] : lane === 'b' ? [3] : [4]))
    beginWindow(9)
    expect(attempts.room).toBe(2)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'b-3'])
    expect([attempts.room, handlerState.running.size]).toEqual([0, 2])
    calls[0]?.end()
    await turn()
    expect(called()).toEqual(['a-1', 'b-3', 'c-4'])
    expect([over(), handlerState.ledger.take().counts.applied]).toEqual([1, 1])
    calls[1]?.end()
    await turn()
    expect(called()).toEqual(['a-1', 'b-3', 'c-4', 'a-2'])
  })

  it('is what a commit has said, and nothing beyond it', async () => {
    const { attempts, live, beginWindow, turn, called } = trying()
    live('a', 1)
    live('b', 2)
    expect([attempts.isBarred, attempts.isTurnedAway]).toEqual([false, false])
    attempts.pump()
    await turn()
    expect([called(), attempts.isBarred]).toEqual([[], true])
    beginWindow(1)
    attempts.pump()
    await turn()
    expect([called(), attempts.isBarred]).toEqual([['a-1'], true])
    beginWindow(2)
    attempts.pump()
    await turn()
    expect([called(), attempts.isBarred]).toEqual([['a-1', 'b-2'], false])
  })

  it.for(['isOver', 'a pause', 'no lease'] as const)('is nothing any more: %s', async (why) => {
    const { attempts, live, beginWindow, turn, called, handlerState, script } = trying()
    live('a', 1)
    beginWindow(1)
    if (why === 'isOver') handlerState.isOver = true
    if (why === 'a pause') handlerState.parts.ownership.pause = { reason: 'a test', at: 0 }
    if (why === 'no lease') script.isOwner = false
    attempts.pump()
    await turn()
    expect(called()).toEqual([])
  })

  it('is nothing while others want to be alone in the process, and then it is woken', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState, told } = trying()
    const { exclusiveRun } = handlerState.parts
    const other = { wake: () => undefined }
    exclusiveRun.enter(other)
    live('a', 1)
    beginWindow(1)
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([[], true])
    exclusiveRun.leave(other)
    expect(told.wake).toBe(1)
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([['a-1'], false])
  })
})

describe('who is turned away', () => {
  it('keeps its place: those that were alone, and want to be again, come after it', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState } = trying()
    const { exclusiveRun } = handlerState.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    exclusiveRun.enter(one)
    live('a', 1)
    beginWindow(1)
    attempts.pump()
    expect(exclusiveRun.enter(another)).toBe(false)
    exclusiveRun.leave(one)
    expect([exclusiveRun.enter(one), exclusiveRun.enter(another)]).toEqual([false, false])
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([['a-1'], false])
    calls[0]?.end()
    await turn()
    expect(exclusiveRun.enter(another)).toBe(true)
  })

  it('spends nothing of what retries may cost on asking for its turn', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState, runtime } = trying({
      definition: { failure: scarce },
    })
    const { exclusiveRun } = handlerState.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    exclusiveRun.enter(one)
    for (const entry of live('a', 1)) entry.tries = 1
    beginWindow(1)
    attempts.pump()
    exclusiveRun.enter(another)
    await runtime.advance(1_000)
    exclusiveRun.leave(one)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
  })

  it('runs beside nobody when it may not begin yet after all', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = trying({ definition: { failure: scarce } })
    for (const entry of [...live('a', 1), ...live('b', 2)]) entry.tries = 1
    beginWindow(9)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
    attempts.abandon()
    expect(handlerState.parts.exclusiveRun.enter({ wake: () => undefined })).toBe(true)
  })

  it.for(['it is paused', 'there is nothing left to begin'] as const)('has none any more when %s', async (why) => {
    const { attempts, live, beginWindow, handlerState } = trying()
    const { exclusiveRun } = handlerState.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    exclusiveRun.enter(one)
    live('a', 1)
    beginWindow(1)
    attempts.pump()
    exclusiveRun.enter(another)
    exclusiveRun.leave(one)
    expect(exclusiveRun.enter(another)).toBe(false)
    if (why === 'it is paused') handlerState.parts.ownership.pause = { reason: 'a test', at: 0 }
    else handlerState.tracks.clear(handlerState.tracks.get('a') as never)
    attempts.pump()
    expect(exclusiveRun.enter(another)).toBe(true)
  })
})

describe('what the handler is given', () => {
  it('says which attempt it is, until when, and by which key', async () => {
    const { attempts, live, beginWindow, turn, calls, runtime } = trying()
    const [entry] = live('a', 1)
    if (entry) entry.begun = 4
    beginWindow(1)
    attempts.pump()
    await turn()
    expect(calls[0]?.ctx).toMatchObject({
      subscription: 'notify',
      attempt: 5,
      idempotencyKey: 'notify/a-1',
      deadline: runtime.clock.now() + 60_000,
      dryRun: false,
    })
    expect(await calls[0]?.ctx.effect('mail', () => 7)).toBe(7)
    expect(calls[0]?.ctx.signal.aborted).toBe(false)
  })

  it('is read anew for each attempt, whatever it made of it', async () => {
    const { attempts, live, beginWindow, turn, calls, runtime } = trying({
      definition: {
        failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('1ms') }), outage: false }),
      },
    })
    live('a', 1)
    beginWindow(1)
    attempts.pump()
    await turn()
    Object.assign(calls[0]?.event.data as object, { amount: 'spoilt' })
    calls[0]?.end(failure.transient('not now'))
    await runtime.advance(1)
    attempts.pump()
    await turn()
    expect(calls[1]?.event.data).toEqual({ amount: 1 })
  })

  it('is given up when its time is up', async () => {
    const { attempts, live, beginWindow, turn, calls, runtime, handlerState } = trying()
    live('a', 1)
    beginWindow(1)
    attempts.pump()
    await turn()
    const { signal } = calls[0]?.ctx ?? {}
    await runtime.advance(60_000)
    expect(signal?.aborted).toBe(true)
    expect([handlerState.running.size, handlerState.partition.held.get('a')?.status]).toEqual([0, 'retrying'])
  })

  it('is nothing where it was done before, can not be read, or has no function', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = trying({ definition: { dedupe: { by: 'id' } } })
    const [done] = live('a', 1)
    const event = { id: 'a-1' } as Event
    await handlerState.dedup?.isDone(event)
    handlerState.dedup?.end(event, true)
    for (const [lane, record] of [
      ['b', { body: 'no JSON' }],
      ['c', { type: 'Strange' }],
    ] as const) {
      const letter = { ...letterOf(lane, 2).event, ...record }
      handlerState.tracks.add(lane, entryOf(handlerState, letter))
    }
    beginWindow(9)
    attempts.pump()
    await turn()
    await turn()
    expect(done?.isDone).toBe(true)
    expect(called()).toEqual([])
    const { counts, held } = handlerState.ledger.take()
    expect(counts).toMatchObject({ duplicate: 1, held: 2 })
    expect(held).toMatchObject([
      { lane: 'b', status: 'parked', failure: { rule: 'read' } },
      { lane: 'c', status: 'parked', failure: notSubscribed },
    ])
  })
})

describe('what goes wrong around the handler', () => {
  it('is a failure of the event: the function that says what is the same throws', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = trying({
      definition: {
        dedupe: {
          by: () => {
            throw failure.permanent('no key')
          },
        },
      },
    })
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect([called(), handlerState.running.size]).toEqual([[], 0])
    expect(handlerState.ledger.take().held).toMatchObject([{ status: 'parked', failure: { message: 'no key' } }])
  })

  it('is told where an outcome can not be taken, and others go on', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState, logged, over } = trying({
      definition: { concurrency: 1 },
    })
    live('a', 1)
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    await turn()
    handlerState.ledger.applied = () => {
      throw new Error('The test took the ledger away.')
    }
    calls[0]?.end()
    await turn()
    expect([called(), over(), logged]).toEqual([
      ['a-1', 'b-2'],
      1,
      ['the outcome of an attempt could not be processed'],
    ])
  })

  it('is nothing for one of the same kind, which waits until the other is over', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState } = trying({
      definition: { dedupe: { by: () => 'same' } },
    })
    live('a', 1)
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect([called(), handlerState.running.size]).toEqual([['a-1'], 2])
    calls[0]?.end()
    await turn()
    expect([called(), handlerState.ledger.take().counts]).toMatchObject([['a-1'], { applied: 1, duplicate: 1 }])
  })
})

describe('a breaker that is open', () => {
  const event = { id: 'x', key: 'a', data: {} } as Event

  it('defers what would be begun, and lets another of the same kind be done', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = trying({
      definition: { breaker: { opens: { failures: 1 }, key: ({ key }) => key }, dedupe: { by: () => 'same' } },
    })
    handlerState.waits.report('a', await handlerState.waits.enter(event), false)
    await turn()
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect([called(), handlerState.running.size]).toEqual([[], 0])
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'waiting', breaker: 'notify:a' })
    live('b', 2)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['b-2'])
  })

  it('can not be told: the event is held, and another of the same kind may be done', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = trying({
      definition: {
        breaker: { opens: { failures: 1 }, key: ({ key }) => (key === 'a' ? '' : key) },
        dedupe: { by: () => 'same' },
      },
    })
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect([called(), handlerState.partition.held.get('a')?.status]).toEqual([[], 'parked'])
    live('b', 2)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['b-2'])
  })
})

describe('a probe of a breaker', () => {
  it('is given back by an attempt that nobody waits for any more', async () => {
    const { attempts, live, beginWindow, turn, calls, handlerState, runtime } = trying({
      definition: { breaker: { opens: { failures: 1 }, cooldown: '1s' }, dedupe: { by: () => 'same' } },
    })
    const event = { id: 'x', key: 'a', data: {} } as Event
    handlerState.waits.report('a', await handlerState.waits.enter(event), false)
    await runtime.advance(1_000)
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect(calls).toHaveLength(1)
    expect((await handlerState.waits.enter(event)).entry).toBe('open')
    attempts.abandon()
    await turn()
    expect((await handlerState.waits.enter(event)).entry).toBe('probe')
    expect(await handlerState.dedup?.isDone(event)).toBe(false)
  })

  it('is given back, and nothing is begun, where the partition is given away while it is asked for', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState, runtime } = trying({
      definition: { breaker: { opens: { failures: 1 }, cooldown: '1s' }, dedupe: { by: () => 'same' } },
    })
    const event = { id: 'x', key: 'a', data: {} } as Event
    handlerState.waits.report('a', await handlerState.waits.enter(event), false)
    await runtime.advance(1_000)
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    attempts.abandon()
    await turn()
    expect(called()).toEqual([])
    expect((await handlerState.waits.enter(event)).entry).toBe('probe')
    expect(await handlerState.dedup?.isDone(event)).toBe(false)
  })
})

describe('an attempt that had to wait before it could begin', () => {
  const guarded: DeskSetup = {
    definition: { breaker: { opens: { failures: 1 }, cooldown: '1s' }, dedupe: { by: () => 'same' } },
  }

  it.for(['a pause', 'no lease', 'the end'] as const)('is not begun any more: %s', async (why) => {
    const { attempts, live, beginWindow, turn, called, handlerState, script, runtime, over } = trying(guarded)
    const event = { id: 'x', key: 'a', data: {} } as Event
    handlerState.waits.report('a', await handlerState.waits.enter(event), false)
    await runtime.advance(1_000)
    const [entry] = live('a', 1)
    beginWindow(9)
    attempts.pump()
    if (why === 'a pause') handlerState.parts.ownership.pause = { reason: 'a test', at: 0 }
    if (why === 'no lease') script.isOwner = false
    if (why === 'the end') handlerState.isOver = true
    await turn()
    expect([called(), handlerState.running.size, over()]).toEqual([[], 0, 1])
    // Nothing counts, the probe is another one's, and so is what it would have done.
    expect([entry?.isDone, entry?.begun, entry?.tries]).toEqual([false, 0, 0])
    expect(handlerState.ledger.isEmpty).toBe(true)
    expect((await handlerState.waits.enter(event)).entry).toBe('probe')
    expect(await handlerState.dedup?.isDone(event)).toBe(false)
  })

  it('begins in its turn when the partition is certainly its own again', async () => {
    const { attempts, live, beginWindow, turn, called, calls, script } = trying(guarded)
    live('a', 1, 2)
    beginWindow(9)
    attempts.pump()
    script.isOwner = false
    await turn()
    expect(called()).toEqual([])
    script.isOwner = true
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
    expect(calls[0]?.ctx.attempt).toBe(1)
  })

  it('and that was to be tried alone is on trial no more', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState, script } = trying(guarded, ({ partition }) => ({
      suspicion: new Suspicion([{ position: 0, instance: 'dead' }], true, 'i', 3),
      suspects: new Suspects(9, partition.held, 0),
    }))
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    expect(handlerState.suspicion.trying).toBe(1)
    attempts.pump()
    script.isOwner = false
    await turn()
    expect(called()).toEqual([])
    expect(handlerState.ledger.take()).toMatchObject({ acquitted: 'i', endedTrials: [] })
  })
})

describe('a letter', () => {
  const asLetter = (handlerState: HandlerState, lane: string, position: number, tries = 0) => {
    const entry: Entry = { ...entryOf(handlerState, letterOf(lane, position).event), isLetter: true, tries }
    handlerState.tracks.add(lane, entry)
    return entry
  }

  it('needs no word of a commit, and goes as fast as its redrive may', async () => {
    const pace = new TokenBucket(2, 0)
    const { attempts, turn, called, handlerState, runtime } = trying(
      { held: ['a', 'b'].map((lane) => heldLane(lane, { redrive: 'r' })) },
      () => ({ redriving: { paceOf: (id?: string) => (id === 'r' ? pace : undefined) } as HandlerState['redriving'] }),
    )
    for (const lane of ['a', 'b']) asLetter(handlerState, lane, 1)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
    expect(handlerState.tracks.nextAt()).toBe(500)
    await runtime.advance(499)
    attempts.pump()
    expect(called()).toHaveLength(1)
    await runtime.advance(1)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'b-1'])
  })

  it('that is tried again waits for its turn in the budget, the first attempt does not', async () => {
    const { attempts, turn, called, handlerState, now } = trying({
      held: ['a', 'b', 'c'].map((lane) => heldLane(lane)),
      definition: {
        failure: scarce,
      },
    })
    asLetter(handlerState, 'a', 1, 1)
    asLetter(handlerState, 'b', 1, 1)
    asLetter(handlerState, 'c', 1, 0)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'c-1'])
    expect(handlerState.tracks.nextAt()).toBeGreaterThan(now())
  })
})

describe('a letter of a redrive', () => {
  it('that has to wait for its turn in the budget costs its redrive nothing', async () => {
    let taken = 0
    const pace = { waitMs: () => 0, take: (count: number) => (taken += count) } as unknown as TokenBucket
    const { attempts, turn, called, handlerState } = trying(
      { held: ['a', 'b'].map((lane) => heldLane(lane, { redrive: 'r' })), definition: { failure: scarce } },
      () => ({ redriving: { paceOf: () => pace } as unknown as HandlerState['redriving'] }),
    )
    for (const lane of ['a', 'b'])
      handlerState.tracks.add(lane, { ...entryOf(handlerState, letterOf(lane, 1).event), isLetter: true, tries: 1 })
    attempts.pump()
    await turn()
    expect([called(), taken]).toEqual([['a-1'], 1])
  })
})

describe('while everything stands still', () => {
  it('and nothing is there, nobody is the probe', () => {
    const { attempts, handlerState } = trying()
    handlerState.flow.stand('outage', undefined, fixed('1s'), 3, 0)
    attempts.pump()
    expect(handlerState.running.size).toBe(0)
  })

  async function probes(lanes: readonly string[], times: number): Promise<string[]> {
    const { attempts, live, beginWindow, turn, calls, called, handlerState, runtime } = trying()
    for (const [i, lane] of lanes.entries()) live(lane, i + 1)
    beginWindow(9)
    handlerState.flow.stand('outage', undefined, fixed('1s'), 3, 0)
    for (let i = 0; i < times; i++) {
      beginWindow(9)
      attempts.pump()
      await turn()
      expect(called()).toHaveLength(i + 1)
      calls.at(-1)?.end(failure.transient('down'))
      await turn()
      await runtime.advance(1_000)
    }
    return called()
  }

  it('one is a sample, and not the same lane twice if there are others', async () => {
    const two = await probes(['a', 'b'], 12)
    for (const [i, id] of two.entries()) expect(id).not.toBe(two[i - 1])
    expect(await probes(['a'], 2)).toEqual(['a-1', 'a-1'])
    const four = await probes(['a', 'b', 'c', 'd'], 24)
    expect(new Set(four).size).toBe(4)
    // By chance, and not in turn.
    expect(new Set(four.map((id, i) => `${four[i - 1]} ${id}`)).size).toBeGreaterThan(6)
  })

  it('one is the first of all where the policy stands still at one event', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = trying()
    for (const [lane, position] of [
      ['b', 5],
      ['a', 2],
      ['c', 3],
    ] as const)
      live(lane, position)
    beginWindow(9)
    handlerState.flow.stand('block', undefined, fixed('1s'), 0, 0)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-2'])
  })
})

describe('after a death', () => {
  const suspected = (setup: DeskSetup = {}) =>
    trying(setup, (handlerState) => ({
      suspicion: new Suspicion([{ position: 0, instance: 'dead' }], true, 'i', 3),
      suspects: new Suspects(2, handlerState.partition.held, 0),
    }))

  it('each that may have killed is tried alone, recorded before, in order', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState } = suspected()
    live('b', 2)
    live('a', 1)
    live('c', 3)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect([called(), attempts.wanted]).toEqual([[], { position: 1, instance: 'i' }])
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    expect(attempts.wanted).toBeUndefined()
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([['a-1'], true])
    const other = { wake: () => undefined }
    expect(handlerState.parts.exclusiveRun.begin(other)).toBe(false)
    handlerState.parts.exclusiveRun.leave(other)
    calls[0]?.end()
    await turn()
    expect(handlerState.ledger.take()).toMatchObject({ counts: { applied: 1 }, endedTrials: [1] })
    expect(attempts.wanted).toEqual({ position: 2, instance: 'i' })
    // Until the store has that it is over, a death would still be laid at its door.
    expect(handlerState.parts.exclusiveRun.begin(other)).toBe(false)
    attempts.committed({ endedTrials: [1], trial: { position: 2, instance: 'i' } } as never)
    expect(handlerState.parts.exclusiveRun.begin(other)).toBe(false)
  })

  it('what is wanted stays so until a commit has it', async () => {
    const { attempts, live, beginWindow, handlerState, runtime } = suspected()
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    const wanted = { position: 1, instance: 'i' }
    attempts.committed({} as never)
    expect(attempts.wanted).toEqual(wanted)
    // However long it takes, and whatever else is to be committed: nobody else is on trial that others could wait for.
    handlerState.ledger.duplicate()
    await runtime.advance(300)
    attempts.pump()
    expect(attempts.wanted).toEqual(wanted)
  })

  it('nobody is alone while the source is asked, but who is on record goes on', async () => {
    const { attempts, live, beginWindow, turn, called } = suspected()
    live('a', 1)
    beginWindow(9)
    attempts.reads()
    attempts.pump()
    expect([attempts.wanted, attempts.isTurnedAway]).toEqual([undefined, true])
    attempts.hasRead()
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    attempts.reads()
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
  })

  it('who is on record is before all others, also when they come before it', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState, now } = suspected()
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    live('a', 1)
    handlerState.tracks.postpone(handlerState.tracks.get('b') as never, now())
    attempts.pump()
    await turn()
    expect(called()).toEqual(['b-2'])
  })

  it('a suspect is before a letter that nobody had begun', () => {
    const { attempts, live, beginWindow, handlerState } = suspected({ held: [heldLane('z', { status: 'parked' })] })
    handlerState.tracks.add('z', { ...entryOf(handlerState, letterOf('z', 1).event), isLetter: true })
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    expect([attempts.wanted, handlerState.running.size]).toEqual([{ position: 2, instance: 'i' }, 0])
  })

  it('a probe is anybody’s, unless one is on record', async () => {
    const probed = async (isOnRecord: boolean, chance: number) => {
      const { attempts, live, beginWindow, turn, called, handlerState, runtime } = suspected()
      live('a', 1)
      beginWindow(99)
      attempts.pump()
      if (isOnRecord) attempts.committed({ trial: attempts.wanted } as Commit)
      for (let i = 0; i < 8; i++) live(`other-${i}`, 10 + i)
      handlerState.flow.stand('outage', undefined, fixed('1s'), 3, 0)
      for (let i = 0; i < chance; i++) runtime.random.u32()
      attempts.pump()
      await turn()
      return called()[0]
    }
    for (let chance = 0; chance < 8; chance++) expect(await probed(true, chance)).toBe('a-1')
    const anybody = new Set<string | undefined>()
    for (let chance = 0; chance < 8; chance++) anybody.add(await probed(false, chance))
    anybody.delete(undefined)
    expect(anybody.size).toBeGreaterThan(1)
  })

  it('who waits keeps its place, though something else is committed meanwhile', () => {
    const { attempts, live, beginWindow, handlerState } = suspected()
    const { exclusiveRun } = handlerState.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    exclusiveRun.enter(one)
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    expect(exclusiveRun.enter(another)).toBe(false)
    attempts.committed({} as never)
    exclusiveRun.leave(one)
    expect(exclusiveRun.enter(another)).toBe(false)
    attempts.pump()
    expect(attempts.wanted).toEqual({ position: 1, instance: 'i' })
  })

  it('whoever is alone stays so when that is recorded, whoever waits for it', () => {
    const { attempts, live, beginWindow, handlerState } = suspected()
    const { exclusiveRun } = handlerState.parts
    const other = { wake: () => undefined }
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    expect(exclusiveRun.begin(other)).toBe(false)
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    expect(exclusiveRun.begin(other)).toBe(false)
  })

  it('the next is recorded though others wait, if the one on record is there no more', async () => {
    const { attempts, live, beginWindow, handlerState, runtime } = suspected()
    live('a', 1)
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    handlerState.parts.exclusiveRun.begin({ wake: () => undefined })
    handlerState.tracks.clear(handlerState.tracks.get('a') as never)
    await runtime.advance(250)
    attempts.pump()
    expect([attempts.wanted, attempts.isTurnedAway]).toEqual([{ position: 2, instance: 'i' }, false])
  })

  it('others in the process have their turn before the next of them', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState, runtime } = suspected()
    const { exclusiveRun } = handlerState.parts
    const other = { wake: () => undefined }
    live('a', 1)
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    expect(exclusiveRun.begin(other)).toBe(false)
    // A quick one would be followed by the next at once.
    await runtime.advance(250)
    calls[0]?.end()
    await turn()
    expect([attempts.wanted, attempts.isTurnedAway]).toEqual([undefined, true])
    attempts.committed({ endedTrials: [1] } as never)
    attempts.pump()
    expect([attempts.wanted, attempts.isTurnedAway, exclusiveRun.begin(other)]).toEqual([undefined, true, true])
    exclusiveRun.leave(other)
    exclusiveRun.end()
    attempts.pump()
    expect(attempts.isTurnedAway).toBe(true)
    // As long as it was alone, others may run.
    await runtime.advance(250)
    attempts.pump()
    await turn()
    expect([attempts.wanted, called()]).toEqual([{ position: 2, instance: 'i' }, ['a-1']])
  })

  it('others in the process go on when the last of them is through', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState } = suspected()
    live('a', 1)
    live('c', 3)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    calls[0]?.end()
    await turn()
    // Until the store has that it is over, nothing runs beside it, not even of its own handler.
    expect([called(), attempts.isTurnedAway]).toEqual([['a-1'], true])
    attempts.committed({ endedTrials: [1] } as never)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'c-3'])
    expect(handlerState.parts.exclusiveRun.begin({ wake: () => undefined })).toBe(true)
    handlerState.parts.exclusiveRun.end()
    calls[1]?.end()
    await turn()
    expect(mayBeAloneBesideAnother(handlerState.parts)).toBe(false)
  })

  it('one that has to wait for its turn in the budget is on trial no more, and others go on', async () => {
    const { attempts, live, beginWindow, turn, called, calls, handlerState } = suspected({
      definition: {
        failure: scarce,
      },
    })
    for (const entry of [...live('a', 1), ...live('b', 2)]) entry.tries = 1
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    calls[0]?.end()
    await turn()
    expect(handlerState.ledger.take().endedTrials).toEqual([1])
    attempts.committed({ endedTrials: [1] } as never)
    attempts.pump()
    attempts.committed({ trial: { position: 2, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    expect([called(), handlerState.ledger.take()]).toMatchObject([['a-1'], { acquitted: 'i', endedTrials: [] }])
    attempts.committed({ acquitted: 'i' } as never)
    attempts.pump()
    expect(handlerState.parts.exclusiveRun.begin({ wake: () => undefined })).toBe(true)
    handlerState.parts.exclusiveRun.end()
    expect(mayBeAloneBesideAnother(handlerState.parts)).toBe(false)
  })

  describe('those that are followed', () => {
    /** They failed before, and are tried again; everything else goes as always. */
    const following = (...positions: number[]) =>
      trying({}, (handlerState) => ({
        suspicion: new Suspicion(
          positions.map((position) => ({ position, instance: 'dead' })),
          false,
          'i',
          9,
          new Set(positions),
        ),
        suspects: new Suspects(0, handlerState.partition.held, 0),
      }))

    it('are before all others when they are on record', async () => {
      const { attempts, live, beginWindow, turn, called, handlerState, now } = following(2)
      live('b', 2)
      beginWindow(9)
      attempts.committed({} as never)
      attempts.pump()
      expect(attempts.wanted).toEqual({ position: 2, instance: 'i' })
      attempts.committed({ trial: attempts.wanted } as Commit)
      live('a', 1)
      handlerState.tracks.postpone(handlerState.tracks.get('b') as never, now())
      attempts.pump()
      await turn()
      expect(called()).toEqual(['b-2'])
    })

    it('let others, and then the source, have their turn before the next of them', async () => {
      const { attempts, live, beginWindow, turn, called, calls, record } = following(1, 2)
      live('a', 1)
      live('b', 2)
      live('c', 3)
      beginWindow(9)
      await record()
      calls[0]?.end()
      await turn()
      expect([called(), attempts.wanted]).toEqual([['a-1'], undefined])
      attempts.committed({ endedTrials: [1] } as never)
      attempts.pump()
      await turn()
      expect(called()).toEqual(['a-1', 'c-3'])
      calls[1]?.end()
      await turn()
      expect([attempts.wanted, attempts.isTurnedAway]).toEqual([undefined, false])
      attempts.hasRead()
      attempts.pump()
      expect(attempts.wanted).toEqual({ position: 2, instance: 'i' })
    })
  })

  it('others in the process go on when the partition is somebody else’s', async () => {
    const { attempts, live, beginWindow, turn, handlerState } = suspected()
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    attempts.abandon()
    expect(handlerState.parts.exclusiveRun.begin({ wake: () => undefined })).toBe(true)
  })

  describe('one that processes died over', () => {
    const trials = [{ position: 1, instance: 'dead' }]
    function accused() {
      const made = trying({}, (handlerState) => ({
        suspicion: new Suspicion(trials, true, 'i', 2),
        suspects: new Suspects(2, handlerState.partition.held, 0),
      }))
      made.live('a', 1)
      made.beginWindow(9)
      made.attempts.pump()
      return made
    }

    it('is the only reason to ask the store', async () => {
      const { attempts, script } = trying()
      script.isDown = true
      await attempts.recall()
      expect(attempts.isAccusing).toBe(false)
    })

    it('is parked when the store has said that they died, and nobody tries it', async () => {
      const { attempts, script, turn, called, handlerState } = accused()
      await turn()
      expect([attempts.isAccusing, handlerState.partition.held.size]).toEqual([true, 0])
      script.trials = trials
      await attempts.recall()
      await turn()
      expect(attempts.isAccusing).toBe(false)
      expect([called(), handlerState.partition.held.get('a')?.status]).toEqual([[], 'parked'])
      expect(handlerState.ledger.take().held).toMatchObject([{ failure: { rule: 'crash' } }])
      expect(handlerState.parts.exclusiveRun.begin({ wake: () => undefined })).toBe(true)
    })

    it('is to be tried, and recorded first, when they live', async () => {
      const { attempts, turn, called, handlerState } = accused()
      await attempts.recall()
      await turn()
      expect([attempts.isAccusing, attempts.wanted, called()]).toEqual([false, { position: 1, instance: 'i' }, []])
      expect(handlerState.partition.held.size).toBe(0)
    })

    it('keeps nobody waiting when nothing is to begin any more', () => {
      const { attempts, handlerState } = accused()
      const isFree = () => handlerState.parts.exclusiveRun.begin({ wake: () => undefined })
      expect([attempts.isAccusing, isFree()]).toEqual([true, false])
      attempts.suspend()
      expect([attempts.isAccusing, isFree()]).toEqual([false, true])
    })

    it('is neither while the store does not say, and is asked about again', async () => {
      const { attempts, script, turn, called, handlerState } = accused()
      script.trials = trials
      script.isDown = true
      await expect(attempts.recall()).rejects.toThrow('took the store away')
      await turn()
      attempts.pump()
      expect([attempts.isAccusing, called(), handlerState.partition.held.size]).toEqual([true, [], 0])
      script.isDown = false
      await attempts.recall()
      await turn()
      expect(handlerState.partition.held.get('a')?.status).toBe('parked')
    })
  })

  it('those that were never begun go side by side when the suspects have their outcomes', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = suspected()
    live('c', 3)
    live('d', 4)
    beginWindow(9)
    handlerState.ledger.endTrials(handlerState.suspicion.end())
    attempts.pump()
    await turn()
    expect(called()).toEqual(['c-3', 'd-4'])
  })

  it('whoever waits for others to end does not begin, and lets them be when it is suspended', async () => {
    const { attempts, live, beginWindow, turn, called, handlerState } = suspected()
    const { exclusiveRun } = handlerState.parts
    const other = { wake: () => undefined }
    exclusiveRun.begin(other)
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway, exclusiveRun.begin(other)]).toEqual([[], true, false])
    attempts.suspend()
    expect([attempts.wanted, exclusiveRun.begin(other)]).toEqual([undefined, true])
  })

  it('one on trial that is under way stays so, and alone, though nothing else is to begin', async () => {
    const { attempts, live, beginWindow, handlerState, record } = suspected()
    live('a', 1)
    beginWindow(9)
    await record()
    handlerState.parts.ownership.pause = { reason: 'a test', at: 0 }
    attempts.suspend()
    attempts.pump()
    expect([handlerState.ledger.isEmpty, handlerState.suspicion.trying]).toEqual([true, 1])
    expect(handlerState.parts.exclusiveRun.begin({ wake: () => undefined })).toBe(false)
  })

  it('one on trial that is suspended is on trial no more', async () => {
    const { attempts, live, beginWindow, turn, handlerState } = suspected()
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.suspend()
    await turn()
    expect(handlerState.ledger.take()).toMatchObject({ acquitted: 'i', endedTrials: [] })
  })
})

describe('the end', () => {
  it('is when nothing is under way any more', async () => {
    const { attempts, live, beginWindow, turn, calls, handlerState } = trying()
    live('a', 1)
    live('b', 2)
    beginWindow(9)
    attempts.pump()
    await turn()
    let isOver = false
    const ended = attempts.ended().then(() => (isOver = true))
    calls[0]?.end()
    await turn()
    expect(isOver).toBe(false)
    calls[1]?.end()
    await turn()
    await ended
    expect(isOver).toBe(true)
    expect(handlerState.parts.exclusiveRun.enter({ wake: () => undefined })).toBe(true)
  })

  it('comes for all at once when the partition is somebody else’s, and nothing of them counts', async () => {
    const { attempts, live, beginWindow, turn, calls, handlerState, over } = trying()
    live('a', 1)
    beginWindow(9)
    attempts.pump()
    await turn()
    const { signal } = calls[0]?.ctx ?? {}
    attempts.abandon()
    // Others in the process may be alone now.
    const other = { wake: () => undefined }
    expect(handlerState.parts.exclusiveRun.enter(other)).toBe(true)
    expect([signal?.aborted, handlerState.running.size]).toEqual([true, 0])
    calls[0]?.end()
    await turn()
    await attempts.ended()
    expect([handlerState.ledger.isEmpty, over()]).toEqual([true, 0])
    handlerState.parts.exclusiveRun.leave(other)
    expect(mayBeAloneBesideAnother(handlerState.parts)).toBe(false)
  })
})
