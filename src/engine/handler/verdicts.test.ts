import { describe, expect, it } from 'vitest'
import { describeFailure } from '../../failure/failure.ts'
import { createDeskOf, type DeskSetup, heldLane, letterOf } from '../../../test/handler-state.ts'
import { block, definePolicy, exponential, failure, fixed, park, pause, retry } from '../../index.ts'
import { Suspicion } from '../crash/suspicion.ts'
import type { HandlerState } from './handler-state.ts'
import { HeldLaneDrain } from './held-lane-drain.ts'
import { type Entry, entryOf } from './entry.ts'
import { Suspects } from './suspects.ts'
import { type Tried, Verdicts } from './verdicts.ts'

const slow = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false })
const quick = definePolicy({ transient: retry({ attempts: 9, backoff: fixed('100ms') }).then(park), outage: false })
const shyOptions = {
  transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park),
  outage: { lanes: 2, backoff: exponential('1s', { cap: '30s' }) },
}
const shy = definePolicy(shyOptions)

type Trying = ReturnType<ReturnType<typeof judging>['live']>

function judging(setup: DeskSetup = {}, suspicion?: Suspicion, suspectsUpTo = 0) {
  const made = createDeskOf(setup)
  const suspects = new Suspects(suspectsUpTo, made.handlerState.partition.held, 0)
  const handlerState: HandlerState = { ...made.handlerState, ...(suspicion && { suspicion, suspects }) }
  let tells = 0
  const verdicts = new Verdicts(handlerState, new HeldLaneDrain(handlerState), () => tells++)
  /** Events of lanes from the source, of which the first is being tried. */
  const live = (lane: string, ...positions: number[]) => {
    const entries = positions.map((position) => entryOf(handlerState, letterOf(lane, position).event))
    handlerState.window.add(entries, Math.max(...positions))
    return begin(handlerState.handler.order === 'partition' ? '' : lane, entries)
  }
  /** The same of letters of a lane that is held. */
  const held = (lane: string, ...positions: number[]) => {
    handlerState.draining.add(lane)
    return begin(
      lane,
      positions.map(
        (position): Entry => ({ ...entryOf(handlerState, letterOf(lane, position).event), isLetter: true }),
      ),
    )
  }
  const begin = (name: string, entries: readonly Entry[]) => {
    for (const entry of entries) handlerState.tracks.add(name, entry)
    const track = handlerState.tracks.get(name)
    const entry = track?.entries.shift()
    if (!track || !entry) throw new Error('nothing was given')
    handlerState.tracks.begin(track)
    return [track, entry] as const
  }
  return { ...made, handlerState, verdicts, live, held, tells: () => tells }
}

const triedOf = (entry: Entry, pass: Tried['pass'] = { entry: 'none' }): Tried => ({
  event: { id: entry.record.id } as Tried['event'],
  ctx: { attempt: 1 } as Tried['ctx'],
  pass,
  // After everything else here.
  begunAt: Number.POSITIVE_INFINITY,
  tookMs: 5,
})
const not = (message: string) => failure.transient(message)

describe('what went through', () => {
  it('is applied, and its lane goes on', () => {
    const { handlerState, verdicts, live, events } = judging()
    const [track, entry] = live('a', 1, 2)
    verdicts.succeeded(track, entry, triedOf(entry), undefined)
    const group = handlerState.ledger.take()
    expect(group.counts).toMatchObject({ applied: 1, held: 0 })
    expect(group.applied).toEqual([entry.record])
    expect([handlerState.window.unfinished, handlerState.window.done().position, track.isRunning]).toEqual([
      1,
      1,
      false,
    ])
    expect(handlerState.tracks.peek(0)).toBe(track)
    expect(events).toEqual(['handler.completed a'])
  })

  it('as a letter is resolved, and the next one is the head', () => {
    const { handlerState, verdicts, held } = judging({ held: [heldLane('a')] })
    const [track, entry] = held('a', 1, 2)
    verdicts.succeeded(track, entry, triedOf(entry), undefined)
    expect(handlerState.ledger.take()).toMatchObject({
      counts: { applied: 1, held: -1 },
      letters: [{ change: 'resolved' }, { change: 'status', position: 2 }],
    })
    expect(handlerState.partition.held.get('a')).toMatchObject({ headPosition: 2 })
  })

  it('has its mark in the same commit', async () => {
    const { handlerState, verdicts, live } = judging({ definition: { dedupe: { by: 'id' } } })
    const [track, entry] = live('a', 1)
    const tried = triedOf(entry)
    await handlerState.dedup?.isDone(tried.event)
    verdicts.succeeded(track, entry, tried, { receipt: 7 })
    expect(handlerState.ledger.take().inbox).toMatchObject([{ key: 'a-1', result: '{"receipt":7}' }])
  })

  it.for([true, false])('before is a duplicate: letter %s', (isLetter) => {
    const { handlerState, verdicts, live, held, events } = judging({ held: isLetter ? [heldLane('a')] : [] })
    const [track, entry] = isLetter ? held('a', 1, 2) : live('a', 1, 2)
    verdicts.repeated(track, entry, null)
    expect(handlerState.ledger.take().counts).toMatchObject({ duplicate: 1, held: isLetter ? -1 : 0, applied: 0 })
    expect(events).toEqual(['handler.skipped a'])
    expect(handlerState.tracks.peek(0)).toBe(track)
  })
})

