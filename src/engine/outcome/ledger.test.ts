import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Failure } from '../../failure/failure.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { type Held, Ledger } from './ledger.ts'

const record = (position: number) => ({ position, id: `e${position}` }) as RecordedEvent
const failure = (message: string) => ({ message }) as Failure
const [no, again] = [failure('no'), failure('again')]
const mark = { key: 'k' } as never
const skip = { by: 'policy', reason: 'no matter' }
const entry = (lane: string, position: number, unrecorded: readonly Failure[] = []): Held => ({
  record: record(position),
  lane,
  sequence: position,
  logged: true,
  unrecorded,
})
const hold = (lane: string, more: Partial<HeldLane> = {}): HeldLane => ({
  lane,
  status: 'parked',
  since: 5,
  done: undefined,
  head: 1,
  headPosition: 1,
  ...more,
})
const task = (lane: string, act: RedriveTask['act'] = 'redrive') =>
  ({ redrive: 'r', lane, position: 1, act, by: 'ada', reason: 'mended' }) as RedriveTask
const nothing = { applied: 0, filtered: 0, duplicate: 0, held: 0, discarded: 0 }
const letter = (lane: string, position: number, status: string, of: Failure | undefined) => ({
  lane,
  sequence: position,
  status,
  logged: true,
  event: record(position),
  failure: of,
})

function ledger(...lanes: HeldLane[]) {
  const held = new Map(lanes.map((one) => [one.lane, one]))
  return { held, ledger: new Ledger(held, () => 100) }
}

describe('a ledger', () => {
  it('counts what came to an end without a letter, and begins anew when it was taken', () => {
    const { ledger: book } = ledger()
    expect(book.isEmpty).toBe(true)
    book.applied(record(1), mark)
    book.applied(record(2), undefined)
    book.filtered()
    book.unknown(record(4))
    book.filtered()
    book.duplicate()
    expect(book.isEmpty).toBe(false)
    expect(book.take()).toEqual({
      counts: { ...nothing, applied: 2, filtered: 2, duplicate: 1 },
      rows: [],
      lanes: [],
      held: [],
      letters: [],
      inbox: [mark],
      endedTrials: [],
      acquitted: undefined,
      applied: [record(1), record(2)],
      stopped: [],
      released: [],
      unknown: [record(4)],
      redriven: [],
      passing: [],
    })
    expect(book.isEmpty).toBe(true)
    expect(book.take()).toMatchObject({ counts: nothing, applied: [], inbox: [], unknown: [] })
  })

  it('is not empty with trials that are over', () => {
    const { ledger: book } = ledger()
    book.endTrials([])
    expect(book.isEmpty).toBe(true)
    book.endTrials([3, 4])
    expect(book.isEmpty).toBe(false)
    expect(book.take().endedTrials).toEqual([3, 4])
    expect(book.take().endedTrials).toEqual([])
  })

  it('is not empty when a word is to be taken back', () => {
    const { ledger: book } = ledger()
    book.acquit(undefined)
    expect(book.isEmpty).toBe(true)
    book.acquit('me')
    book.acquit(undefined)
    expect(book.isEmpty).toBe(false)
    expect([book.take().acquitted, book.isEmpty, book.take().acquitted]).toEqual(['me', true, undefined])
  })

  it('keeps what is behind a held lane, and what is passed over', () => {
    const { ledger: book } = ledger(hold('a'))
    book.queued(entry('a', 2))
    expect([book.touches('a'), book.touches('b')]).toEqual([true, false])
    book.skipped(entry('b', 3), no, skip)
    expect(book.take()).toMatchObject({
      counts: { ...nothing, held: 1, discarded: 1 },
      lanes: [],
      held: [
        letter('a', 2, 'queued', undefined),
        { ...letter('b', 3, 'discarded', no), ending: { by: 'policy', reason: 'no matter' } },
      ],
    })
    expect([book.touches('a'), book.isEmpty]).toEqual([false, true])
  })
})

