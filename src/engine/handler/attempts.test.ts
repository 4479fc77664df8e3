import { describe, expect, it } from 'vitest'
import { createDeskOf, type DeskSetup, heldLane, letterOf } from '../../../test/desk.ts'
import { definePolicy, type Event, failure, fixed, type HandlerContext, park, retry } from '../../index.ts'
import type { Commit } from '../../subscription/subscription-store.ts'
import { Pace } from '../held/token-bucket.ts'
import { Suspicion } from '../crash/suspicion.ts'
import { Attempts } from './attempts.ts'
import type { Desk } from './handler-state.ts'
import { Drains } from './held-lane-drain.ts'
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
const mayBeAloneBesideAnother = ({ solitude }: Desk['parts']) => {
  solitude.begin({ wake: () => undefined })
  return solitude.enter({ wake: () => undefined })
}

/** A handler of which each call ends when the test says so. */
function trying(setup: DeskSetup = {}, change: (desk: Desk) => Partial<Desk> = () => ({})) {
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
  const desk: Desk = { ...made.desk, ...change(made.desk) }
  let over = 0
  const verdicts = new Verdicts(desk, new Drains(desk), () => undefined)
  const attempts = new Attempts(desk, verdicts, () => over++)
  const live = (lane: string, ...positions: number[]): Entry[] => {
    const entries = positions.map((position) => entryOf(desk, letterOf(lane, position).event))
    desk.window.add(entries, Math.max(...positions))
    for (const entry of entries) desk.tracks.add(lane, entry)
    return entries
  }
  const permit = (position: number) => desk.permit.extend(position, position, made.now())
  const turn = () => made.runtime.advance(0)
  const called = () => calls.map(({ event }) => event.id)
  /** The one that is to be tried alone is recorded, and begins. */
  const record = async () => {
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    attempts.pump()
    await turn()
  }
  return { ...made, desk, attempts, calls, live, permit, turn, called, record, over: () => over }
}

describe('what may be begun', () => {
  it('is one of each lane, as many as there is room for, and the next when one is over', async () => {
    const { attempts, live, permit, turn, called, calls, over, desk } = trying({ definition: { concurrency: 2 } })
    for (const lane of ['a', 'b', 'c']) live(lane, ...(lane === 'a' ? [1, 2] : lane === 'b' ? [3] : [4]))
    permit(9)
    expect(attempts.room).toBe(2)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'b-3'])
    expect([attempts.room, desk.running.size]).toEqual([0, 2])
    calls[0]?.end()
    await turn()
    expect(called()).toEqual(['a-1', 'b-3', 'c-4'])
    expect([over(), desk.ledger.take().counts.applied]).toEqual([1, 1])
    calls[1]?.end()
    await turn()
    expect(called()).toEqual(['a-1', 'b-3', 'c-4', 'a-2'])
  })

  it('is what a commit has said, and nothing beyond it', async () => {
    const { attempts, live, permit, turn, called } = trying()
    live('a', 1)
    live('b', 2)
    expect([attempts.isBarred, attempts.isTurnedAway]).toEqual([false, false])
    attempts.pump()
    await turn()
    expect([called(), attempts.isBarred]).toEqual([[], true])
    permit(1)
    attempts.pump()
    await turn()
    expect([called(), attempts.isBarred]).toEqual([['a-1'], true])
    permit(2)
    attempts.pump()
    await turn()
    expect([called(), attempts.isBarred]).toEqual([['a-1', 'b-2'], false])
  })

  it.for(['isOver', 'a pause', 'no lease'] as const)('is nothing any more: %s', async (why) => {
    const { attempts, live, permit, turn, called, desk, script } = trying()
    live('a', 1)
    permit(1)
    if (why === 'isOver') desk.isOver = true
    if (why === 'a pause') desk.parts.tenure.pause = { reason: 'a test', at: 0 }
    if (why === 'no lease') script.isOwner = false
    attempts.pump()
    await turn()
    expect(called()).toEqual([])
  })

  it('is nothing while others want to be alone in the process, and then it is woken', async () => {
    const { attempts, live, permit, turn, called, desk, told } = trying()
    const { solitude } = desk.parts
    const other = { wake: () => undefined }
    solitude.enter(other)
    live('a', 1)
    permit(1)
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([[], true])
    solitude.leave(other)
    expect(told.wake).toBe(1)
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([['a-1'], false])
  })
})