describe('what fails for good', () => {
  it('is parked, and what was read behind it is queued', () => {
    const { handlerState, verdicts, live, events } = judging({ definition: { failure: slow } })
    const [track, entry] = live('a', 1, 2, 3)
    verdicts.failed(track, entry, failure.permanent('never'), triedOf(entry))
    const { counts, held, stopped } = handlerState.ledger.take()
    expect(counts).toMatchObject({ held: 3, applied: 0 })
    expect(held.map(({ status, event }) => [status, event.position])).toEqual([
      ['parked', 1],
      ['queued', 2],
      ['queued', 3],
    ])
    expect(stopped).toMatchObject([{ lane: 'a', failure: { class: 'permanent', message: 'never' } }])
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'parked', tries: 1 })
    expect([handlerState.window.unfinished, handlerState.tracks.size]).toEqual([0, 0])
    expect(handlerState.due.nextAt()).toBeUndefined()
    expect(events).toEqual(['handler.failed a', 'message.dlq a'])
  })

  it('as a letter keeps its lane, which is not at hand any more', () => {
    const { handlerState, verdicts, held } = judging({
      held: [heldLane('a', { tries: 1 })],
      definition: { failure: slow },
    })
    const [track, entry] = held('a', 1, 2)
    verdicts.failed(track, entry, failure.permanent('never'), triedOf(entry))
    expect(handlerState.ledger.take()).toMatchObject({
      counts: { held: 0 },
      letters: [{ change: 'failed', status: 'parked', position: 1 }],
    })
    expect([handlerState.draining.has('a'), handlerState.tracks.size]).toEqual([false, 0])
  })

  it('can not be read, or is nobody’s any more: it is parked without an attempt', () => {
    const { handlerState, verdicts, live } = judging()
    const [track, entry] = live('a', 1)
    const why = describeFailure('no JSON', 'permanent', 'read')
    verdicts.unreadable(track, entry, why)
    expect(handlerState.ledger.take().held).toMatchObject([{ status: 'parked', failure: { message: 'no JSON' } }])
  })

  it('killed processes, and is parked for that', () => {
    const { handlerState, verdicts, live, events } = judging()
    const [track, entry] = live('a', 1)
    verdicts.blame(track, entry, 3)
    expect(handlerState.ledger.take().held).toMatchObject([{ status: 'parked', failure: { rule: 'crash' } }])
    expect([events, handlerState.partition.held.get('a')?.tries]).toEqual([['message.dlq a'], 1])
  })

  it.for([true, false])('is skipped where it says so, and recorded: letter %s', (isLetter) => {
    const { handlerState, verdicts, live, held, events } = judging({ held: isLetter ? [heldLane('a')] : [] })
    const [track, entry] = isLetter ? held('a', 1, 2) : live('a', 1, 2)
    verdicts.failed(track, entry, failure.skip('nobody is there'), triedOf(entry))
    expect(events).toEqual(['handler.failed a', 'handler.skipped a'])
    // What is behind it waits until the store has that.
    expect(handlerState.tracks.peek(0)).toBe(undefined)
    expect(handlerState.ledger.take()).toMatchObject({
      counts: { discarded: 1, held: isLetter ? -1 : 0 },
      passing: [track],
    })
  })
})

