import type { Ending, HeldLane, NewLetter, Revision } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Failure } from '../../failure/failure.ts'
import type { InboxMark } from '../../handler/inbox-store.ts'
import type { RedriveProgress, RedriveTask } from '../../redrive/redrive.ts'
import { type MutableCounts, noCounts, totalOf } from '../../subscription/checkpoint.ts'
import type { Commit, LaneWrite, LetterChange } from '../../subscription/subscription-store.ts'

/** How a lane is held: until an operator acts, until a time, or until its breaker closes or a missing version arrives. */
export type Holding =
  | { readonly status: 'parked'; readonly tries?: number }
  | { readonly status: 'retrying'; readonly tries?: number; readonly dueAt?: number }
  | { readonly status: 'waiting'; readonly tries?: number; readonly breaker?: string }

/** An event with its place in a lane. */
export interface Held {
  readonly record: RecordedEvent
  readonly lane: string
  readonly sequence: number
  readonly logged: boolean
  /** Earlier failures that are not in a letter yet. */
  readonly unrecorded: readonly Failure[]
  /** An operator's edit in another version, which replaces the event's data. */
  readonly revision?: Revision | undefined
}

/** A lane that is held from this event on. */
export interface StoppedLane {
  readonly lane: string
  readonly status: 'parked' | 'waiting' | 'retrying'
  readonly record: RecordedEvent
  readonly failure: Failure | undefined
}

/** The outcomes of some events, ready to commit, and what to report after the commit. */
export interface Outcome<Passing = never> extends Pick<Commit, 'rows' | 'lanes' | 'held' | 'letters'> {
  readonly counts: MutableCounts
  readonly inbox: readonly InboxMark[]
  readonly endedTrials: readonly number[]
  readonly acquitted: string | undefined
  readonly applied: readonly RecordedEvent[]
  readonly stopped: readonly StoppedLane[]
  readonly released: readonly string[]
  readonly unknown: readonly RecordedEvent[]
  readonly redriven: readonly RedriveProgress[]
  /** What continues after the commit, see `passOver`. */
  readonly passing: readonly Passing[]
}

/**
 * Collects the outcomes of events and letters until the commit. `held` is the owner's state of its held lanes; it changes here
 * immediately, and in the store with the commit. Both loops write their outcomes here and nowhere else.
 */
export class Ledger<Passing = never> {
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
  /** By redrive and lane: a redrive may pass over a lane that an earlier one has not finished. */
  #redriven = new Map<string, RedriveProgress>()
  #passing: Passing[] = []
  /** Lanes that a redrive is trying. Collected at first use: a page has a ledger of its own, and may have many held lanes. */
  #underWay: Set<string> | undefined

  constructor(held: Map<string, HeldLane>, now: () => number) {
    this.#held = held
    this.#now = now
  }

  /** An earlier release kept lanes in their redrive while they waited for a breaker. */
  leaveRedrives(): void {
    for (const hold of this.#held.values()) {
      if (hold.redrive === undefined || hold.status !== 'waiting') continue
      this.#progress(hold.lane, 0, 'deferred')
      this.#hang({ ...hold, redrive: undefined })
    }
  }

  /** The number of lanes that redrives are processing. */
  get underWay(): number {
    return this.#underWayNow().size
  }

  /** Lanes that redrives have started and not finished. */
  get lanesUnderWay(): Iterable<string> {
    return this.#underWayNow()
  }

