import type { Handler } from '../../handler/handler.ts'
import type { Checkpoint } from '../../subscription/checkpoint.ts'
import { heldUpBy, heldUpState } from '../held/blocking-lane.ts'
import type { Partition } from '../ownership/partition.ts'
import type { NextState } from '../ownership/subscription-state.ts'
import type { Loop, Step } from '../ownership/ownership.ts'
import { Attempts } from './attempts.ts'
import { createHandlerState, type HandlerState, type HandlerLoopParts } from './handler-state.ts'
import { HeldLaneDrain } from './held-lane-drain.ts'
import { GroupCommit } from './group-commit.ts'
import { Intake } from './intake.ts'
import { RedriveStart } from './redrive-start.ts'
import { Verdicts } from './verdicts.ts'

/** A checkpoint that only passed events of other partitions is committed at this interval. */
const quietCommitMs = 1_000

/**
 * Processes the source of a handler with concurrent lanes. The window has the events that were read until the checkpoint passes them,
 * the tracks have the events to handle, and the ledger has the outcomes until they are committed:
 *
 *     intake ──► window, tracks ──► attempts ──► verdicts ──► ledger ──► group commit ──► intake
 *                      ▲                                         │
 *                      └───────────── drains ◄── held lanes ◄────┘
 *
 * The invariant: an event starts only after a commit allowed it (`tried`). The state in memory stays valid while the epoch is ours, so a
 * store outage does not repeat side effects.
 */
export class HandlerLoop implements Loop {
  readonly #state: HandlerState
  readonly #intake: Intake
  readonly #drain: HeldLaneDrain
  readonly #redriveStart: RedriveStart
  readonly #attempts: Attempts
  readonly #commits: GroupCommit
  /** While it rests: the time of the next commit, by the monotonic clock. */
  #commitsAt: number | undefined