describe('a retry', () => {
  it('that is due soon waits in place, twice at the most', () => {
    const { handlerState, verdicts, live, now, events } = judging({ definition: { failure: quick } })
    const [track, entry] = live('a', 1, 2)
    for (const tries of [1, 2]) {
      verdicts.failed(track, entry, not('now'), triedOf(entry))
      expect([entry.tries, entry.unrecorded.length, handlerState.ledger.isEmpty]).toEqual([tries, tries, true])
      expect([track.entries[0], handlerState.tracks.nextAt(), handlerState.tracks.peek(now())]).toEqual([
        entry,
        now() + 100,
        undefined,
      ])
      handlerState.tracks.peek(now() + 100)
      track.entries.shift()
      handlerState.tracks.begin(track)
    }
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    const { held, letters } = handlerState.ledger.take()
    expect(held.map(({ status }) => status)).toEqual(['retrying', 'queued'])
    expect(letters).toHaveLength(2)
    expect(handlerState.partition.held.get('a')).toMatchObject({ tries: 3, dueAt: handlerState.partition.now() + 100 })
    expect(handlerState.due.nextAt()).toBe(now() + 100)
    expect(events.filter((one) => one === 'message.nacked a')).toHaveLength(3)
  })

  it('that is due later is held until then', () => {
    const { handlerState, verdicts, live, now } = judging({ definition: { failure: slow } })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'retrying', tries: 1 })
    expect(handlerState.due.nextAt()).toBe(now() + 2_000)
    expect([handlerState.tracks.size, handlerState.window.unfinished]).toEqual([0, 0])
  })

  it('is there three times, and then it is parked', () => {
    const { handlerState, verdicts, held } = judging({
      held: [heldLane('a', { tries: 2 })],
      definition: { failure: slow },
    })
    const [track, entry] = held('a', 1)
    entry.tries = 2
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'parked', tries: 3 })
  })

  it('is none for what a redrive lets go', () => {
    const { handlerState, verdicts, held, live } = judging({
      held: [heldLane('a', { redrive: 'r' })],
      definition: { failure: slow },
    })
    verdicts.failed(...held('a', 1), not('now'))
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'parked' })
    verdicts.failed(...live('b', 2), not('now'))
    expect(handlerState.partition.held.get('b')).toMatchObject({ status: 'retrying' })
    // Of which nobody asked for.
    verdicts.failed(...held('b', 2), not('now'))
    expect(handlerState.partition.held.get('b')).toMatchObject({ status: 'retrying' })
  })
})