describe('who is turned away', () => {
  it('keeps its place: those that were alone, and want to be again, come after it', async () => {
    const { attempts, live, permit, turn, called, calls, desk } = trying()
    const { solitude } = desk.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    solitude.enter(one)
    live('a', 1)
    permit(1)
    attempts.pump()
    expect(solitude.enter(another)).toBe(false)
    solitude.leave(one)
    expect([solitude.enter(one), solitude.enter(another)]).toEqual([false, false])
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway]).toEqual([['a-1'], false])
    calls[0]?.end()
    await turn()
    expect(solitude.enter(another)).toBe(true)
  })

  it('spends nothing of what retries may cost on asking for its turn', async () => {
    const { attempts, live, permit, turn, called, desk, runtime } = trying({ definition: { failure: scarce } })
    const { solitude } = desk.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    solitude.enter(one)
    for (const entry of live('a', 1)) entry.tries = 1
    permit(1)
    attempts.pump()
    solitude.enter(another)
    await runtime.advance(1_000)
    solitude.leave(one)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
  })

  it('runs beside nobody when it may not begin yet after all', async () => {
    const { attempts, live, permit, turn, called, desk } = trying({ definition: { failure: scarce } })
    for (const entry of [...live('a', 1), ...live('b', 2)]) entry.tries = 1
    permit(9)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
    attempts.abandon()
    expect(desk.parts.solitude.enter({ wake: () => undefined })).toBe(true)
  })

  it.for(['it is paused', 'there is nothing left to begin'] as const)('has none any more when %s', async (why) => {
    const { attempts, live, permit, desk } = trying()
    const { solitude } = desk.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    solitude.enter(one)
    live('a', 1)
    permit(1)
    attempts.pump()
    solitude.enter(another)
    solitude.leave(one)
    expect(solitude.enter(another)).toBe(false)
    if (why === 'it is paused') desk.parts.tenure.pause = { reason: 'a test', at: 0 }
    else desk.tracks.clear(desk.tracks.get('a') as never)
    attempts.pump()
    expect(solitude.enter(another)).toBe(true)
  })
})

describe('what the handler is given', () => {
  it('says which attempt it is, until when, and by which key', async () => {
    const { attempts, live, permit, turn, calls, runtime } = trying()
    const [entry] = live('a', 1)
    if (entry) entry.begun = 4
    permit(1)
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
    const { attempts, live, permit, turn, calls, runtime } = trying({
      definition: {
        failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('1ms') }), outage: false }),
      },
    })
    live('a', 1)
    permit(1)
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
    const { attempts, live, permit, turn, calls, runtime, desk } = trying()
    live('a', 1)
    permit(1)
    attempts.pump()
    await turn()
    const { signal } = calls[0]?.ctx ?? {}
    await runtime.advance(60_000)
    expect(signal?.aborted).toBe(true)
    expect([desk.running.size, desk.partition.held.get('a')?.status]).toEqual([0, 'retrying'])
  })

  it('is nothing where it was done before, can not be read, or has no function', async () => {
    const { attempts, live, permit, turn, called, desk } = trying({ definition: { dedupe: { by: 'id' } } })
    const [done] = live('a', 1)
    const event = { id: 'a-1' } as Event
    await desk.dedup?.isDone(event)
    desk.dedup?.end(event, true)
    for (const [lane, record] of [
      ['b', { body: 'no JSON' }],
      ['c', { type: 'Strange' }],
    ] as const) {
      const letter = { ...letterOf(lane, 2).event, ...record }
      desk.tracks.add(lane, entryOf(desk, letter))
    }
    permit(9)
    attempts.pump()
    await turn()
    await turn()
    expect(done?.isDone).toBe(true)
    expect(called()).toEqual([])
    const { counts, held } = desk.ledger.take()
    expect(counts).toMatchObject({ duplicate: 1, held: 2 })
    expect(held).toMatchObject([
      { lane: 'b', status: 'parked', failure: { rule: 'read' } },
      { lane: 'c', status: 'parked', failure: notSubscribed },
    ])
  })
})