  /** The number of lanes of a redrive that are started but not being tried yet. */
  waiting(redrive: string, draining: ReadonlySet<string>): number {
    let waiting = 0
    for (const lane of this.#underWayNow())
      if (!draining.has(lane) && this.#held.get(lane)?.redrive === redrive) waiting++
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
  passOver(track: Passing): void {
    this.#passing.push(track)
  }

  /** Tracks that continue after the commit. */
  get passing(): readonly Passing[] {
    return this.#passing
  }

  /** The catalog does not have the type of an event. It is reported, whatever the outcome is. */
  unknown(record: RecordedEvent): void {
    this.#unknown.push(record)
  }

  filtered(): void {
    this.#counts.filtered++
  }

  duplicate(): void {
    this.#counts.duplicate++
  }

  applied(record: RecordedEvent, mark?: InboxMark): void {
    this.#counts.applied++
    this.#applied.push(record)
    if (mark) this.#inbox.push(mark)
  }

  /** The event is queued in its held lane. */
  queued(held: Held): void {
    this.#keep(held, 'queued', undefined)
  }

  /** The event is recorded and skipped: by its policy, or because an operator discarded it in another version. */
  skipped({ record, lane, sequence, logged }: Held, failure: Failure | undefined, ending: Ending): void {
    this.#counts.discarded++
    this.#letters.push({ lane, sequence, status: 'discarded', logged, event: record, failure, ending })
  }

  /** The event was processed with an operator's edit: only the letter shows which edit. */
  processedAsEdited({ record, lane, sequence, logged, revision }: Held): void {
    this.#letters.push({ lane, sequence, status: 'resolved', logged, event: record, failure: undefined, revision })
  }

  /** A lane is held from this event on. It may be held already, by later events that wait for a missing version. */
  hold(held: Held, holding: Holding, failure: Failure | undefined, done?: number): void {
    const { record, lane, sequence, unrecorded } = held
    const before = this.#held.get(lane)
    if (before) this.#changes.push({ change: 'status', position: before.headPosition, status: 'queued' })
    const [first = failure, ...more] = [...unrecorded, ...(failure ? [failure] : [])]
    this.#keep(held, holding.status, first)
    this.#failed(record, more, holding.status)
    const since = before?.since ?? this.#now()
    this.#hang({ lane, since, done, head: sequence, headPosition: record.position, ...holding })
    this.#stopped.push({ lane, status: holding.status, record, failure })
  }

  /** An event between the missing version and those that wait for it: it becomes the head, and waits too. */
  queuedFirst(held: Held): void {
    const { record, lane, sequence } = held
    const hold = this.#held.get(lane) as HeldLane
    this.#changes.push({ change: 'status', position: hold.headPosition, status: 'queued' })
    this.#keep(held, 'waiting', undefined)
    this.#hang({ ...hold, head: sequence, headPosition: record.position })
  }

  /** A version of a held lane was processed or passed. If a head waits for it, the head is due. */
  passed(lane: string, done: number): void {
    const hold = this.#held.get(lane)
    if (!hold) return
    const isDue = hold.status === 'waiting' && hold.head === done + 1
    if (isDue) this.#changes.push({ change: 'status', position: hold.headPosition, status: 'retrying' })
    this.#hang({ ...hold, done, ...(isDue && { status: 'retrying' }) })
  }

  /** A version before the next letter is missing: there is nothing left to try. */
  waitsForVersion({ record, lane, sequence }: Held): void {
    const hold = this.#held.get(lane) as HeldLane
    this.#changes.push({ change: 'status', position: record.position, status: 'waiting' })
    this.#progress(lane, 0, 'done')
    const head = { head: sequence, headPosition: record.position }
    this.#hang({ ...hold, ...head, status: 'waiting', redrive: undefined })
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
    const head = { head: sequence, headPosition: position }
    this.#hang({ lane, since, done: before?.done, ...head, redrive, ...holding })
    if (holding.status === 'parked') this.#stopped.push({ lane, status: 'parked', record, failure })
  }

  /** The next letter of a held lane was processed. */
  resolved({ record, lane, unrecorded }: Held, as: 'applied' | 'filtered', mark?: InboxMark): void {
    this.#failed(record, unrecorded, 'retrying')
    this.#letterEnded(lane)
    if (as === 'applied') this.applied(record, mark)
    else this.filtered()
    this.#changes.push({ change: 'resolved', position: record.position, by: 'engine' })
  }

  /** The event of the next letter was processed before. */
  repeated({ record, lane }: Held): void {
    this.#letterEnded(lane)
    this.duplicate()
    this.#changes.push({ change: 'resolved', position: record.position, by: 'engine' })
  }

  /** The next letter of a held lane is skipped by its policy. */
  discarded({ record, lane, unrecorded }: Held, failure: Failure, ending: Ending): void {
    this.#failed(record, [...unrecorded, failure], 'retrying')
    this.#letterEnded(lane)
    this.#counts.discarded++
    this.#changes.push({ change: 'discarded', position: record.position, ending })
  }

  /** A redrive starts a lane, and its letters are processed for the same commit. */
  start({ redrive, lane, act }: RedriveTask): void {
    const { since, done, head, headPosition } = this.#held.get(lane) as HeldLane
    // The missing versions before the head never come and count as processed.
    const doneNow = act === 'skip' ? head - 1 : done
    this.#hang({ lane, status: 'retrying', since, done: doneNow, head, headPosition, redrive })
  }

  /** A redrive starts a lane: its letters are tried after the commit, or its head is ended without a try. */
  begin(task: RedriveTask): void {
    const { lane, position, act } = task
    this.start(task)
    this.#progress(lane, 0, 'running')
    if (act === 'redrive' || act === 'skip') this.#changes.push({ change: 'status', position, status: 'retrying' })
    else this.leaveOut(task, position)
  }

  /** Ends a letter of a lane by an operator's decision, without a try. */
  leaveOut({ lane, act, by, reason }: Pick<RedriveTask, 'lane' | 'act' | 'by' | 'reason'>, position: number): void {
    this.#letterEnded(lane)
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
    const { since, done, head, headPosition, tries } = this.#held.get(lane) as HeldLane
    this.#changes.push({ change: 'status', position: headPosition, status: 'waiting' })
    this.#progress(lane, 0, 'deferred')
    this.#hang({ lane, status: 'waiting', since, done, head, headPosition, tries, breaker })
  }

  /** The lane has changed since the redrive was requested. */
  notStarted({ redrive, lane }: RedriveTask): void {
    this.#redriven.set(progressName(redrive, lane), { redrive, lane, letters: 0, state: 'passed' })
  }

  /** The next letter becomes the head of a lane; undefined: the lane is released. */
  advance(lane: string, next: { readonly sequence: number; readonly position: number } | undefined): void {
    const before = this.#held.get(lane)
    if (!before) return
    if (next) {
      this.#changes.push({ change: 'status', position: next.position, status: 'retrying' })
      const { since, done, redrive } = before
      const { sequence: head, position: headPosition } = next
      this.#hang({ lane, status: 'retrying', since, done, head, headPosition, redrive })
      return
    }
    this.#progress(lane, 0, 'done')
    this.#held.delete(lane)
    this.#underWay?.delete(lane)
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

  /** All outcomes collected so far. */
  outcome(): Outcome<Passing> {
    const lanes = Array.from(this.#lanes, (lane): LaneWrite => ({ lane, hold: this.#held.get(lane), done: undefined }))
    return {
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
  }

  /** Takes all collected outcomes and empties the ledger. */
  take(): Outcome<Passing> {
    const outcome = this.outcome()
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
    return outcome
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
    const name = progressName(redrive, lane)
    const before = this.#redriven.get(name)?.letters ?? 0
    this.#redriven.set(name, { redrive, lane, letters: before + letters, state })
  }

  /** A letter of a held lane has its outcome, and may be one of a redrive. */
  #letterEnded(lane: string): void {
    this.#progress(lane, 1, 'running')
    this.#counts.held--
  }

  #keep({ record, lane, sequence, logged, revision }: Held, status: NewLetter['status'], failure: Failure | undefined) {
    this.#counts.held++
    this.#letterLanes.add(lane)
    this.#letters.push({ lane, sequence, status, logged, event: record, failure, ...(revision && { revision }) })
  }

  #hang(hold: HeldLane): void {
    if (hold.redrive === undefined) this.#underWay?.delete(hold.lane)
    else this.#underWay?.add(hold.lane)
    this.#held.set(hold.lane, hold)
    this.#lanes.add(hold.lane)
  }

  #underWayNow(): Set<string> {
    this.#underWay ??= new Set(
      [...this.#held.values()].flatMap(({ lane, redrive }) => (redrive === undefined ? [] : lane)),
    )
    return this.#underWay
  }
}

function progressName(redrive: string, lane: string): string {
  return `${redrive} ${lane}`
}

export const emptyOutcome: Outcome = new Ledger(new Map(), () => 0).outcome()