describe('an outage', () => {
  it('is declared when several lanes fail alike, and costs none of them anything', () => {
    const { handlerState, verdicts, live, tells, now, events } = judging({ definition: { failure: shy } })
    const [one, first] = live('a', 1)
    verdicts.failed(one, first, not('down'), triedOf(first))
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'retrying', tries: 1 })
    const [two, second] = live('b', 2)
    second.tries = 1
    verdicts.failed(two, second, not('down'), triedOf(second))
    expect(handlerState.flow.standstill).toMatchObject({ why: 'outage', lanes: 2, failure: { message: 'down' } })
    expect(handlerState.flow.standstill?.probeAt).toBeGreaterThanOrEqual(now() + 500)
    expect([handlerState.partition.held.get('a')?.tries, second.tries, two.entries]).toEqual([0, 0, [second]])
    expect(handlerState.due.isDue(now())).toBe(true)
    expect([tells(), events.at(-1)]).toEqual([1, 'subscription.blocked '])
  })

  it('lasts as long as the other side says, if that is longer', () => {
    const { handlerState, verdicts, live, now } = judging({ definition: { failure: shy } })
    for (const lane of ['a', 'b'])
      verdicts.failed(...live(lane, lane === 'a' ? 1 : 2), failure.transient('busy', { retryAfter: '90s' }))
    expect(handlerState.flow.standstill?.probeAt).toBe(now() + 90_000)
  })

  it('goes on when its probe fails, which costs nothing, and gives the next turn to another lane', async () => {
    const { handlerState, verdicts, live, held, runtime, now, tells } = judging({
      held: [heldLane('h', { dueAt: Date.UTC(2027, 0, 1) })],
      definition: { failure: shy },
    })
    for (const lane of ['a', 'b']) verdicts.failed(...live(lane, lane === 'a' ? 1 : 2), not('down'))
    handlerState.ledger.take()
    await runtime.advance(2_000)
    const [track, letter] = held('h', 1)
    const told = tells()
    verdicts.failed(track, letter, not('down'), triedOf(letter))
    expect([handlerState.flow.standstill?.probes, tells()]).toEqual([1, told + 1])
    // A letter goes back to where it came from; what is from the source stays in its track.
    const due: string[] = []
    for (let lane = handlerState.due.take(now()); lane; lane = handlerState.due.take(now())) due.push(lane)
    expect([handlerState.draining.has('h'), handlerState.tracks.get('h'), due]).toEqual([false, undefined, ['a', 'h']])
    expect([letter.tries, handlerState.ledger.isEmpty]).toEqual([0, true])
    await runtime.advance(60_000)
    const [waiting, entry] = live('c', 3)
    verdicts.failed(waiting, entry, not('down'), triedOf(entry))
    expect([waiting.entries, entry.tries]).toEqual([[entry], 0])
    expect(handlerState.flow.standstill).toMatchObject({ probes: 2 })
  })

  it('is none where all of them are to be passed over, whatever their rule calls it', () => {
    const rules = [() => ({ class: 'transient', skip: 'nobody needs it', rule: 'ours', evidence: null }) as const]
    const { handlerState, verdicts, live } = judging({
      definition: { failure: definePolicy({ ...shyOptions, rules }) },
    })
    for (const lane of ['a', 'b']) verdicts.failed(...live(lane, lane === 'a' ? 1 : 2), new Error('down'))
    expect([handlerState.flow.standstill, handlerState.ledger.take().counts.discarded]).toEqual([undefined, 2])
  })

  it('gives back what counted to those that are under way again, and to nobody else', () => {
    const { handlerState, verdicts, live } = judging({ definition: { failure: shy } })
    verdicts.failed(...live('a', 1), not('down'))
    const [again, other] = ['a', 'c'].map((lane, i): Entry => ({ ...live(lane, 7 + i)[1], tries: 2 }))
    for (const entry of [again, other]) handlerState.running.set(entry as Entry, {} as never)
    verdicts.failed(...live('b', 2), not('down'))
    expect([handlerState.flow.standstill?.why, again?.tries, other?.tries]).toEqual(['outage', 0, 2])
  })

  it('is not over because something was done before: nobody was asked', () => {
    const { handlerState, verdicts, live } = judging({ definition: { failure: shy } })
    for (const lane of ['a', 'b']) verdicts.failed(...live(lane, lane === 'a' ? 1 : 2), not('down'))
    verdicts.repeated(...live('c', 3), null)
    expect(handlerState.flow.standstill?.why).toBe('outage')
  })

  it('is over when somebody answers, be it with a refusal', () => {
    for (const answer of ['yes', 'no']) {
      const { handlerState, verdicts, live, events, tells } = judging({ definition: { failure: shy } })
      for (const lane of ['a', 'b']) verdicts.failed(...live(lane, lane === 'a' ? 1 : 2), not('down'))
      const [track, entry] = live('c', 3)
      if (answer === 'yes') verdicts.succeeded(track, entry, triedOf(entry), undefined)
      else verdicts.failed(track, entry, failure.permanent('never'), triedOf(entry))
      expect(handlerState.flow.standstill).toBeUndefined()
      expect(events).toContain('subscription.resumed ')
      expect(tells()).toBe(2)
    }
  })
})

describe('a breaker that is open', () => {
  const breaker = { opens: { failures: 1 }, key: ({ key }: { readonly key: string }) => key }

  it('makes its lane wait, and nothing counts', () => {
    const { handlerState, verdicts, live, now } = judging({ definition: { breaker, failure: slow } })
    const [track, entry] = live('a', 1, 2)
    verdicts.defer(track, entry, 'notify:a', 5_000)
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'waiting', breaker: 'notify:a', tries: 0 })
    expect(handlerState.waits.nextAt()).toBe(now() + 5_000)
    expect(handlerState.ledger.take().held.map(({ status, failure: why }) => [status, why])).toEqual([
      ['waiting', undefined],
      ['queued', undefined],
    ])
  })

  it('makes the whole partition wait where it is everybody’s, or where the order is kept', async () => {
    for (const [name, definition] of [
      [undefined, { failure: slow }],
      ['notify:a', { breaker, failure: slow, order: 'partition' }],
    ] as const) {
      const { handlerState, verdicts, live, runtime, now } = judging({ definition })
      const [track, entry] = live('a', 1)
      verdicts.defer(track, entry, name, 5_000)
      expect(handlerState.flow.standstill).toMatchObject({ why: 'breaker', probeAt: now() + 5_000, probes: 0 })
      expect([track.entries, handlerState.ledger.isEmpty]).toEqual([[entry], true])
      await runtime.advance(5_000)
      verdicts.defer(track, track.entries.shift() as Entry, name, 7_000)
      expect(handlerState.flow.standstill).toMatchObject({ why: 'breaker', probeAt: now() + 7_000, probes: 1 })
    }
  })

  it('and its probe fails: that was its own question, and no attempt of the event', async () => {
    const { handlerState, verdicts, live, runtime } = judging({ definition: { breaker, failure: slow } })
    const [track, entry] = live('a', 1)
    const event = { ...triedOf(entry).event, key: 'a' }
    handlerState.waits.report('a', await handlerState.waits.enter(event), false)
    await runtime.advance(60_000)
    const pass = await handlerState.waits.enter(event)
    expect(pass.entry).toBe('probe')
    verdicts.failed(track, entry, not('down'), triedOf(entry, pass))
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'waiting', breaker: 'notify:a', tries: 0 })
  })
})