describe('what goes wrong around the handler', () => {
  it('is a failure of the event: the function that says what is the same throws', async () => {
    const { attempts, live, permit, turn, called, desk } = trying({
      definition: {
        dedupe: {
          by: () => {
            throw failure.permanent('no key')
          },
        },
      },
    })
    live('a', 1)
    permit(9)
    attempts.pump()
    await turn()
    expect([called(), desk.running.size]).toEqual([[], 0])
    expect(desk.ledger.take().held).toMatchObject([{ status: 'parked', failure: { message: 'no key' } }])
  })

  it('is told where an outcome can not be taken, and others go on', async () => {
    const { attempts, live, permit, turn, called, calls, desk, logged, over } = trying({
      definition: { concurrency: 1 },
    })
    live('a', 1)
    live('b', 2)
    permit(9)
    attempts.pump()
    await turn()
    desk.ledger.applied = () => {
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
    const { attempts, live, permit, turn, called, calls, desk } = trying({
      definition: { dedupe: { by: () => 'same' } },
    })
    live('a', 1)
    live('b', 2)
    permit(9)
    attempts.pump()
    await turn()
    expect([called(), desk.running.size]).toEqual([['a-1'], 2])
    calls[0]?.end()
    await turn()
    expect([called(), desk.ledger.take().counts]).toMatchObject([['a-1'], { applied: 1, duplicate: 1 }])
  })
})

describe('a breaker that is open', () => {
  const event = { id: 'x', key: 'a', data: {} } as Event

  it('defers what would be begun, and lets another of the same kind be done', async () => {
    const { attempts, live, permit, turn, called, desk } = trying({
      definition: { breaker: { opens: { failures: 1 }, key: ({ key }) => key }, dedupe: { by: () => 'same' } },
    })
    desk.waits.report('a', await desk.waits.enter(event), false)
    await turn()
    live('a', 1)
    permit(9)
    attempts.pump()
    await turn()
    expect([called(), desk.running.size]).toEqual([[], 0])
    expect(desk.partition.held.get('a')).toMatchObject({ status: 'waiting', breaker: 'notify:a' })
    live('b', 2)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['b-2'])
  })

  it('can not be told: the event is held, and another of the same kind may be done', async () => {
    const { attempts, live, permit, turn, called, desk } = trying({
      definition: {
        breaker: { opens: { failures: 1 }, key: ({ key }) => (key === 'a' ? '' : key) },
        dedupe: { by: () => 'same' },
      },
    })
    live('a', 1)
    permit(9)
    attempts.pump()
    await turn()
    expect([called(), desk.partition.held.get('a')?.status]).toEqual([[], 'parked'])
    live('b', 2)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['b-2'])
  })
})

describe('a probe of a breaker', () => {
  it('is given back by an attempt that nobody waits for any more', async () => {
    const { attempts, live, permit, turn, calls, desk, runtime } = trying({
      definition: { breaker: { opens: { failures: 1 }, cooldown: '1s' }, dedupe: { by: () => 'same' } },
    })
    const event = { id: 'x', key: 'a', data: {} } as Event
    desk.waits.report('a', await desk.waits.enter(event), false)
    await runtime.advance(1_000)
    live('a', 1)
    permit(9)
    attempts.pump()
    await turn()
    expect(calls).toHaveLength(1)
    expect((await desk.waits.enter(event)).entry).toBe('open')
    attempts.abandon()
    await turn()
    expect((await desk.waits.enter(event)).entry).toBe('probe')
    expect(await desk.dedup?.isDone(event)).toBe(false)
  })

  it('is given back, and nothing is begun, where the partition is given away while it is asked for', async () => {
    const { attempts, live, permit, turn, called, desk, runtime } = trying({
      definition: { breaker: { opens: { failures: 1 }, cooldown: '1s' }, dedupe: { by: () => 'same' } },
    })
    const event = { id: 'x', key: 'a', data: {} } as Event
    desk.waits.report('a', await desk.waits.enter(event), false)
    await runtime.advance(1_000)
    live('a', 1)
    permit(9)
    attempts.pump()
    attempts.abandon()
    await turn()
    expect(called()).toEqual([])
    expect((await desk.waits.enter(event)).entry).toBe('probe')
    expect(await desk.dedup?.isDone(event)).toBe(false)
  })
})