describe('a lane that is held', () => {
  it('has a letter with its first failure, and those that came after it', () => {
    const { ledger: book, held } = ledger()
    book.hold(entry('a', 7, [no]), { status: 'retrying', tries: 2, dueAt: 300 }, again)
    expect(held.get('a')).toEqual(
      hold('a', { status: 'retrying', since: 100, head: 7, headPosition: 7, tries: 2, dueAt: 300 }),
    )
    expect(book.touches('a')).toBe(true)
    expect(book.take()).toMatchObject({
      counts: { ...nothing, held: 1 },
      lanes: [{ lane: 'a', hold: held.get('a'), done: undefined }],
      held: [letter('a', 7, 'retrying', no)],
      letters: [{ change: 'failed', position: 7, status: 'retrying', failure: again }],
      stopped: [{ lane: 'a', status: 'retrying', record: record(7), failure: again }],
    })
    expect([book.touches('a'), book.take().lanes, book.take().stopped]).toEqual([false, [], []])
  })

  it('waits for a breaker without a failure of its own', () => {
    const { ledger: book } = ledger()
    book.hold(entry('a', 7), { status: 'waiting', tries: 0, breaker: 'x' }, undefined)
    expect(book.take()).toMatchObject({ held: [letter('a', 7, 'waiting', undefined)], letters: [] })
    // What it failed of before is told, and then that it waits.
    book.hold(entry('b', 8, [no, again]), { status: 'waiting', tries: 2, breaker: 'x' }, undefined)
    expect(book.take().letters).toEqual([
      { change: 'failed', position: 8, status: 'retrying', failure: again },
      { change: 'status', position: 8, status: 'waiting' },
    ])
  })

  it('is held on since it was first held', () => {
    const { ledger: book, held } = ledger(hold('a', { status: 'retrying' }))
    book.heldOn(entry('a', 1, [no]), { status: 'retrying', tries: 3, dueAt: 400 }, again)
    expect(held.get('a')).toMatchObject({ status: 'retrying', since: 5, tries: 3, dueAt: 400 })
    expect(book.take()).toMatchObject({
      counts: nothing,
      letters: [
        { change: 'failed', position: 1, status: 'retrying', failure: no },
        { change: 'failed', position: 1, status: 'retrying', failure: again },
      ],
      stopped: [],
    })
    book.heldOn(entry('a', 1), { status: 'waiting', tries: 3, breaker: 'x' }, again)
    expect(book.take().letters).toEqual([{ change: 'status', position: 1, status: 'waiting' }])
    book.heldOn(entry('a', 1), { status: 'retrying', tries: 3, dueAt: 1 }, undefined)
    expect(book.take().letters).toEqual([{ change: 'status', position: 1, status: 'retrying' }])
  })

  it('ends what a redrive does with it when it is parked, or waits for a breaker', () => {
    const retried = hold('a', { status: 'retrying', redrive: 'r' })
    const { ledger: book } = ledger(retried, { ...retried, lane: 'b' }, { ...retried, lane: 'c' })
    book.heldOn(entry('a', 1), { status: 'retrying', tries: 0, dueAt: 1 }, undefined)
    expect(book.take().redriven).toEqual([])
    book.heldOn(entry('a', 1), { status: 'parked', tries: 1 }, no)
    book.heldOn(entry('b', 1), { status: 'waiting', tries: 1, breaker: 'x' }, undefined)
    const { redriven, lanes } = book.take()
    expect(redriven).toEqual([
      { redrive: 'r', lane: 'a', letters: 0, state: 'failed' },
      { redrive: 'r', lane: 'b', letters: 0, state: 'deferred' },
    ])
    expect(lanes.map((write) => write.hold?.redrive)).toEqual([undefined, undefined])
    // What becomes of it later is not the redrive's any more.
    book.heldOn(entry('b', 1), { status: 'parked', tries: 1 }, no)
    expect(book.take().redriven).toEqual([])
  })

  it('that waited for a breaker is to be tried, with its attempts, before its letters are loaded', () => {
    const waiting = hold('a', { status: 'waiting', breaker: 'x', tries: 2 })
    const { ledger: book, held } = ledger(waiting, hold('b'))
    book.takeUp('a')
    book.takeUp('b')
    book.takeUp('unknown')
    expect(held.get('a')).toEqual({ ...waiting, status: 'retrying', breaker: undefined })
    expect(book.touches('a')).toBe(true)
    expect(book.take()).toMatchObject({
      letters: [{ change: 'status', position: 1, status: 'retrying' }],
      lanes: [{ lane: 'a', hold: { status: 'retrying', tries: 2 } }],
    })
  })

  it('is told of when it is parked', () => {
    const { ledger: book } = ledger(hold('a', { status: 'retrying' }))
    book.heldOn(entry('a', 1), { status: 'parked', tries: 4 }, no)
    expect(book.take()).toMatchObject({
      letters: [{ change: 'failed', position: 1, status: 'parked', failure: no }],
      stopped: [{ lane: 'a', status: 'parked', record: record(1), failure: no }],
    })
    book.heldOn(entry('b', 2), { status: 'parked', tries: 4 }, undefined)
    expect(book.take()).toMatchObject({ letters: [], lanes: [{ hold: { since: 100 } }] })
  })

  it('has its attempts back only if it is to be tried again', () => {
    const { ledger: book, held } = ledger(
      hold('a', { status: 'retrying', tries: 3, dueAt: 900 }),
      hold('b', { tries: 3 }),
    )
    book.giveBack('b', 50)
    book.giveBack('c', 50)
    expect(book.isEmpty).toBe(true)
    book.giveBack('a', 50)
    expect([held.get('a'), held.get('b')]).toMatchObject([{ tries: 0, dueAt: 50 }, { tries: 3 }])
    expect(book.isEmpty).toBe(false)
  })
})

