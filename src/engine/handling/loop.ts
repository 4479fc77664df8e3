import type { Handler } from '../../handler/handler.ts'
import type { Checkpoint } from '../../subscription/checkpoint.ts'
import { heldUpBy, heldUpState } from '../held-up.ts'
import type { Partition } from '../partition.ts'
import type { NextState } from '../state.ts'
import type { Loop, Step } from '../tenure.ts'
import { Attempts } from './attempts.ts'
import { createDesk, type Desk, type HandlerLoopParts } from './desk.ts'
import { Drains } from './drains.ts'
import { GroupCommit } from './group-commit.ts'
import { Intake } from './intake.ts'
import { Beginnings } from './beginnings.ts'
import { Verdicts } from './verdicts.ts'

/** A checkpoint that only passed events of other partitions is worth a commit now and then. */
const quietCommitMs = 1_000

/**
 * Takes a handler through its source, with lanes side by side. What was read lies in the window until the checkpoint has passed it;
 * what is to be done, in the tracks; what was done, in the ledger until it is committed:
 *
 *     intake ──► window, tracks ──► attempts ──► verdicts ──► ledger ──► group commit ──► intake
 *                      ▲                                         │
 *                      └───────────── drains ◄── held lanes ◄────┘
 *
 * The invariant: an event is begun only if a commit before said so (`tried`), and what is in memory is worth keeping for as long as
 * the epoch is ours: an effect that was had is not had again because the store was away for a while.
 */
export class HandlerLoop implements Loop {
  readonly #desk: Desk
  readonly #intake: Intake
  readonly #drains: Drains
  readonly #beginnings: Beginnings
  readonly #attempts: Attempts
  readonly #commits: GroupCommit
  /** While it rests: until when at the longest, by the monotonic clock, because something is to be committed then. */
  #commitsAt: number | undefined

