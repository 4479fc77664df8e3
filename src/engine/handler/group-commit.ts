import { type Checkpoint, totalOf } from '../../subscription/checkpoint.ts'
import type { Commit, Trial } from '../../subscription/subscription-store.ts'
import { destination, type Step } from '../ownership/ownership.ts'
import type { HandlerState } from './handler-state.ts'
import type { Entry } from './entry.ts'
import type { Outcome } from '../outcome/ledger.ts'
import { BeginWindow } from './begin-window.ts'
import { type Track, wholePartition } from './tracks.ts'

/** A commit that was sent. No other one is sent until its result is known. */
interface Pending {
  readonly commit: Commit
  readonly group: Outcome<Track<Entry>>
  /** How far the source was read when the commit was created. */
  readonly through: number
  readonly hasOutcomes: boolean
  readonly begun: number
}

/** Even a small commit uses the store, and on SQLite the thread. The pause after a commit is this many times its duration. */
const restFactor = 8
const mostRestMs = 50

const afterwards = { evenPaused: true, tried: undefined, trial: undefined } as const

/**
 * Commits the ledger with the checkpoint and the marks: one commit for all outcomes since the last. If the result of a commit is unknown,
 * the store is queried; outcomes stay in memory until then, because side effects must not be repeated.
 */
export class GroupCommit {
  readonly #state: HandlerState
  readonly #accepted: (commit: Commit) => void
  #pending: Pending | undefined
  #restsUntil = Number.NEGATIVE_INFINITY

  constructor(handlerState: HandlerState, accepted: (commit: Commit) => void) {
    this.#state = handlerState
    this.#accepted = accepted
  }

  /** Until this time of the monotonic clock a commit can wait for more outcomes, if nothing depends on it. */
  get restsUntil(): number {
    return this.#restsUntil
  }

  /** Whether a commit with outcomes was sent and its result is unknown. */
  get isPending(): boolean {
    return this.#pending?.hasOutcomes === true
  }

  async commit(trial: Trial | undefined): Promise<Step> {
    const { parts, ledger, window, suspicion, suspects } = this.#state
    const { through } = window
    const before = parts.ownership.checkpoint as Checkpoint
    const hasOutcomes = !ledger.isEmpty
    const group = ledger.take()
    const { position, last } = window.done()
    const isFurther = position > before.position
    const to = destination(before, isFurther ? position : before.position, isFurther ? last : undefined)
    const commit = parts.ownership.commitOf(group, to, {
      marks: window.marks(),
      // Events that were not read again yet stay suspects, also for the next owner.
      tried: suspicion.isOver ? BeginWindow.reach(through, parts.share) : Math.max(through, suspects.upTo),
      trial,
      endedTrials: group.endedTrials,
      acquitted: group.acquitted,
      inbox: group.inbox,
      redriven: group.redriven,
    })
    this.#pending = { commit, group, through, hasOutcomes, begun: parts.runtime.clock.mono() }
    return this.#write(this.#pending)
  }

  /** Finds out whether a commit with an unknown result was made, and repeats it if not. */
  async resolve(): Promise<Step> {
    const pending = this.#pending
    if (!pending) return 'worked'
    const { store, subscription, share, ownership } = this.#state.parts
    const state = await store.subscriptions.load(subscription.name, share.partition)
    if (!state || state.epoch !== pending.commit.lease.epoch) {
      ownership.lost(state)
      return 'lost'
    }
    if (state.checkpoint.commits === pending.commit.commits) return this.#write(pending)
    this.#accept(pending)
    return 'worked'
  }

  async #write(pending: Pending): Promise<Step> {
    const { ownership } = this.#state.parts
    // Outcomes are committed even if the subscription is paused by now, but nothing new may start.
    const written = ownership.pause ? { ...pending, commit: { ...pending.commit, ...afterwards } } : pending
    this.#pending = written
    const result = await ownership.commit(written.commit)
    if (result.outcome === 'committed') {
      this.#accept(written)
      return 'worked'
    }
    const step = ownership.refuse(result)
    return step === 'refused' ? 'paused' : step
  }

  #accept({ commit, group, through, begun }: Pending): void {
    const { parts, window, reporter, beginWindow, tracks, ledger, partition, redriving } = this.#state
    const { runtime, rate, outcomeReporter, changed, emitter, subscription, share, ownership } = parts
    this.#pending = undefined
    ownership.accept(commit)
    window.pass(commit.to.position)
    const ended = runtime.clock.mono()
    this.#restsUntil = ended + Math.min(restFactor * (ended - begun), mostRestMs)
    if (commit.tried !== undefined) beginWindow.extend(through, commit.tried, ended)
    this.#accepted(commit)
    for (const track of group.passing) tracks.end(track)
    redriving.told(group.redriven)
    // Only after the commit: before it, the next owner would start with the event that blocked the partition.
    if (partition.held.size === 0 && !ledger.hasLanes) tracks.unbar(wholePartition)
    const events = Math.max(totalOf(group.counts), group.applied.length)
    rate.add(begun, ended, events)
    emitter.emit('page.committed', {
      subscription: subscription.name,
      partition: share.partition,
      position: commit.to.position,
      events,
      counts: group.counts,
      durationMs: ended - begun,
    })
    for (const record of group.applied) reporter.acked(record)
    outcomeReporter.tell(group, share.partition)
    changed()
  }
}