describe('a letter whose turn has come', () => {
  it('is applied after all, with how it failed before', () => {
    const { ledger: book } = ledger(hold('a', { status: 'retrying' }))
    book.resolved(entry('a', 1, [no]), 'applied', mark)
    expect(book.take()).toMatchObject({
      counts: { ...nothing, held: -1, applied: 1 },
      applied: [record(1)],
      inbox: [mark],
      letters: [
        { change: 'failed', position: 1, status: 'retrying', failure: no },
        { change: 'resolved', position: 1, by: 'engine' },
      ],
      redriven: [],
    })
    book.resolved(entry('a', 2), 'applied')
    expect(book.take().inbox).toEqual([])
  })

  it('was done before, or is passed over', () => {
    const { ledger: book } = ledger(hold('a', { status: 'retrying' }))
    book.repeated(entry('a', 1))
    expect(book.take()).toMatchObject({
      counts: { ...nothing, held: -1, duplicate: 1 },
      letters: [{ change: 'resolved', position: 1, by: 'engine' }],
    })
    book.discarded({ ...entry('a', 2), unrecorded: [no] }, no, skip)
    expect(book.take()).toMatchObject({
      counts: { ...nothing, held: -1, discarded: 1 },
      letters: [
        { change: 'failed', position: 2, failure: no },
        { change: 'failed', position: 2, failure: no },
        { change: 'discarded', position: 2, ending: { by: 'policy', reason: 'no matter' } },
      ],
    })
  })

  it('makes way for the next, or lets the lane flow', () => {
    const { ledger: book, held } = ledger(hold('a', { status: 'retrying', tries: 2, redrive: 'r' }))
    book.advance('b', undefined)
    expect(book.isEmpty).toBe(true)
    book.advance('a', { sequence: 4, position: 40 })
    expect(held.get('a')).toEqual(hold('a', { status: 'retrying', head: 4, headPosition: 40, redrive: 'r' }))
    expect(book.take()).toMatchObject({
      letters: [{ change: 'status', position: 40, status: 'retrying' }],
      released: [],
      redriven: [],
    })
    expect(book.underWay).toBe(1)
    book.advance('a', undefined)
    expect([held.has('a'), book.underWay]).toEqual([false, 0])
    expect(book.take()).toMatchObject({
      lanes: [{ lane: 'a', hold: undefined }],
      released: ['a'],
      redriven: [{ redrive: 'r', lane: 'a', letters: 0, state: 'done' }],
    })
    expect(book.take().released).toEqual([])
  })
})