describe('who was asked', () => {
  const breaker = { opens: { failures: 1 }, cooldown: '10s' } as const

  it.for([
    ['with success', 'closed'],
    ['with a failure', 'open'],
    ['with a refusal, which is an answer', 'closed'],
  ] as const)('is known to its breaker: it ended %s', async ([how, next]) => {
    const { handlerState, verdicts, live, runtime } = judging({ definition: { breaker, failure: slow } })
    const [track, entry] = live('a', 1)
    const { event } = triedOf(entry)
    const tried = triedOf(entry, await handlerState.waits.enter(event))
    if (how === 'with success') verdicts.succeeded(track, entry, tried, undefined)
    else if (how === 'with a failure') verdicts.failed(track, entry, not('down'), tried)
    else verdicts.failed(track, entry, failure.permanent('never'), tried)
    await runtime.advance(0)
    expect((await handlerState.waits.enter(event)).entry).toBe(next)
  })

  it('is told to the hook of the user, with the error', async () => {
    const heard: unknown[] = []
    const { verdicts, live, runtime } = judging({
      definition: { failure: slow, onError: (...args) => void heard.push(args) },
    })
    const [track, entry] = live('a', 1)
    const [error, tried] = [not('down'), triedOf(entry)]
    verdicts.failed(track, entry, error, tried)
    await runtime.advance(0)
    expect(heard).toEqual([[error, tried.event, tried.ctx]])
  })

  it('is one where several lanes go to the same endpoint, and then it is no outage', async () => {
    const keyed = { opens: { failures: 9 }, key: () => 'bank' }
    for (const [definition, why] of [
      [{ breaker: keyed, failure: shy }, undefined],
      [{ breaker: { opens: { failures: 9 } }, failure: shy }, 'outage'],
    ] as const) {
      const { handlerState, verdicts, live } = judging({ definition })
      for (const [i, lane] of ['a', 'b'].entries()) {
        const [track, entry] = live(lane, i + 1)
        const pass = await handlerState.waits.enter(triedOf(entry).event)
        expect(pass.entry).toBe('closed')
        verdicts.failed(track, entry, not('down'), triedOf(entry, pass))
      }
      expect(handlerState.flow.standstill?.why).toBe(why)
    }
  })

  it('did not do what failed: it may be done again', async () => {
    const { handlerState, verdicts, live } = judging({ definition: { dedupe: { by: 'id' }, failure: slow } })
    const [track, entry] = live('a', 1)
    const tried = triedOf(entry)
    expect(await handlerState.dedup?.isDone(tried.event)).toBe(false)
    verdicts.failed(track, entry, not('down'), tried)
    expect(await handlerState.dedup?.isDone(tried.event)).toBe(false)
  })
})