describe('an attempt that had to wait before it could begin', () => {
  const guarded: DeskSetup = {
    definition: { breaker: { opens: { failures: 1 }, cooldown: '1s' }, dedupe: { by: () => 'same' } },
  }

  it.for(['a pause', 'no lease', 'the end'] as const)('is not begun any more: %s', async (why) => {
    const { attempts, live, permit, turn, called, desk, script, runtime, over } = trying(guarded)
    const event = { id: 'x', key: 'a', data: {} } as Event
    desk.waits.report('a', await desk.waits.enter(event), false)
    await runtime.advance(1_000)
    const [entry] = live('a', 1)
    permit(9)
    attempts.pump()
    if (why === 'a pause') desk.parts.tenure.pause = { reason: 'a test', at: 0 }
    if (why === 'no lease') script.isOwner = false
    if (why === 'the end') desk.isOver = true
    await turn()
    expect([called(), desk.running.size, over()]).toEqual([[], 0, 1])
    // Nothing counts, the probe is another one's, and so is what it would have done.
    expect([entry?.isDone, entry?.begun, entry?.tries]).toEqual([false, 0, 0])
    expect(desk.ledger.isEmpty).toBe(true)
    expect((await desk.waits.enter(event)).entry).toBe('probe')
    expect(await desk.dedup?.isDone(event)).toBe(false)
  })

  it('begins in its turn when the partition is certainly its own again', async () => {
    const { attempts, live, permit, turn, called, calls, script } = trying(guarded)
    live('a', 1, 2)
    permit(9)
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
    const { attempts, live, permit, turn, called, desk, script } = trying(guarded, ({ partition }) => ({
      suspicion: new Suspicion([{ position: 0, instance: 'dead' }], true, 'i', 3),
      suspects: new Suspects(9, partition.held, 0),
    }))
    live('a', 1)
    permit(9)
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    expect(desk.suspicion.trying).toBe(1)
    attempts.pump()
    script.isOwner = false
    await turn()
    expect(called()).toEqual([])
    expect(desk.ledger.take()).toMatchObject({ acquitted: 'i', endedTrials: [] })
  })
})

describe('a letter', () => {
  const asLetter = (desk: Desk, lane: string, position: number, tries = 0) => {
    const entry: Entry = { ...entryOf(desk, letterOf(lane, position).event), isLetter: true, tries }
    desk.tracks.add(lane, entry)
    return entry
  }

  it('needs no word of a commit, and goes as fast as its redrive may', async () => {
    const pace = new Pace(2, 0)
    const { attempts, turn, called, desk, runtime } = trying(
      { held: ['a', 'b'].map((lane) => heldLane(lane, { redrive: 'r' })) },
      () => ({ redriving: { paceOf: (id?: string) => (id === 'r' ? pace : undefined) } as Desk['redriving'] }),
    )
    for (const lane of ['a', 'b']) asLetter(desk, lane, 1)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1'])
    expect(desk.tracks.nextAt()).toBe(500)
    await runtime.advance(499)
    attempts.pump()
    expect(called()).toHaveLength(1)
    await runtime.advance(1)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'b-1'])
  })

  it('that is tried again waits for its turn in the budget, the first attempt does not', async () => {
    const { attempts, turn, called, desk, now } = trying({
      held: ['a', 'b', 'c'].map((lane) => heldLane(lane)),
      definition: {
        failure: scarce,
      },
    })
    asLetter(desk, 'a', 1, 1)
    asLetter(desk, 'b', 1, 1)
    asLetter(desk, 'c', 1, 0)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-1', 'c-1'])
    expect(desk.tracks.nextAt()).toBeGreaterThan(now())
  })
})

