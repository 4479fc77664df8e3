import type { Handler } from '../../handler/handler.ts'
import type { Checkpoint } from '../../subscription/checkpoint.ts'
import type { Partition } from '../partition.ts'
import type { NextState } from '../state.ts'
import type { Loop, Step } from '../tenure.ts'
import { Attempts } from './attempts.ts'
import { createDesk, type Desk, type HandlerLoopParts } from './desk.ts'
import { Drains } from './drains.ts'
import { GroupCommit } from './group-commit.ts'
import { Intake } from './intake.ts'
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
  readonly #attempts: Attempts
  readonly #commits: GroupCommit
  /** Up to where an owner before may have begun events. */
  readonly #suspectUpTo: number

  constructor(parts: HandlerLoopParts, handler: Handler, partition: Partition) {
    const desk = createDesk(parts, handler, partition)
    this.#desk = desk
    this.#intake = new Intake(desk)
    this.#drains = new Drains(desk)
    this.#attempts = new Attempts(desk, new Verdicts(desk, this.#drains, () => parts.enter(this.standing())))
    this.#commits = new GroupCommit(desk, ({ trial }) => trial && this.#attempts.recorded(trial))
    this.#suspectUpTo = parts.state.tried ?? parts.state.checkpoint.position
  }

  get isDue(): boolean {
    const { draining, due, partition } = this.#desk
    return draining.size > 0 || due.isDue(partition.now())
  }

  appended(): void {
    this.#intake.appended()
  }

  restMs(): number {
    const { parts, flow, tracks, due, waits, partition } = this.#desk
    const { runtime, settings, subscription, tenure } = parts
    const isQuiet = tenure.seen === tenure.checkpoint?.position
    const waitsMs = [subscription.source ? settings.pollMs : settings.leaseMs / 3]
    if (!isQuiet) waitsMs.push(quietCommitMs)
    const now = runtime.clock.mono()
    for (const at of [flow.nextAt(), tracks.nextAt()]) if (at !== undefined) waitsMs.push(at - now)
    // Where there is no room for them, the end of something that runs is what wakes it.
    if (this.#drains.room > 0)
      for (const at of [due.nextAt(), waits.nextAt()]) if (at !== undefined) waitsMs.push(at - partition.now())
    return Math.max(0, Math.min(...waitsMs))
  }

  standing(): NextState {
    const { standstill } = this.#desk.flow
    if (!standstill) return this.#intake.isAtEnd ? { state: 'live' } : { state: 'catching-up' }
    const { why, failure, probes, probeAt, lanes } = standstill
    const { clock } = this.#desk.parts.runtime
    const retryAt = clock.now() + Math.max(0, probeAt - clock.mono())
    return { state: 'blocked', by: why, error: failure, attempts: probes, retryAt, lanes }
  }

  async step(): Promise<Step> {
    const { parts } = this.#desk
    const { tenure } = parts
    await tenure.keep()
    if (!tenure.lease) return 'lost'
    if (tenure.pause) return 'paused'
    const settled = await this.#commits.resolve()
    if (settled !== 'worked') return settled
    await this.#drains.takeUp()
    await this.#intake.read()
    this.#attempts.pump()
    await this.#drains.finish()
    this.#endSuspicion()
    if (!this.#hasToCommit()) {
      this.#see()
      return 'idle'
    }
    const done = await this.#commits.commit(this.#attempts.wanted)
    if (done !== 'worked') return done
    parts.enter(this.standing())
    this.#attempts.pump()
    await parts.runtime.timers.yield()
    return 'worked'
  }

  /** What is under way may end, and is kept. */
  async finish(): Promise<void> {
    const { tenure } = this.#desk.parts
    this.#desk.isOver = true
    await this.#attempts.ended()
    if (tenure.pause || !tenure.lease) return
    if ((await this.#commits.resolve()) !== 'worked') return
    const { ledger, suspicion } = this.#desk
    ledger.endTrials(suspicion.end())
    // Twice, because whether a lane flows again is known when all of its letters are in the store.
    for (let round = 0; round < 2; round++) {
      if (!ledger.isEmpty && (await this.#commits.commit(undefined)) !== 'worked') return
      await this.#drains.finish()
    }
    await this.#commits.commit(undefined)
  }

  abandon(): void {
    this.#desk.isOver = true
    this.#attempts.abandon()
    if (!this.#desk.suspicion.isOver) void this.#acquit()
  }

  /** It lost its partition and is alive: nobody died over what it tried. */
  async #acquit(): Promise<void> {
    const { store, settings, logger, subscription } = this.#desk.parts
    try {
      await store.subscriptions.acquit(settings.instance)
    } catch (error) {
      logger.warn({ subscription: subscription.name, error }, 'a trial could not be taken back')
    }
  }

  /** All that may have killed a process before has its outcome. */
  #endSuspicion(): void {
    const { suspicion, running, window, ledger } = this.#desk
    if (suspicion.isOver || running.size > 0 || this.isDue) return
    const isRead = window.through >= this.#suspectUpTo || this.#intake.isAtEnd
    if (isRead && !window.hasUnfinished(this.#suspectUpTo)) ledger.endTrials(suspicion.end())
  }

  #hasToCommit(): boolean {
    const { ledger, window, tracks, parts, tried } = this.#desk
    if (!ledger.isEmpty || this.#attempts.wanted) return true
    if (window.through > tried && tracks.size > 0) return true
    const { tenure, runtime } = parts
    const isBehind = window.done().position > (tenure.checkpoint as Checkpoint).position
    return isBehind && runtime.clock.mono() - tenure.committedAt >= quietCommitMs
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