describe('a lane that failed before', () => {
  it('has its verdict when it went through, so that its next failure is news', () => {
    const { handlerState, verdicts, live } = judging({ definition: { failure: quick } })
    const settled: unknown[] = []
    const settle = handlerState.flow.settled.bind(handlerState.flow)
    handlerState.flow.settled = (...args) => {
      settled.push(args)
      settle(...args)
    }
    const [one, first] = live('a', 1)
    verdicts.succeeded(one, first, triedOf(first), undefined)
    verdicts.failed(...live('b', 2), failure.permanent('never'))
    verdicts.failed(...live('c', 3), failure.skip('not needed'))
    expect(settled).toEqual([
      ['a', true],
      ['b', false],
      ['c', false],
    ])
  })

  it('and waits in place is given back what counted, and need not wait, when it was an outage', () => {
    const definition = {
      failure: definePolicy({
        transient: retry({ attempts: 9, backoff: fixed('250ms') }).then(park),
        outage: { lanes: 2, backoff: fixed('1s') },
      }),
    }
    const { handlerState, verdicts, live, now } = judging({ definition })
    const [one, first] = live('a', 1)
    verdicts.failed(one, first, not('down'), triedOf(first))
    expect([first.tries, one.entries, handlerState.tracks.nextAt()]).toEqual([1, [first], now() + 250])
    const [two, second] = live('b', 2)
    verdicts.failed(two, second, not('down'), triedOf(second))
    expect(handlerState.flow.standstill?.why).toBe('outage')
    expect([first.tries, handlerState.tracks.nextAt(), [...handlerState.tracks.ready(now())]]).toEqual([
      0,
      undefined,
      [one, two],
    ])
    expect(handlerState.due.nextAt()).toBeUndefined()
  })

  it('waits for its time or for its breaker, and never for both', () => {
    const { handlerState, verdicts, live } = judging({ definition: { failure: slow } })
    verdicts.failed(...live('a', 1), not('now'))
    expect([handlerState.due.nextAt() !== undefined, handlerState.waits.nextAt()]).toEqual([true, undefined])
    const other = judging({ definition: { failure: slow } })
    other.verdicts.defer(...other.live('a', 1), 'notify:a', 5)
    expect([other.handlerState.due.nextAt(), other.handlerState.waits.nextAt() !== undefined]).toEqual([
      undefined,
      true,
    ])
  })
})