describe('a redrive', () => {
  it('has lanes under way, and leaves those that wait for a breaker', () => {
    const { ledger: book } = ledger(
      hold('a', { status: 'retrying', redrive: 'r' }),
      hold('b', { status: 'waiting', redrive: 'r' }),
      hold('c'),
      hold('d', { status: 'retrying', redrive: 'other' }),
    )
    book.leaveRedrives()
    expect(book.underWay).toBe(2)
    expect(book.take().redriven).toEqual([{ redrive: 'r', lane: 'b', letters: 0, state: 'deferred' }])
    expect([book.waiting('r', new Set()), book.waiting('r', new Set(['a'])), book.waiting('x', new Set())]).toEqual([
      1, 0, 0,
    ])
    book.heldOn(entry('a', 1), { status: 'retrying', tries: 0, dueAt: 1 }, undefined)
    expect(book.underWay).toBe(2)
    book.heldOn(entry('a', 1), { status: 'waiting', tries: 0, breaker: 'x' }, undefined)
    expect(book.underWay).toBe(1)
    book.heldOn(entry('d', 1), { status: 'parked', tries: 1 }, no)
    expect(book.underWay).toBe(0)
  })

  it('begins a lane, which is tried again', () => {
    const { ledger: book, held } = ledger(hold('a', { tries: 3 }), hold('b', { status: 'waiting' }))
    book.begin(task('a'))
    book.begin(task('b', 'skip'))
    expect(held.get('a')).toEqual(hold('a', { status: 'retrying', redrive: 'r' }))
    expect(book.take()).toMatchObject({
      counts: nothing,
      letters: [
        { change: 'status', position: 1, status: 'retrying' },
        { change: 'status', position: 1, status: 'retrying' },
      ],
      redriven: [
        { redrive: 'r', lane: 'a', letters: 0, state: 'running' },
        { redrive: 'r', lane: 'b', letters: 0, state: 'running' },
      ],
    })
  })

  it('leaves the head of a lane out, by the word of a person', () => {
    const { ledger: book } = ledger(hold('a'), hold('b'))
    book.begin(task('a', 'discard'))
    book.begin(task('b', 'resolve'))
    expect(book.take()).toMatchObject({
      counts: { ...nothing, held: -2, discarded: 2 },
      letters: [
        { change: 'discarded', position: 1, ending: { by: 'ada', reason: 'mended' } },
        { change: 'resolved', position: 1, by: 'ada', reason: 'mended' },
      ],
      redriven: [{ letters: 1, state: 'running' }, { letters: 1 }],
    })
  })

  it('is told how many letters of a lane came to an end, and how it stands', () => {
    const { ledger: book } = ledger(hold('a'))
    book.begin(task('a'))
    book.resolved(entry('a', 1), 'applied')
    book.repeated(entry('a', 2))
    book.discarded(entry('a', 3), no, skip)
    book.heldOn(entry('a', 4), { status: 'parked', tries: 1 }, no)
    expect(book.take().redriven).toEqual([{ redrive: 'r', lane: 'a', letters: 3, state: 'failed' }])
    expect(book.take().redriven).toEqual([])
  })

  it('passes a lane that another redrive has not finished, and keeps what became of that', () => {
    const { ledger: book } = ledger(hold('a', { status: 'retrying', redrive: 'earlier' }))
    book.notStarted(task('a'))
    book.resolved(entry('a', 1), 'applied')
    book.advance('a', undefined)
    expect(book.take().redriven).toEqual([
      { redrive: 'r', lane: 'a', letters: 0, state: 'passed' },
      { redrive: 'earlier', lane: 'a', letters: 1, state: 'done' },
    ])
  })

  it('passes a lane that is not as it was', () => {
    const { ledger: book } = ledger(hold('a'))
    book.notStarted(task('a'))
    expect(book.isEmpty).toBe(false)
    expect(book.take().redriven).toEqual([{ redrive: 'r', lane: 'a', letters: 0, state: 'passed' }])
  })
})