describe('a letter of a redrive', () => {
  it('that has to wait for its turn in the budget costs its redrive nothing', async () => {
    let taken = 0
    const pace = { waitMs: () => 0, take: (count: number) => (taken += count) } as unknown as Pace
    const { attempts, turn, called, desk } = trying(
      { held: ['a', 'b'].map((lane) => heldLane(lane, { redrive: 'r' })), definition: { failure: scarce } },
      () => ({ redriving: { paceOf: () => pace } as unknown as Desk['redriving'] }),
    )
    for (const lane of ['a', 'b'])
      desk.tracks.add(lane, { ...entryOf(desk, letterOf(lane, 1).event), isLetter: true, tries: 1 })
    attempts.pump()
    await turn()
    expect([called(), taken]).toEqual([['a-1'], 1])
  })
})

describe('while everything stands still', () => {
  it('and nothing is there, nobody is the probe', () => {
    const { attempts, desk } = trying()
    desk.flow.stand('outage', undefined, fixed('1s'), 3, 0)
    attempts.pump()
    expect(desk.running.size).toBe(0)
  })

  async function probes(lanes: readonly string[], times: number): Promise<string[]> {
    const { attempts, live, permit, turn, calls, called, desk, runtime } = trying()
    for (const [i, lane] of lanes.entries()) live(lane, i + 1)
    permit(9)
    desk.flow.stand('outage', undefined, fixed('1s'), 3, 0)
    for (let i = 0; i < times; i++) {
      permit(9)
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
    const { attempts, live, permit, turn, called, desk } = trying()
    for (const [lane, position] of [
      ['b', 5],
      ['a', 2],
      ['c', 3],
    ] as const)
      live(lane, position)
    permit(9)
    desk.flow.stand('block', undefined, fixed('1s'), 0, 0)
    attempts.pump()
    await turn()
    expect(called()).toEqual(['a-2'])
  })
})

