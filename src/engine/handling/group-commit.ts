import { type Checkpoint, totalOf } from '../../subscription/checkpoint.ts'
import type { Commit, Trial } from '../../subscription/subscription-store.ts'
import { destination, type Step } from '../tenure.ts'
import type { Desk } from './desk.ts'
import type { Group } from './ledger.ts'
import { Permit } from './permit.ts'
import { wholePartition } from './tracks.ts'

/** A commit that was sent. Until its end is known, it is the only one. */
interface Pending {
  readonly commit: Commit
  readonly group: Group
  /** How far was read when it was made. */
  readonly through: number
  readonly hasOutcomes: boolean
  readonly begun: number
}

/** A commit takes the store's time, and on SQLite the thread's, however little is in it; so much of the time is left without. */
const restFactor = 8
const mostRestMs = 50

const afterwards = { evenPaused: true, tried: undefined, trial: undefined } as const

/**
 * Writes what is in the ledger, with the checkpoint and the marks: one commit for all that came to an end since the last. When it is
 * not known whether one was made, the store is asked; what was done stays in memory until then, because an effect that was had must
 * not be had again.
 */
export class GroupCommit {
  readonly #desk: Desk
  readonly #accepted: (commit: Commit) => void
  #pending: Pending | undefined
  #restsUntil = Number.NEGATIVE_INFINITY

  constructor(desk: Desk, accepted: (commit: Commit) => void) {
    this.#desk = desk
    this.#accepted = accepted
  }

  /** Until then what there is to commit can wait for more, if nothing waits for it; by the monotonic clock. */
  get restsUntil(): number {
    return this.#restsUntil
  }

  /** Whether one was sent with outcomes, and its end is not known. */
  get isPending(): boolean {
    return this.#pending?.hasOutcomes === true
  }

  async commit(trial: Trial | undefined): Promise<Step> {
    const { parts, ledger, window, suspicion, suspects } = this.#desk
    const { through } = window
    const before = parts.tenure.checkpoint as Checkpoint
    const hasOutcomes = !ledger.isEmpty
    const group = ledger.take()
    const { position, last } = window.done()
    const isFurther = position > before.position
    const to = destination(before, isFurther ? position : before.position, isFurther ? last : undefined)
    const commit = parts.tenure.commitOf(group, to, {
      marks: window.marks(),
      // Those that are not read again yet are suspects still, also for whoever comes next.
      tried: suspicion.isOver ? Permit.reach(through, parts.share) : Math.max(through, suspects.upTo),
      trial,
      endedTrials: group.endedTrials,
      acquitted: group.acquitted,
      inbox: group.inbox,
      redriven: group.redriven,
    })
    this.#pending = { commit, group, through, hasOutcomes, begun: parts.runtime.clock.mono() }
    return this.#write(this.#pending)
  }

  /** Finds out about a commit whose end is not known, and makes it if it was not made. */
  async resolve(): Promise<Step> {
    const pending = this.#pending
    if (!pending) return 'worked'
    const { store, subscription, share, tenure } = this.#desk.parts
    const state = await store.subscriptions.load(subscription.name, share.partition)
    if (!state || state.epoch !== pending.commit.lease.epoch) {
      tenure.lost(state)
      return 'lost'
    }
    if (state.checkpoint.commits === pending.commit.commits) return this.#write(pending)
    this.#accept(pending)
    return 'worked'
  }

  async #write(pending: Pending): Promise<Step> {
    const { tenure } = this.#desk.parts
    // What was done is written down though it is paused by now; but nothing more may be begun.
    const written = tenure.pause ? { ...pending, commit: { ...pending.commit, ...afterwards } } : pending
    this.#pending = written
    const result = await tenure.commit(written.commit)
    if (result.outcome === 'committed') {
      this.#accept(written)
      return 'worked'
    }
    const step = tenure.refuse(result)
    return step === 'refused' ? 'paused' : step
  }

  #accept({ commit, group, through, begun }: Pending): void {
    const { parts, window, tracer, permit, tracks, ledger, partition, redriving } = this.#desk
    const { runtime, rate, teller, changed, emitter, subscription, share, tenure } = parts
    this.#pending = undefined
    tenure.accept(commit)
    window.pass(commit.to.position)
    const ended = runtime.clock.mono()
    this.#restsUntil = ended + Math.min(restFactor * (ended - begun), mostRestMs)
    if (commit.tried !== undefined) permit.extend(through, commit.tried, ended)
    this.#accepted(commit)
    for (const track of group.passing) tracks.end(track)
    // The last of its lanes may have ended it, or have let the next stage begin.
    if (group.redriven.some(({ state }) => state !== 'running')) redriving.hear()
    // Only now: until the store has it, the next owner would begin with the event that held up the partition.
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
    for (const record of group.applied) tracer.acked(record)
    teller.tell(group, share.partition)
    changed()
  }
}
