import type { HeldLane, NewLetter } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Failure } from '../../failure/failure.ts'
import type { InboxMark } from '../../handler/inbox-store.ts'
import type { RedriveProgress, RedriveTask } from '../../redrive/redrive.ts'
import { type MutableCounts, noCounts, totalOf } from '../../subscription/checkpoint.ts'
import type { LaneWrite, LetterChange } from '../../subscription/subscription-store.ts'
import type { Written } from '../tenure.ts'
import type { StoppedLane } from '../work.ts'
import type { Entry } from './entry.ts'
import type { Track } from './tracks.ts'

/** How a lane is held. */
export type Holding =
  | { readonly status: 'parked'; readonly tries: number }
  | { readonly status: 'retrying'; readonly tries: number; readonly dueAt: number }
  | { readonly status: 'waiting'; readonly tries: number; readonly breaker: string }

export interface Held {
  readonly record: RecordedEvent
  readonly lane: string
  readonly sequence: number
  readonly logged: boolean
  /** Earlier failures that are not in a letter yet. */
  readonly unrecorded: readonly Failure[]
}

/** A group of outcomes for one commit. */
export interface Group extends Written {
  readonly inbox: readonly InboxMark[]
  readonly endedTrials: readonly number[]
  readonly acquitted: string | undefined
  readonly applied: readonly RecordedEvent[]
  readonly stopped: readonly StoppedLane[]
  readonly released: readonly string[]
  readonly unknown: readonly RecordedEvent[]
  readonly redriven: readonly RedriveProgress[]
  /** Tracks whose head is skipped: they continue after the commit. */
  readonly passing: readonly Track<Entry>[]
}

/**
 * Collects the outcomes of a handler's events until the commit. `held` is the owner's state of its held lanes; it changes here
 * immediately, and in the store with the commit.
 */
export class Ledger {
  readonly #held: Map<string, HeldLane>
  readonly #now: () => number
  #counts: MutableCounts = noCounts()
  #lanes = new Set<string>()
  #letters: NewLetter[] = []
  readonly #letterLanes = new Set<string>()
  #changes: LetterChange[] = []
  #inbox: InboxMark[] = []
  #endedTrials: number[] = []
  #acquitted: string | undefined
  #applied: RecordedEvent[] = []
  #stopped: StoppedLane[] = []
  #released: string[] = []
  #unknown: RecordedEvent[] = []
  /** By lane: a lane is in one redrive at a time. */
  #redriven = new Map<string, RedriveProgress>()
  #passing: Track<Entry>[] = []
  /** Lanes that a redrive is trying. */
  readonly #underWay = new Set<string>()

  constructor(held: Map<string, HeldLane>, now: () => number) {
    this.#held = held
    this.#now = now
    for (const hold of held.values()) {
      if (hold.redrive === undefined) continue
      // An earlier release kept lanes in their redrive while they waited for a breaker.
      if (hold.status === 'waiting') this.#leave(hold)
      else this.#underWay.add(hold.lane)
    }
  }

  /** The number of lanes that redrives are processing. */
  get underWay(): number {
    return this.#underWay.size
  }

  /** Lanes that redrives have started and not finished. */
  get lanesUnderWay(): Iterable<string> {
    return this.#underWay
  }