describe('after a death', () => {
  const suspected = (setup: DeskSetup = {}) =>
    trying(setup, (desk) => ({
      suspicion: new Suspicion([{ position: 0, instance: 'dead' }], true, 'i', 3),
      suspects: new Suspects(2, desk.partition.held, 0),
    }))

  it('each that may have killed is tried alone, recorded before, in order', async () => {
    const { attempts, live, permit, turn, called, calls, desk } = suspected()
    live('b', 2)
    live('a', 1)
    live('c', 3)
    permit(9)
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
    expect(desk.parts.solitude.begin(other)).toBe(false)
    desk.parts.solitude.leave(other)
    calls[0]?.end()
    await turn()
    expect(desk.ledger.take()).toMatchObject({ counts: { applied: 1 }, endedTrials: [1] })
    expect(attempts.wanted).toEqual({ position: 2, instance: 'i' })
    // Until the store has that it is over, a death would still be laid at its door.
    expect(desk.parts.solitude.begin(other)).toBe(false)
    attempts.committed({ endedTrials: [1], trial: { position: 2, instance: 'i' } } as never)
    expect(desk.parts.solitude.begin(other)).toBe(false)
  })

  it('what is wanted stays so until a commit has it', async () => {
    const { attempts, live, permit, desk, runtime } = suspected()
    live('a', 1)
    permit(9)
    attempts.pump()
    const wanted = { position: 1, instance: 'i' }
    attempts.committed({} as never)
    expect(attempts.wanted).toEqual(wanted)
    // However long it takes, and whatever else is to be committed: nobody else is on trial that others could wait for.
    desk.ledger.duplicate()
    await runtime.advance(300)
    attempts.pump()
    expect(attempts.wanted).toEqual(wanted)
  })

  it('nobody is alone while the source is asked, but who is on record goes on', async () => {
    const { attempts, live, permit, turn, called } = suspected()
    live('a', 1)
    permit(9)
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
    const { attempts, live, permit, turn, called, desk, now } = suspected()
    live('b', 2)
    permit(9)
    attempts.pump()
    attempts.committed({ trial: attempts.wanted } as Commit)
    live('a', 1)
    desk.tracks.postpone(desk.tracks.get('b') as never, now())
    attempts.pump()
    await turn()
    expect(called()).toEqual(['b-2'])
  })

  it('a suspect is before a letter that nobody had begun', () => {
    const { attempts, live, permit, desk } = suspected({ held: [heldLane('z', { status: 'parked' })] })
    desk.tracks.add('z', { ...entryOf(desk, letterOf('z', 1).event), isLetter: true })
    live('b', 2)
    permit(9)
    attempts.pump()
    expect([attempts.wanted, desk.running.size]).toEqual([{ position: 2, instance: 'i' }, 0])
  })

  it('a probe is anybody’s, unless one is on record', async () => {
    const probed = async (isOnRecord: boolean, chance: number) => {
      const { attempts, live, permit, turn, called, desk, runtime } = suspected()
      live('a', 1)
      permit(99)
      attempts.pump()
      if (isOnRecord) attempts.committed({ trial: attempts.wanted } as Commit)
      for (let i = 0; i < 8; i++) live(`other-${i}`, 10 + i)
      desk.flow.stand('outage', undefined, fixed('1s'), 3, 0)
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
    const { attempts, live, permit, desk } = suspected()
    const { solitude } = desk.parts
    const [one, another] = [{ wake: () => undefined }, { wake: () => undefined }]
    solitude.enter(one)
    live('a', 1)
    permit(9)
    attempts.pump()
    expect(solitude.enter(another)).toBe(false)
    attempts.committed({} as never)
    solitude.leave(one)
    expect(solitude.enter(another)).toBe(false)
    attempts.pump()
    expect(attempts.wanted).toEqual({ position: 1, instance: 'i' })
  })

  it('whoever is alone stays so when that is recorded, whoever waits for it', () => {
    const { attempts, live, permit, desk } = suspected()
    const { solitude } = desk.parts
    const other = { wake: () => undefined }
    live('a', 1)
    permit(9)
    attempts.pump()
    expect(solitude.begin(other)).toBe(false)
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    expect(solitude.begin(other)).toBe(false)
  })

  it('the next is recorded though others wait, if the one on record is there no more', async () => {
    const { attempts, live, permit, desk, runtime } = suspected()
    live('a', 1)
    live('b', 2)
    permit(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    desk.parts.solitude.begin({ wake: () => undefined })
    desk.tracks.clear(desk.tracks.get('a') as never)
    await runtime.advance(250)
    attempts.pump()
    expect([attempts.wanted, attempts.isTurnedAway]).toEqual([{ position: 2, instance: 'i' }, false])
  })

  it('others in the process have their turn before the next of them', async () => {
    const { attempts, live, permit, turn, called, calls, desk, runtime } = suspected()
    const { solitude } = desk.parts
    const other = { wake: () => undefined }
    live('a', 1)
    live('b', 2)
    permit(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    expect(solitude.begin(other)).toBe(false)
    // A quick one would be followed by the next at once.
    await runtime.advance(250)
    calls[0]?.end()
    await turn()
    expect([attempts.wanted, attempts.isTurnedAway]).toEqual([undefined, true])
    attempts.committed({ endedTrials: [1] } as never)
    attempts.pump()
    expect([attempts.wanted, attempts.isTurnedAway, solitude.begin(other)]).toEqual([undefined, true, true])
    solitude.leave(other)
    solitude.end()
    attempts.pump()
    expect(attempts.isTurnedAway).toBe(true)
    // As long as it was alone, others may run.
    await runtime.advance(250)
    attempts.pump()
    await turn()
    expect([attempts.wanted, called()]).toEqual([{ position: 2, instance: 'i' }, ['a-1']])
  })

  it('others in the process go on when the last of them is through', async () => {
    const { attempts, live, permit, turn, called, calls, desk } = suspected()
    live('a', 1)
    live('c', 3)
    permit(9)
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
    expect(desk.parts.solitude.begin({ wake: () => undefined })).toBe(true)
    desk.parts.solitude.end()
    calls[1]?.end()
    await turn()
    expect(mayBeAloneBesideAnother(desk.parts)).toBe(false)
  })

  it('one that has to wait for its turn in the budget is on trial no more, and others go on', async () => {
    const { attempts, live, permit, turn, called, calls, desk } = suspected({
      definition: {
        failure: scarce,
      },
    })
    for (const entry of [...live('a', 1), ...live('b', 2)]) entry.tries = 1
    permit(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    calls[0]?.end()
    await turn()
    expect(desk.ledger.take().endedTrials).toEqual([1])
    attempts.committed({ endedTrials: [1] } as never)
    attempts.pump()
    attempts.committed({ trial: { position: 2, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    expect([called(), desk.ledger.take()]).toMatchObject([['a-1'], { acquitted: 'i', endedTrials: [] }])
    attempts.committed({ acquitted: 'i' } as never)
    attempts.pump()
    expect(desk.parts.solitude.begin({ wake: () => undefined })).toBe(true)
    desk.parts.solitude.end()
    expect(mayBeAloneBesideAnother(desk.parts)).toBe(false)
  })

  describe('those that are followed', () => {
    /** They failed before, and are tried again; everything else goes as always. */
    const following = (...positions: number[]) =>
      trying({}, (desk) => ({
        suspicion: new Suspicion(
          positions.map((position) => ({ position, instance: 'dead' })),
          false,
          'i',
          9,
          new Set(positions),
        ),
        suspects: new Suspects(0, desk.partition.held, 0),
      }))

    it('are before all others when they are on record', async () => {
      const { attempts, live, permit, turn, called, desk, now } = following(2)
      live('b', 2)
      permit(9)
      attempts.committed({} as never)
      attempts.pump()
      expect(attempts.wanted).toEqual({ position: 2, instance: 'i' })
      attempts.committed({ trial: attempts.wanted } as Commit)
      live('a', 1)
      desk.tracks.postpone(desk.tracks.get('b') as never, now())
      attempts.pump()
      await turn()
      expect(called()).toEqual(['b-2'])
    })

    it('let others, and then the source, have their turn before the next of them', async () => {
      const { attempts, live, permit, turn, called, calls, record } = following(1, 2)
      live('a', 1)
      live('b', 2)
      live('c', 3)
      permit(9)
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
    const { attempts, live, permit, turn, desk } = suspected()
    live('a', 1)
    permit(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.pump()
    await turn()
    attempts.abandon()
    expect(desk.parts.solitude.begin({ wake: () => undefined })).toBe(true)
  })

  describe('one that processes died over', () => {
    const trials = [{ position: 1, instance: 'dead' }]
    function accused() {
      const made = trying({}, (desk) => ({
        suspicion: new Suspicion(trials, true, 'i', 2),
        suspects: new Suspects(2, desk.partition.held, 0),
      }))
      made.live('a', 1)
      made.permit(9)
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
      const { attempts, script, turn, called, desk } = accused()
      await turn()
      expect([attempts.isAccusing, desk.partition.held.size]).toEqual([true, 0])
      script.trials = trials
      await attempts.recall()
      await turn()
      expect(attempts.isAccusing).toBe(false)
      expect([called(), desk.partition.held.get('a')?.status]).toEqual([[], 'parked'])
      expect(desk.ledger.take().held).toMatchObject([{ failure: { rule: 'crash' } }])
      expect(desk.parts.solitude.begin({ wake: () => undefined })).toBe(true)
    })

    it('is to be tried, and recorded first, when they live', async () => {
      const { attempts, turn, called, desk } = accused()
      await attempts.recall()
      await turn()
      expect([attempts.isAccusing, attempts.wanted, called()]).toEqual([false, { position: 1, instance: 'i' }, []])
      expect(desk.partition.held.size).toBe(0)
    })

    it('keeps nobody waiting when nothing is to begin any more', () => {
      const { attempts, desk } = accused()
      const isFree = () => desk.parts.solitude.begin({ wake: () => undefined })
      expect([attempts.isAccusing, isFree()]).toEqual([true, false])
      attempts.suspend()
      expect([attempts.isAccusing, isFree()]).toEqual([false, true])
    })

    it('is neither while the store does not say, and is asked about again', async () => {
      const { attempts, script, turn, called, desk } = accused()
      script.trials = trials
      script.isDown = true
      await expect(attempts.recall()).rejects.toThrow('took the store away')
      await turn()
      attempts.pump()
      expect([attempts.isAccusing, called(), desk.partition.held.size]).toEqual([true, [], 0])
      script.isDown = false
      await attempts.recall()
      await turn()
      expect(desk.partition.held.get('a')?.status).toBe('parked')
    })
  })

  it('those that were never begun go side by side when the suspects have their outcomes', async () => {
    const { attempts, live, permit, turn, called, desk } = suspected()
    live('c', 3)
    live('d', 4)
    permit(9)
    desk.ledger.endTrials(desk.suspicion.end())
    attempts.pump()
    await turn()
    expect(called()).toEqual(['c-3', 'd-4'])
  })

  it('whoever waits for others to end does not begin, and lets them be when it is suspended', async () => {
    const { attempts, live, permit, turn, called, desk } = suspected()
    const { solitude } = desk.parts
    const other = { wake: () => undefined }
    solitude.begin(other)
    live('a', 1)
    permit(9)
    attempts.pump()
    await turn()
    expect([called(), attempts.isTurnedAway, solitude.begin(other)]).toEqual([[], true, false])
    attempts.suspend()
    expect([attempts.wanted, solitude.begin(other)]).toEqual([undefined, true])
  })

  it('one on trial that is under way stays so, and alone, though nothing else is to begin', async () => {
    const { attempts, live, permit, desk, record } = suspected()
    live('a', 1)
    permit(9)
    await record()
    desk.parts.tenure.pause = { reason: 'a test', at: 0 }
    attempts.suspend()
    attempts.pump()
    expect([desk.ledger.isEmpty, desk.suspicion.trying]).toEqual([true, 1])
    expect(desk.parts.solitude.begin({ wake: () => undefined })).toBe(false)
  })

  it('one on trial that is suspended is on trial no more', async () => {
    const { attempts, live, permit, turn, desk } = suspected()
    live('a', 1)
    permit(9)
    attempts.pump()
    attempts.committed({ trial: { position: 1, instance: 'i' } } as never)
    attempts.suspend()
    await turn()
    expect(desk.ledger.take()).toMatchObject({ acquitted: 'i', endedTrials: [] })
  })
})

describe('the end', () => {
  it('is when nothing is under way any more', async () => {
    const { attempts, live, permit, turn, calls, desk } = trying()
    live('a', 1)
    live('b', 2)
    permit(9)
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
    expect(desk.parts.solitude.enter({ wake: () => undefined })).toBe(true)
  })

  it('comes for all at once when the partition is somebody else’s, and nothing of them counts', async () => {
    const { attempts, live, permit, turn, calls, desk, over } = trying()
    live('a', 1)
    permit(9)
    attempts.pump()
    await turn()
    const { signal } = calls[0]?.ctx ?? {}
    attempts.abandon()
    // Others in the process may be alone now.
    const other = { wake: () => undefined }
    expect(desk.parts.solitude.enter(other)).toBe(true)
    expect([signal?.aborted, desk.running.size]).toEqual([true, 0])
    calls[0]?.end()
    await turn()
    await attempts.ended()
    expect([desk.ledger.isEmpty, over()]).toEqual([true, 0])
    desk.parts.solitude.leave(other)
    expect(mayBeAloneBesideAnother(desk.parts)).toBe(false)
  })
})