describe('a trial', () => {
  const alone = (position: number) =>
    new Suspicion(
      [
        { position: -1, instance: 'dead' },
        { position, instance: 'late' },
      ],
      true,
      'i',
      9,
    )

  it.for([
    ['success', (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.succeeded(...at, triedOf(at[1]), 1)],
    ['a park', (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.failed(...at, failure.permanent('no'))],
    ['a repeat', (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.repeated(...at, null)],
  ] as const)('is over with %s', ([, act]) => {
    const one = judging({ definition: { failure: quick } }, alone(99))
    act(one, ...one.live('a', 1))
    expect(one.handlerState.ledger.take()).toMatchObject({ endedTrials: [1], acquitted: undefined })
  })

  const begun = () => {
    const suspicion = alone(1)
    suspicion.committed({ trial: { position: 1, instance: 'i' } })
    return suspicion
  }

  it.for([
    [
      'a retry in place',
      quick,
      (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.failed(...at, not('now')),
    ],
    ['a retry', slow, (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.failed(...at, not('now'))],
    ['a breaker', slow, (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.defer(...at, 'notify:a', 5)],
    ['a stop', slow, (one: ReturnType<typeof judging>, ...at: Trying) => one.verdicts.putOff(...at)],
  ] as const)('is taken back with %s, and what others died over stays', ([, policy, act]) => {
    const one = judging({ definition: { failure: policy } }, begun())
    act(one, ...one.live('a', 1))
    expect(one.handlerState.ledger.take()).toMatchObject({ endedTrials: [], acquitted: 'i' })
  })

  it('is taken back for a letter that steps aside', async () => {
    const one = judging({ held: [heldLane('h')], definition: { failure: shy } }, begun())
    one.handlerState.flow.stand('outage', undefined, fixed('1s'), 2, 0)
    one.verdicts.failed(...one.held('h', 1), not('down'))
    expect(one.handlerState.ledger.take()).toMatchObject({ endedTrials: [], acquitted: 'i' })
  })

  it('that the store does not have is not taken back', () => {
    const one = judging({ definition: { failure: quick } }, alone(99))
    one.verdicts.failed(...one.live('a', 1), not('now'))
    expect(one.handlerState.ledger.isEmpty).toBe(true)
  })

  it('is needed for what failed then, also when the others have their outcomes, if it was tried at all', () => {
    for (const [what, position, isTried, isFollowed] of [
      ['a suspect', 1, true, true],
      ['one that was not even tried', 1, false, false],
      ['one that nobody had begun', 5, true, false],
    ] as const) {
      const one = judging({ definition: { failure: quick } }, alone(99), 1)
      const [track, entry] = one.live('a', position)
      one.verdicts.failed(track, entry, not('now'), isTried ? triedOf(entry) : undefined)
      one.handlerState.suspicion.end()
      expect([what, one.handlerState.suspicion.follows(position)]).toEqual([what, isFollowed])
    }
  })

  it('of one that is followed is needed until it has failed as often as processes may die', () => {
    const trials = [{ position: 1, instance: 'dead' }]
    const one = judging({ definition: { failure: slow } }, new Suspicion(trials, false, 'i', 2, new Set([1])))
    const endedBy = () => {
      const [track, entry] = one.held('a', 1)
      one.verdicts.failed(track, entry, not('now'), triedOf(entry))
      return one.handlerState.ledger.take().endedTrials
    }
    expect([endedBy(), one.handlerState.suspicion.follows(1)]).toEqual([[], true])
    expect([endedBy(), one.handlerState.suspicion.follows(1)]).toEqual([[1], false])
  })

  it('is still to come for a suspect that waits for its breaker, and for none that waits for its time', () => {
    const areOver = (act: (one: ReturnType<typeof judging>, ...at: Trying) => void) => {
      const one = judging({ definition: { failure: slow } }, alone(99), 1)
      act(one, ...one.live('a', 1))
      return one.handlerState.suspects.areOver(one.handlerState.window, true)
    }
    expect(areOver((one, ...at) => one.verdicts.defer(...at, 'notify:a', 5))).toBe(false)
    expect(areOver((one, ...at) => one.verdicts.failed(...at, not('now')))).toBe(true)
  })

  it('of one that is to blame is kept, and it is blamed once', () => {
    const one = judging({}, new Suspicion([{ position: 1, instance: 'dead' }], true, 'i', 2))
    expect(one.handlerState.suspicion.deathsOver(1)).toBe(2)
    one.verdicts.blame(...one.live('a', 1), 2)
    expect(one.handlerState.ledger.take().endedTrials).toEqual([])
    expect(one.handlerState.suspicion.deathsOver(1)).toBeUndefined()
  })
})

describe('where the order of the partition is kept', () => {
  const definition = { order: 'partition', failure: slow } as const

  it('everything waits for what fails, as its policy says', async () => {
    const { handlerState, verdicts, live, runtime, now, tells, events } = judging({ definition })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect(handlerState.flow.standstill).toMatchObject({ why: 'order', probeAt: now() + 2_000 })
    expect([track.entries, entry.tries, handlerState.partition.held.size]).toEqual([[entry], 1, 0])
    await runtime.advance(2_000)
    track.entries.shift()
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect([entry.tries, handlerState.flow.standstill?.probeAt, handlerState.flow.standstill?.probes]).toEqual([
      2,
      now() + 2_000,
      0,
    ])
    expect([track.entries, events.filter((one) => one === 'message.nacked a').length]).toEqual([[entry], 2])
    await runtime.advance(2_000)
    track.entries.shift()
    // The policy has no more attempts: it is parked, and nothing behind it is begun.
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'parked', tries: 3, headPosition: 1 })
    expect([handlerState.flow.standstill, handlerState.tracks.isBarred(''), tells()]).toEqual([undefined, true, 2])
    expect(events.filter((one) => one.startsWith('subscription'))).toEqual(['subscription.blocked '])
  })

  it('everything goes on when what fails goes through in its place', async () => {
    const { handlerState, verdicts, live, runtime, events } = judging({ definition })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    await runtime.advance(2_000)
    track.entries.shift()
    verdicts.succeeded(track, entry, triedOf(entry), undefined)
    expect([handlerState.flow.standstill, handlerState.tracks.isBarred(''), handlerState.partition.held.size]).toEqual([
      undefined,
      false,
      0,
    ])
    expect(events.filter((one) => one.startsWith('subscription'))).toEqual([
      'subscription.blocked ',
      'subscription.resumed ',
    ])
  })

  it('others that were read behind one to blame keep their place', () => {
    const { handlerState, verdicts } = judging({ definition })
    const entries = ['a', 'b', 'a', 'c'].map((lane, i) => entryOf(handlerState, letterOf(lane, i + 1).event))
    handlerState.window.add(entries, 4)
    for (const entry of entries) handlerState.tracks.add('', entry)
    const track = handlerState.tracks.get('')
    if (!track) throw new Error('nothing was given')
    handlerState.tracks.begin(track)
    track.entries.shift()
    verdicts.blame(track, entries[0] as Entry, 3)
    expect(handlerState.ledger.take().held.map(({ status, event }) => [status, event.position])).toEqual([
      ['parked', 1],
    ])
    expect(handlerState.tracks.get('')?.entries.map(({ record }) => record.position)).toEqual([2, 3, 4])
    expect([handlerState.window.unfinished, handlerState.tracks.peek(1)]).toEqual([3, undefined])
  })

  it('what can not be read is not passed over', () => {
    const { handlerState, verdicts, live } = judging({ definition })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, failure.permanent('never'), triedOf(entry))
    expect([handlerState.flow.standstill, handlerState.partition.held.get('a')?.status]).toEqual([undefined, 'parked'])
    expect(handlerState.tracks.isBarred('')).toBe(true)
  })

  it('what can not be read when its turn comes again is parked as well', async () => {
    const { handlerState, verdicts, live, runtime } = judging({ definition })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    await runtime.advance(2_000)
    track.entries.shift()
    verdicts.unreadable(track, entry, describeFailure('no JSON', 'permanent', 'read'))
    expect([handlerState.flow.standstill, handlerState.partition.held.get('a')?.status]).toEqual([undefined, 'parked'])
    expect(handlerState.tracks.isBarred('')).toBe(true)
  })

  it('what is asked for by a breaker, or could not even be asked, counts as it does elsewhere', async () => {
    const breaker = { opens: { failures: 1 } }
    const { handlerState, verdicts, live, runtime } = judging({ definition: { ...definition, breaker } })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect(handlerState.flow.standstill?.why).toBe('order')
    const { event } = triedOf(entry)
    handlerState.waits.report('a', await handlerState.waits.enter(event), false)
    await runtime.advance(60_000)
    const pass = await handlerState.waits.enter(event)
    expect(pass.entry).toBe('probe')
    track.entries.shift()
    verdicts.failed(track, entry, not('down'), triedOf(entry, pass))
    // It was the breaker's question.
    expect([entry.tries, track.entries, handlerState.flow.standstill?.why]).toEqual([1, [entry], 'order'])
    track.entries.shift()
    verdicts.failed(track, entry, not('no key'))
    expect([entry.tries, track.entries]).toEqual([2, [entry]])
  })

  it('a letter of which nobody waits for the outcome lets nothing go on', () => {
    const { handlerState, verdicts, live, held } = judging({ held: [heldLane('h')], definition })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    verdicts.repeated(...held('h', 1), null)
    expect(handlerState.flow.standstill?.why).toBe('order')
  })

  it('what is to be skipped is passed over, also where everything waits for it', () => {
    const { handlerState, verdicts, live } = judging({ definition })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    track.entries.shift()
    verdicts.failed(track, entry, failure.skip('not needed'), triedOf(entry))
    expect(handlerState.ledger.take().counts).toMatchObject({ discarded: 1 })
    expect([handlerState.flow.standstill, handlerState.window.unfinished]).toEqual([undefined, 0])
  })
})

describe('a policy that stops everything', () => {
  it.for([
    ['block', definePolicy({ dependency: block(fixed('3s')), outage: false }), 'block'],
    ['pause', definePolicy({ dependency: pause({ failures: 1, for: '3s' }), outage: false }), 'pause'],
  ] as const)('by %s leaves the event where it is', ([, policy, why]) => {
    const { handlerState, verdicts, live, now } = judging({ definition: { failure: policy } })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, failure.dependency('the disk'), triedOf(entry))
    expect(handlerState.flow.standstill).toMatchObject({ why, failure: { class: 'dependency' } })
    expect(handlerState.flow.standstill?.probeAt).toBe(now() + 3_000)
    expect([track.entries, entry.tries, handlerState.ledger.isEmpty]).toEqual([[entry], 0, true])
  })

  it('asks others too when what it stands at fails in another way', async () => {
    const policy = definePolicy({
      dependency: block(fixed('3s')),
      transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park),
      outage: false,
    })
    const { handlerState, verdicts, live, runtime } = judging({ definition: { failure: policy } })
    const [track, entry] = live('a', 1)
    verdicts.failed(track, entry, failure.dependency('the disk'), triedOf(entry))
    expect(handlerState.flow.isAnybodys).toBe(false)
    await runtime.advance(3_000)
    track.entries.shift()
    verdicts.failed(track, entry, failure.dependency('the disk'), triedOf(entry))
    expect(handlerState.flow.isAnybodys).toBe(false)
    await runtime.advance(3_000)
    track.entries.shift()
    verdicts.failed(track, entry, not('now'), triedOf(entry))
    expect(handlerState.flow.isAnybodys).toBe(true)
  })
})