  /** The number of lanes of a redrive that are started but not being tried yet. */
  waiting(redrive: string, draining: ReadonlySet<string>): number {
    let waiting = 0
    for (const lane of this.#underWay) if (!draining.has(lane) && this.#held.get(lane)?.redrive === redrive) waiting++
    return waiting
  }

  get isEmpty(): boolean {
    return (
      totalOf(this.#counts) === 0 &&
      this.#letters.length + this.#changes.length + this.#endedTrials.length + this.#lanes.size === 0 &&
      this.#redriven.size === 0 &&
      this.#acquitted === undefined
    )
  }

  /** Whether any lane has uncommitted changes. */
  get hasLanes(): boolean {
    return this.#lanes.size > 0
  }

  /** Whether a lane has uncommitted changes. */
  touches(lane: string): boolean {
    return this.#lanes.has(lane) || this.#letterLanes.has(lane)
  }

  /** The head of a track is skipped. The track waits for the commit, because a retry after a death may have another outcome. */
  passOver(track: Track<Entry>): void {
    this.#passing.push(track)
  }

  /** Tracks that continue after the commit. */
  get passing(): readonly Track<Entry>[] {
    return this.#passing
  }

  filtered(record: RecordedEvent, isUnknown: boolean): void {
    this.#counts.filtered++
    if (isUnknown) this.#unknown.push(record)
  }

  duplicate(): void {
    this.#counts.duplicate++
  }

  applied(record: RecordedEvent, mark: InboxMark | undefined): void {
    this.#counts.applied++
    this.#applied.push(record)
    if (mark) this.#inbox.push(mark)
  }

  /** The event is queued in its held lane. */
  queued({ record, lane, sequence, logged }: Held): void {
    this.#counts.held++
    this.#letterLanes.add(lane)
    this.#letters.push({ lane, sequence, status: 'queued', logged, event: record, failure: undefined })
  }

  /** The event is recorded and skipped. */
  skipped({ record, lane, sequence, logged }: Held, failure: Failure, reason: string): void {
    this.#counts.discarded++
    const ending = { by: 'policy', reason }
    this.#letters.push({ lane, sequence, status: 'discarded', logged, event: record, failure, ending })
  }

  /** A lane is held from this event on. */
  hold({ record, lane, sequence, logged, unrecorded }: Held, holding: Holding, failure: Failure | undefined): void {
    this.#counts.held++
    const [first = failure, ...more] = [...unrecorded, ...(failure ? [failure] : [])]
    this.#letters.push({ lane, sequence, status: holding.status, logged, event: record, failure: first })
    this.#failed(record, more, holding.status)
    this.#hang({ lane, since: this.#now(), done: undefined, head: sequence, headPosition: record.position, ...holding })
    this.#stopped.push({ lane, status: holding.status, record, failure })
  }

  /** The head of a held lane failed again or must wait. */
  heldOn({ record, lane, sequence, unrecorded }: Held, holding: Holding, failure: Failure | undefined): void {
    const before = this.#held.get(lane)
    const { position } = record
    this.#failed(record, unrecorded, holding.status)
    if (failure && holding.status !== 'waiting')
      this.#changes.push({ change: 'failed', position, status: holding.status, failure })
    else if (holding.status !== 'parked') this.#changes.push({ change: 'status', position, status: holding.status })
    const since = before?.since ?? this.#now()
    if (holding.status === 'parked') this.#progress(lane, 0, 'failed')
    // The lane continues by itself when the breaker closes, so the redrive does not wait for it.
    if (holding.status === 'waiting') this.#progress(lane, 0, 'deferred')
    const redrive = holding.status === 'retrying' ? before?.redrive : undefined
    this.#hang({ lane, since, done: undefined, head: sequence, headPosition: position, redrive, ...holding })
    if (holding.status === 'parked') this.#stopped.push({ lane, status: 'parked', record, failure })
  }

  /** The head of a held lane has ended: applied or skipped. */
  resolved({ record, lane, unrecorded }: Held, mark: InboxMark | undefined): void {
    this.#failed(record, unrecorded, 'retrying')
    this.#progress(lane, 1, 'running')
    this.#counts.held--
    this.#counts.applied++
    this.#applied.push(record)
    this.#changes.push({ change: 'resolved', position: record.position, by: 'engine' })
    if (mark) this.#inbox.push(mark)
  }

  repeated({ record, lane }: Held): void {
    this.#progress(lane, 1, 'running')
    this.#counts.held--
    this.#counts.duplicate++
    this.#changes.push({ change: 'resolved', position: record.position, by: 'engine' })
  }

  discarded({ record, lane, unrecorded }: Held, failure: Failure, reason: string): void {
    this.#failed(record, [...unrecorded, failure], 'retrying')
    this.#progress(lane, 1, 'running')
    this.#counts.held--
    this.#counts.discarded++
    const ending = { by: 'policy', reason }
    this.#changes.push({ change: 'discarded', position: record.position, ending })
  }

  /** A redrive starts a lane: its letters are tried, or its head is ended without a try. */
  begin(task: RedriveTask): void {
    const { redrive, lane, position, act } = task
    const before = this.#held.get(lane) as HeldLane
    const { since, head, headPosition } = before
    this.#hang({ lane, status: 'retrying', since, done: undefined, head, headPosition, redrive })
    this.#progress(lane, 0, 'running')
    if (act === 'redrive' || act === 'skip') {
      this.#changes.push({ change: 'status', position, status: 'retrying' })
      return
    }
    this.leaveOut(task, position)
  }

  /** Ends a letter of a started lane without a try: the head, or a later letter if the whole lane is ended. */
  leaveOut({ lane, act, by, reason }: RedriveTask, position: number): void {
    this.#progress(lane, 1, 'running')
    this.#counts.held--
    this.#counts.discarded++
    if (act === 'resolve') this.#changes.push({ change: 'resolved', position, by, reason })
    else this.#changes.push({ change: 'discarded', position, ending: { by, reason } })
  }

  /**
   * A lane that waited for a breaker is about to be tried. That is committed before its letters are loaded: until then an operator may edit
   * them, and an edit between the load and the attempt would be accepted without effect.
   */
  takeUp(lane: string): void {
    const hold = this.#held.get(lane)
    if (hold?.status !== 'waiting') return
    this.#changes.push({ change: 'status', position: hold.headPosition, status: 'retrying' })
    this.#hang({ ...hold, status: 'retrying', breaker: undefined })
  }

  /** A due lane waits for the breaker of the whole handler, without an attempt. */
  defer(lane: string, breaker: string): void {
    const { since, head, headPosition, tries } = this.#held.get(lane) as HeldLane
    this.#changes.push({ change: 'status', position: headPosition, status: 'waiting' })
    this.#progress(lane, 0, 'deferred')
    this.#hang({ lane, status: 'waiting', since, done: undefined, head, headPosition, tries, breaker })
  }

  /** The lane has changed since the redrive was requested. */
  passed({ redrive, lane }: RedriveTask): void {
    this.#redriven.set(lane, { redrive, lane, letters: 0, state: 'passed' })
  }

  /** The next letter becomes the head of a lane; undefined: the lane is released. */
  advance(lane: string, next: { readonly sequence: number; readonly position: number } | undefined): void {
    const before = this.#held.get(lane)
    if (!before) return
    if (next) {
      this.#changes.push({ change: 'status', position: next.position, status: 'retrying' })
      const { since, redrive } = before
      const { sequence: head, position: headPosition } = next
      this.#hang({ lane, status: 'retrying', since, done: undefined, head, headPosition, redrive })
      return
    }
    this.#progress(lane, 0, 'done')
    this.#held.delete(lane)
    this.#underWay.delete(lane)
    this.#lanes.add(lane)
    this.#released.push(lane)
  }

  /** The attempts at a lane's head don't count: the event was not the cause. */
  giveBack(lane: string, dueAt: number): void {
    const hold = this.#held.get(lane)
    if (hold?.status === 'retrying') this.#hang({ ...hold, tries: 0, dueAt })
  }

  endTrials(positions: readonly number[]): void {
    this.#endedTrials.push(...positions)
  }

  /** Withdraws the trial of a process, because the event will be tried again. */
  acquit(instance: string | undefined): void {
    this.#acquitted = instance ?? this.#acquitted
  }

  /** Takes all collected outcomes and empties the ledger. */
  take(): Group {
    const lanes = Array.from(this.#lanes, (lane): LaneWrite => ({ lane, hold: this.#held.get(lane), done: undefined }))
    const group: Group = {
      counts: this.#counts,
      rows: [],
      lanes,
      held: this.#letters,
      letters: this.#changes,
      inbox: this.#inbox,
      endedTrials: this.#endedTrials,
      acquitted: this.#acquitted,
      applied: this.#applied,
      stopped: this.#stopped,
      released: this.#released,
      unknown: this.#unknown,
      redriven: [...this.#redriven.values()],
      passing: this.#passing,
    }
    this.#counts = noCounts()
    this.#lanes = new Set()
    this.#letters = []
    this.#letterLanes.clear()
    this.#changes = []
    this.#inbox = []
    this.#endedTrials = []
    this.#acquitted = undefined
    this.#applied = []
    this.#stopped = []
    this.#released = []
    this.#unknown = []
    this.#redriven = new Map()
    this.#passing = []
    return group
  }

  /** Adds failed attempts to the letter of an event, and its status after them. */
  #failed({ position }: RecordedEvent, failures: readonly Failure[], status: Holding['status']): void {
    const isWaiting = status === 'waiting'
    for (const failure of failures)
      this.#changes.push({ change: 'failed', position, status: isWaiting ? 'retrying' : status, failure })
    if (isWaiting && failures.length > 0) this.#changes.push({ change: 'status', position, status })
  }

  /** Records the progress of the redrive that a lane belongs to, if any. */
  #progress(lane: string, letters: number, state: RedriveProgress['state']): void {
    const redrive = this.#held.get(lane)?.redrive
    if (redrive === undefined) return
    const before = this.#redriven.get(lane)?.letters ?? 0
    this.#redriven.set(lane, { redrive, lane, letters: before + letters, state })
  }

  #leave(hold: HeldLane): void {
    this.#progress(hold.lane, 0, 'deferred')
    this.#hang({ ...hold, redrive: undefined })
  }

  #hang(hold: HeldLane): void {
    if (hold.redrive === undefined) this.#underWay.delete(hold.lane)
    else this.#underWay.add(hold.lane)
    this.#held.set(hold.lane, hold)
    this.#lanes.add(hold.lane)
  }
}