  constructor(parts: HandlerLoopParts, handler: Handler, partition: Partition) {
    const handlerState = createHandlerState(parts, handler, partition)
    this.#state = handlerState
    this.#intake = new Intake(handlerState)
    this.#drain = new HeldLaneDrain(handlerState)
    this.#redriveStart = new RedriveStart(handlerState)
    const verdicts = new Verdicts(handlerState, this.#drain, () => parts.enter(this.standing()))
    this.#attempts = new Attempts(handlerState, verdicts, () => this.#wakeIfNeeded())
    this.#commits = new GroupCommit(handlerState, (commit) => this.#attempts.committed(commit))
  }

  get isDue(): boolean {
    const { draining, due, redriving, parts, ledger } = this.#state
    if (draining.size > 0 || this.#drain.isLoading || redriving.isTold) return true
    if (this.#redriveStart.isLeavingOut) return true
    // Changes of a lane are not committed yet.
    if (ledger.hasLanes || this.#commits.isPending || this.#drain.isFinishing) return true
    return due.isDue(parts.runtime.clock.mono())
  }

  get isHeldUp(): boolean {
    return (
      heldUpBy(this.#state.parts.subscription, this.#state.partition.held)?.status === 'parked' && !this.hasUnwritten
    )
  }

  get mayHaveTrials(): boolean {
    return this.#state.suspicion.mayHaveTrials
  }

  get isSuspect(): boolean {
    return !this.#state.suspicion.isOver
  }

  get isBusy(): boolean {
    return this.#state.running.size > 0
  }

  get hasUnwritten(): boolean {
    return !this.#state.ledger.isEmpty || this.#commits.isPending || this.#drain.isFinishing
  }

  appended(): void {
    this.#intake.appended()
  }

  redriven(): void {
    this.#state.redriving.hear()
  }

  lookAtBreakers(): void {
    this.#state.waits.lookSoon()
  }

  restMs(): number {
    const { parts, flow, tracks, running, due, waits, ledger, redriving } = this.#state
    const { runtime, settings, subscription, ownership } = parts
    const waitsMs = [subscription.source ? settings.pollMs : settings.leaseMs / 3]
    // While paused, due lanes wait.
    if (ownership.pause) return Math.min(...waitsMs)
    if (ownership.seen !== ownership.checkpoint?.position) waitsMs.push(quietCommitMs)
    const now = runtime.clock.mono()
    this.#commitsAt = ledger.isEmpty ? undefined : this.#commits.restsUntil
    if (this.#commitsAt !== undefined) waitsMs.push(this.#commitsAt - now)
    // A loop that may not start is woken later; without this check a past time would make it spin until then.
    const canBegin = !this.#attempts.isTurnedAway
    const probeAt = canBegin ? flow.nextAt() : undefined
    // Without room, the end of a running attempt wakes it; if all tracks must wait, `readyAt` tells until when.
    if (probeAt !== undefined && running.size === 0 && (probeAt > now || tracks.peek(now) !== undefined))
      waitsMs.push(probeAt - now)
    const readyAt = canBegin && this.#attempts.room > 0 ? tracks.nextAt() : undefined
    if (readyAt !== undefined) waitsMs.push(readyAt - now)
    if (this.#drain.room > 0)
      for (const at of [due.nextAt(), waits.nextAt()]) if (at !== undefined) waitsMs.push(at - now)
    const { lateAt } = this.#attempts
    if (lateAt !== undefined) waitsMs.push(lateAt - now)
    const lookAt = waits.lookAt(this.#waitsForBreaker)
    if (lookAt !== undefined) waitsMs.push(lookAt - now)
    const beginsAt = redriving.nextAt() ?? now
    if (beginsAt > now) waitsMs.push(beginsAt - now)
    const leavesAt = this.#redriveStart.nextAt()
    // During a commit, a time in the past would make the loop spin until the commit ends.
    if (leavesAt !== undefined && (leavesAt > now || ledger.isEmpty)) waitsMs.push(leavesAt - now)
    return Math.max(0, Math.min(...waitsMs))
  }

  standing(): NextState {
    const { standstill } = this.#state.flow
    const hold = standstill ? undefined : heldUpBy(this.#state.parts.subscription, this.#state.partition.held)
    if (hold) return heldUpState(this.#state.parts.subscription, hold)
    if (!standstill) return this.#intake.isAtEnd ? { state: 'live' } : { state: 'catching-up' }
    const { why, failure, probes, probeAt, lanes } = standstill
    const { clock } = this.#state.parts.runtime
    const retryAt = clock.now() + Math.max(0, probeAt - clock.mono())
    return { state: 'blocked', by: why, error: failure, attempts: probes, retryAt, lanes }
  }

  async step(): Promise<Step> {
    const { parts } = this.#state
    const { ownership } = parts
    this.#commitsAt = undefined
    await ownership.keep()
    if (!ownership.lease) return 'lost'
    // Also while paused: only then it is known whether an event is on trial.
    const settled = await this.#commits.resolve()
    if (settled !== 'worked') return settled
    if (ownership.pause) {
      this.#attempts.suspend()
      return this.#keep()
    }
    await this.#lookAtBreakers()
    await this.#redriveStart.take()
    this.#drain.deferAll()
    await this.#drain.takeUp()
    const failed = this.#canRead ? await this.#read() : undefined
    const done = await this.#takeOn(failed !== undefined)
    // Outcomes are committed before the failure of the source is thrown.
    if (failed && (done === 'worked' || done === 'idle')) throw failed.error
    return done
  }

  /** Reads the breakers that lanes wait for, so that an operator's reset or isolate takes effect before the cooldown ends. */
  async #lookAtBreakers(): Promise<void> {
    const { waits, flow, parts } = this.#state
    const outlook = await waits.look(parts.runtime.clock, this.#waitsForBreaker)
    if (outlook && this.#waitsForBreaker) flow.probedUntil(outlook.entry === 'open' ? outlook.afterMs : 0)
  }

  /** A breaker blocks the partition, and no probe is running. */
  get #waitsForBreaker(): boolean {
    const { flow, running } = this.#state
    return flow.standstill?.why === 'breaker' && running.size === 0
  }

  /** Not while an event is on trial or about to be: the whole process waits for it and must not also wait for a source. */
  get #canRead(): boolean {
    return !this.#isLettingFlow && this.#state.suspicion.trying === undefined && this.#attempts.wanted === undefined
  }

  async #read(): Promise<{ readonly error: unknown } | undefined> {
    this.#attempts.reads()
    try {
      await this.#intake.read()
      return undefined
    } catch (error) {
      return { error }
    } finally {
      this.#attempts.hasRead()
    }
  }

  /** Starts what may start, and commits outcomes. */
  async #takeOn(isBlocked: boolean): Promise<Step> {
    const { parts } = this.#state
    this.#attempts.pump()
    await this.#attempts.recall()
    await this.#drain.finish()
    this.#endSuspicion()
    if (!this.#hasToCommit()) {
      this.#see()
      return 'idle'
    }
    if (this.#canWait()) return 'idle'
    const done = await this.#commits.commit(this.#attempts.wanted)
    if (done !== 'worked') return done
    if (!isBlocked) parts.enter(this.standing())
    this.#attempts.pump()
    await parts.runtime.timers.yield()
    return 'worked'
  }

  /** Waits for running attempts and commits their outcomes. */
  async finish(): Promise<void> {
    const { ownership } = this.#state.parts
    this.#state.isOver = true
    await this.#ended()
    if (!ownership.lease) return
    this.#endSuspicion()
    // Several rounds: a commit may reveal a pause, and a lane can be released only after all its letters are committed.
    for (let round = 0; round < 4; round++) if ((await this.#keep()) === 'lost') return
    await this.#commits.commit(undefined)
  }

  /** Waits for running attempts and renews the lease meanwhile, so that no other process starts the same events. */
  async #ended(): Promise<void> {
    const { ownership, runtime, settings, logger, subscription } = this.#state.parts
    const over = new AbortController()
    const ended = this.#attempts.ended().finally(() => over.abort())
    while (!over.signal.aborted && ownership.lease) {
      await runtime.timers.sleep(settings.leaseMs / 3, over.signal)
      if (over.signal.aborted) break
      try {
        await ownership.keep()
      } catch (error) {
        logger.warn({ subscription: subscription.name, error }, 'the lease could not be renewed')
      }
    }
    // Another process owns the partition and repeats the work.
    if (!ownership.lease) this.abandon()
    await ended
  }

  /** Commits outcomes. Nothing starts. */
  async #keep(): Promise<Step> {
    const settled = await this.#commits.resolve()
    if (settled !== 'worked') return settled
    await this.#drain.finish()
    return this.#state.ledger.isEmpty ? 'paused' : this.#commits.commit(undefined)
  }

  abandon(): void {
    this.#state.isOver = true
    this.#attempts.abandon()
  }

  /** Ends the suspicion when all suspects have their outcome. */
  #endSuspicion(): void {
    const { suspicion, suspects, window, ledger, parts } = this.#state
    // An engine for letters only does not read the source, so it can't know.
    if (parts.settings.only === 'letters') return
    // The log still has what a previous owner had read: a reader that can't see it waits at a gap that the other had passed. Another
    // source may never deliver it again.
    const isAtEnd = parts.subscription.source !== undefined && this.#intake.isAtEnd
    if (!suspicion.isOver && suspects.areOver(window, isAtEnd)) ledger.endTrials(suspicion.end())
  }

  /** A lane is being released, and that is not committed. Events of it that are read now would start immediately, but the next owner would queue them. */
  get #isLettingFlow(): boolean {
    const { handler, ledger } = this.#state
    // If the whole partition is one track, the lane has no track of its own that could wait.
    return this.#redriveStart.isLettingFlow || (handler.order === 'partition' && ledger.passing.length > 0)
  }

  #hasToCommit(): boolean {
    const { ledger, window, parts } = this.#state
    if (!ledger.isEmpty || this.#attempts.wanted || this.#attempts.isBarred) return true
    const { ownership, runtime } = parts
    const isBehind = window.done().position > (ownership.checkpoint as Checkpoint).position
    return isBehind && runtime.clock.mono() - ownership.committedAt >= quietCommitMs
  }

  #canWait(): boolean {
    const { wanted, isBarred, isAccusing } = this.#attempts
    if (wanted || isBarred || isAccusing || this.#drain.isBarred || this.#intake.isFull) return false
    const { ledger, suspicion, running } = this.#state
    if (this.#isLettingFlow) return false
    // While others run, events after a skipped one can wait for the next regular commit.
    if (running.size === 0 && ledger.passing.some(({ entries }) => entries.length > 0)) return false
    // The whole process waits for the end of a trial.
    if (suspicion.trying !== undefined) return false
    return this.#state.parts.runtime.clock.mono() < this.#commits.restsUntil
  }

  /** An attempt has ended. If only a commit is needed and its time is set, the loop need not be woken. */
  #wakeIfNeeded(): void {
    const { parts, tracks } = this.#state
    const isSet = this.#commitsAt !== undefined && (tracks.nextAt() ?? Number.POSITIVE_INFINITY) >= this.#commitsAt
    if (!isSet || !this.#canWait() || this.#intake.canRead || this.#drain.canTakeUp) parts.wake()
  }

  /** All outcomes are committed; everything read after them belongs to other partitions. */
  #see(): void {
    const { window, ledger, parts } = this.#state
    const { position } = window.done()
    if (!ledger.isEmpty || position <= (parts.ownership.seen as number)) return
    parts.ownership.seen = position
    parts.changed()
  }
}
