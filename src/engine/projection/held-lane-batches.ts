import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import type { LaneBatch } from './held-lanes.ts'
import type { TokenBucket } from '../held/token-bucket.ts'
import type { Partition } from '../ownership/partition.ts'
import { fits, lanesAtOnce, Redriving, type WholeTask } from '../held/redrive-tasks.ts'
import type { Outcome } from '../outcome/ledger.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'

/** The number of letters per lane that a batch should have room for. */
const leastPerLane = 10

export interface BatchLimits {
  readonly lanes: number
  readonly events: number
  readonly bytes: number
}

/**
 * Chooses the held lanes of a projection to process next: first lanes that are due or were started by a redrive, then lanes that a
 * redrive is about to start. Lanes with the same rate limit go together. A lane with more than its share of a batch goes to the end.
 */
export class HeldLaneBatches {
  readonly redriving: Redriving
  readonly #mono: () => number
  readonly #due = new Set<string>()
  /** Lanes whose row the database has refused. */
  readonly #careful = new Set<string>()
  /** Smaller after refused rows, because each refusal costs the whole batch. */
  #most = lanesAtOnce
  #pace: TokenBucket | undefined

  constructor(parts: Pick<WorkerParts, 'store' | 'subscription' | 'share' | 'runtime'>) {
    this.redriving = new Redriving(parts)
    this.#mono = () => parts.runtime.clock.mono()
  }

  /** Whether there are lanes to process, now or later. */
  get isDue(): boolean {
    return this.#due.size > 0 || this.redriving.isTold
  }

  /** Whether there may be lanes to process now. */
  isDueNow(held: ReadonlyMap<string, HeldLane>): boolean {
    return (this.nextAt(held) ?? Number.POSITIVE_INFINITY) <= this.#mono()
  }

  /** When there may be lanes to process; undefined: not before a notification. */
  nextAt(held: ReadonlyMap<string, HeldLane>): number | undefined {
    const now = this.#mono()
    let next = this.redriving.nextAt()
    for (const lane of this.#due) {
      const at = now + (this.#paceOf(held, lane)?.waitMs(now) ?? 0)
      if (at <= now) return at
      next = Math.min(next ?? at, at)
    }
    return next
  }

  adopt(held: ReadonlyMap<string, HeldLane>): void {
    this.#due.clear()
    for (const { lane, status } of held.values()) if (status === 'retrying') this.#due.add(lane)
    this.redriving.forget()
  }

  /** Undefined if no lane can be processed yet. */
  async next({ held }: Pick<Partition, 'held'>, limits: BatchLimits): Promise<LaneBatch | undefined> {
    await this.redriving.learn(held.values())
    const mostLanes = Math.min(limits.lanes, this.#most)
    const lanes = new Set<string>()
    this.#pace = undefined
    for (const lane of this.#due) {
      if (lanes.size >= mostLanes) break
      if (this.#admits(this.#paceOf(held, lane), lanes.size === 0)) lanes.add(lane)
    }
    const { tasks, passed } = await this.#begin(held, lanes, mostLanes)
    if (lanes.size === 0 && passed.length === 0) return undefined
    const events = Math.max(1, Math.min(limits.events, this.#allowance()))
    // A lane costs more than a letter, so it takes few lanes with several letters each.
    const some = [...lanes].slice(0, Math.ceil(events / leastPerLane))
    const perLane = Math.ceil(events / Math.max(1, some.length))
    const wholes = new Map<string, WholeTask>()
    for (const lane of some) {
      const whole = this.redriving.wholeOf(lane, tasks.get(lane)?.redrive ?? held.get(lane)?.redrive)
      if (whole) wholes.set(lane, whole)
    }
    const most = { events, bytes: limits.bytes, perLane }
    return { lanes: some, tasks, wholes, passed, limits: most, singles: this.#careful }
  }

  /** A batch or a page was committed. A page may have made lanes due. */
  accept({ lanes, counts, stopped, redriven }: Outcome, isBatch: boolean): void {
    for (const { lane, hold } of lanes) {
      this.#due.delete(lane)
      if (hold?.status === 'retrying') this.#due.add(lane)
      else this.#careful.delete(lane)
    }
    this.redriving.told(redriven)
    if (!isBatch) return
    this.#pace?.take(stopped.length - counts.held)
    this.#most = Math.min(this.#most * 2, lanesAtOnce)
  }

  /** The database refused a row and so the whole batch. Returns the lane whose head caused it, if that is clear. */
  reject({ lanes }: LaneBatch, key: string): string | undefined {
    const [first, second] = lanes
    const lane = lanes.includes(key) ? key : first
    if (lane === undefined) return undefined
    const isClear = this.#careful.has(lane) && (lane === key || second === undefined)
    this.#careful.add(lane)
    this.#most = lane === key ? Math.max(1, Math.floor(this.#most / 4)) : 1
    return isClear ? lane : undefined
  }

  /** Adds lanes that a redrive is about to start, as far as there is room. */
  async #begin(held: ReadonlyMap<string, HeldLane>, lanes: Set<string>, most: number) {
    const tasks = new Map<string, RedriveTask>()
    const passed: RedriveTask[] = []
    const now = this.#mono()
    if (lanes.size >= most || !this.redriving.isDue(now)) return { tasks, passed }
    let waitMs = Number.POSITIVE_INFINITY
    const due = await this.redriving.due(most - lanes.size)
    for (const task of due) {
      if (lanes.size >= most) break
      const pace = this.redriving.paceOf(task.redrive)
      if (!fits(task, held.get(task.lane))) passed.push(task)
      else if (this.#admits(pace, lanes.size === 0)) {
        tasks.set(task.lane, task)
        lanes.add(task.lane)
      } else waitMs = Math.min(waitMs, pace?.waitMs(now) ?? 0)
    }
    if (tasks.size === 0 && passed.length === 0 && due.length > 0) this.redriving.postpone(now + waitMs)
    return { tasks, passed }
  }

  /** Whether a lane fits into the batch. The first lane determines its rate limit. */
  #admits(pace: TokenBucket | undefined, isFirst: boolean): boolean {
    if (!isFirst) return pace === this.#pace
    if (pace && pace.available(this.#mono()) < 1) return false
    this.#pace = pace
    return true
  }

  /** The number of letters that the current batch may try. */
  #allowance(): number {
    return this.#pace?.available(this.#mono()) ?? Number.POSITIVE_INFINITY
  }

  #paceOf(held: ReadonlyMap<string, HeldLane>, lane: string): TokenBucket | undefined {
    return this.redriving.paceOf(held.get(lane)?.redrive)
  }
}