  constructor(parts: HandlerLoopParts, handler: Handler, partition: Partition) {
    const desk = createDesk(parts, handler, partition)
    this.#desk = desk
    this.#intake = new Intake(desk)
    this.#drains = new Drains(desk)
    this.#beginnings = new Beginnings(desk)
    const verdicts = new Verdicts(desk, this.#drains, () => parts.enter(this.standing()))
    this.#attempts = new Attempts(desk, verdicts, () => this.#wakeIfNeeded())
    this.#commits = new GroupCommit(desk, (commit) => this.#attempts.committed(commit))
  }

  get isDue(): boolean {
    const { draining, due, redriving, parts, ledger } = this.#desk
    if (draining.size > 0 || this.#drains.isLoading || redriving.isTold) return true
    // What became of a lane is not in the store yet.
    if (ledger.hasLanes || this.#commits.isPending || this.#drains.isFinishing) return true
    return due.isDue(parts.runtime.clock.mono())
  }

  get isHeldUp(): boolean {
    return heldUpBy(this.#desk.parts.subscription, this.#desk.partition.held)?.status === 'parked' && !this.hasUnwritten
  }

  get mayHaveTrials(): boolean {
    return this.#desk.suspicion.mayHaveTrials
  }

  get isSuspect(): boolean {
    return !this.#desk.suspicion.isOver
  }

  get hasUnwritten(): boolean {
    return !this.#desk.ledger.isEmpty || this.#commits.isPending || this.#drains.isFinishing
  }

  appended(): void {
    this.#intake.appended()
  }

  redriven(): void {
    this.#desk.redriving.hear()
  }

  restMs(): number {
    const { parts, flow, tracks, running, due, waits, ledger, redriving } = this.#desk
    const { runtime, settings, subscription, tenure } = parts
    const waitsMs = [subscription.source ? settings.pollMs : settings.leaseMs / 3]
    // Whatever is due has to wait until it goes on.
    if (tenure.pause) return Math.min(...waitsMs)
    if (tenure.seen !== tenure.checkpoint?.position) waitsMs.push(quietCommitMs)
    const now = runtime.clock.mono()
    this.#commitsAt = ledger.isEmpty ? undefined : this.#commits.restsUntil
    if (this.#commitsAt !== undefined) waitsMs.push(this.#commitsAt - now)
    // Who can't begin is woken when it can: a time that is over would make it spin until then.
    const canBegin = !this.#attempts.isTurnedAway
    const probeAt = canBegin ? flow.nextAt() : undefined
    // And where there is no room, by the end of something that runs; where all are to wait longer, `readyAt` is when that is over.
    if (probeAt !== undefined && running.size === 0 && (probeAt > now || tracks.peek(now) !== undefined))
      waitsMs.push(probeAt - now)
    const readyAt = canBegin && this.#attempts.room > 0 ? tracks.nextAt() : undefined
    if (readyAt !== undefined) waitsMs.push(readyAt - now)
    if (this.#drains.room > 0)
      for (const at of [due.nextAt(), waits.nextAt()]) if (at !== undefined) waitsMs.push(at - now)
    const lookAt = waits.lookAt(this.#waitsForBreaker)
    if (lookAt !== undefined) waitsMs.push(lookAt - now)
    const beginsAt = redriving.nextAt() ?? now
    if (beginsAt > now) waitsMs.push(beginsAt - now)
    return Math.max(0, Math.min(...waitsMs))
  }

  standing(): NextState {
    const { standstill } = this.#desk.flow
    const hold = standstill ? undefined : heldUpBy(this.#desk.parts.subscription, this.#desk.partition.held)
    if (hold) return heldUpState(this.#desk.parts.subscription, hold)
    if (!standstill) return this.#intake.isAtEnd ? { state: 'live' } : { state: 'catching-up' }
    const { why, failure, probes, probeAt, lanes } = standstill
    const { clock } = this.#desk.parts.runtime
    const retryAt = clock.now() + Math.max(0, probeAt - clock.mono())
    return { state: 'blocked', by: why, error: failure, attempts: probes, retryAt, lanes }
  }

  async step(): Promise<Step> {
    const { parts } = this.#desk
    const { tenure } = parts
    this.#commitsAt = undefined
    await tenure.keep()
    if (!tenure.lease) return 'lost'
    // Also where it is paused: only then it is known whether somebody is on trial.
    const settled = await this.#commits.resolve()
    if (settled !== 'worked') return settled
    if (tenure.pause) {
      this.#attempts.suspend()
      return this.#keep()
    }
    await this.#lookAtBreakers()
    await this.#beginnings.take()
    this.#drains.deferAll()
    await this.#drains.takeUp()
    const failed = this.#canRead ? await this.#read() : undefined
    const done = await this.#takeOn(failed !== undefined)
    // What was done is kept, though its source is away.
    if (failed && (done === 'worked' || done === 'idle')) throw failed.error
    return done
  }

  /** An operator's reset or isolate reaches those that wait, without waiting for the cooldown that was set before. */
  async #lookAtBreakers(): Promise<void> {
    const { waits, flow, parts } = this.#desk
    const outlook = await waits.look(parts.runtime.clock, this.#waitsForBreaker)
    if (outlook && this.#waitsForBreaker) flow.probedUntil(outlook.entry === 'open' ? outlook.afterMs : 0)
  }

  /** The partition stands still for a breaker, and no probe is under way that will tell. */
  get #waitsForBreaker(): boolean {
    const { flow, running } = this.#desk
    return flow.standstill?.why === 'breaker' && running.size === 0
  }

  /** While an event is on trial, or about to be, the whole process waits for it, and must not wait for a source as well. */
  get #canRead(): boolean {
    return !this.#isLettingFlow && this.#desk.suspicion.trying === undefined && this.#attempts.wanted === undefined
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

  /** Begins what may be begun, and keeps what was done. */
  async #takeOn(isBlocked: boolean): Promise<Step> {
    const { parts } = this.#desk
    this.#attempts.pump()
    await this.#attempts.recall()
    await this.#drains.finish()
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

  /** What is under way may end, and is kept. */
  async finish(): Promise<void> {
    const { tenure } = this.#desk.parts
    this.#desk.isOver = true
    await this.#ended()
    if (!tenure.lease) return
    this.#endSuspicion()
    // Several times: it may find out only now that it is paused, and whether a lane flows again is known when all of its letters
    // are in the store.
    for (let round = 0; round < 4; round++) if ((await this.#keep()) === 'lost') return
    await this.#commits.commit(undefined)
  }

  /** Waits for what is under way. It may take longer than the lease, and nobody else may do it meanwhile. */
  async #ended(): Promise<void> {
    const { tenure, runtime, settings, logger, subscription } = this.#desk.parts
    const over = new AbortController()
    const ended = this.#attempts.ended().finally(() => over.abort())
    while (!over.signal.aborted && tenure.lease) {
      await runtime.timers.sleep(settings.leaseMs / 3, over.signal)
      if (over.signal.aborted) break
      try {
        await tenure.keep()
      } catch (error) {
        logger.warn({ subscription: subscription.name, error }, 'the lease could not be renewed')
      }
    }
    // It is somebody else's by now, who does it all again.
    if (!tenure.lease) this.abandon()
    await ended
  }

  /** Writes down what was done. Nothing is begun. */
  async #keep(): Promise<Step> {
    const settled = await this.#commits.resolve()
    if (settled !== 'worked') return settled
    await this.#drains.finish()
    return this.#desk.ledger.isEmpty ? 'paused' : this.#commits.commit(undefined)
  }

  abandon(): void {
    this.#desk.isOver = true
    this.#attempts.abandon()
  }

  /** All that may have killed a process before has its outcome. */
  #endSuspicion(): void {
    const { suspicion, suspects, window, ledger, parts } = this.#desk
    // Who reads nothing can't tell.
    if (parts.settings.only === 'letters') return
    // In the log, what an owner before had read is still there: who can't see it waits at a gap that the other had passed. What another
    // source once had may never come.
    const isAtEnd = parts.subscription.source !== undefined && this.#intake.isAtEnd
    if (!suspicion.isOver && suspects.areOver(window, isAtEnd)) ledger.endTrials(suspicion.end())
  }

  /** What is read of a lane that flows may be begun at once, and one does not flow yet for whoever comes after a death. */
  get #isLettingFlow(): boolean {
    const { handler, ledger } = this.#desk
    // Where the whole partition is one track, the lane itself has none that could wait.
    return this.#beginnings.isLettingFlow || (handler.order === 'partition' && ledger.passing.length > 0)
  }

  #hasToCommit(): boolean {
    const { ledger, window, parts } = this.#desk
    if (!ledger.isEmpty || this.#attempts.wanted || this.#attempts.isBarred) return true
    const { tenure, runtime } = parts
    const isBehind = window.done().position > (tenure.checkpoint as Checkpoint).position
    return isBehind && runtime.clock.mono() - tenure.committedAt >= quietCommitMs
  }

  #canWait(): boolean {
    const { wanted, isBarred, isAccusing } = this.#attempts
    if (wanted || isBarred || isAccusing || this.#drains.isBarred || this.#intake.isFull) return false
    const { ledger, suspicion, running } = this.#desk
    if (this.#isLettingFlow) return false
    // While others run, who waits behind something that was passed over can wait as long as the store rests.
    if (running.size === 0 && ledger.passing.some(({ entries }) => entries.length > 0)) return false
    // For as long as one is on trial, the whole process waits for it.
    if (suspicion.trying !== undefined) return false
    return this.#desk.parts.runtime.clock.mono() < this.#commits.restsUntil
  }

  /** An attempt is over. Where all there is to do about it is to commit it, and the time for that is set, nobody has to be woken. */
  #wakeIfNeeded(): void {
    const { parts, tracks } = this.#desk
    const isSet = this.#commitsAt !== undefined && (tracks.nextAt() ?? Number.POSITIVE_INFINITY) >= this.#commitsAt
    if (!isSet || !this.#canWait() || this.#intake.canRead || this.#drains.canTakeUp) parts.wake()
  }

  /** Everything that was done is in the store; what was read beyond that was for others. */
  #see(): void {
    const { window, ledger, parts } = this.#desk
    const { position } = window.done()
    if (!ledger.isEmpty || position <= (parts.tenure.seen as number)) return
    parts.tenure.seen = position
    parts.changed()
  }
}
