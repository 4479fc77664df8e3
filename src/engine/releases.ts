import type { HeldLane } from '../dead-letter/letter.ts'
import type { RedriveTask } from '../redrive/redrive.ts'
import type { LaneBatch } from './lanes.ts'
import type { Pace } from './pace.ts'
import type { Partition } from './partition.ts'
import { fits, lanesAtOnce, Redriving } from './redriving.ts'
import type { Outcome } from './work.ts'
import type { WorkerParts } from './worker.ts'

/** As many letters of a lane as there should be room for in a batch. */
const leastPerLane = 10

export interface BatchLimits {
  readonly lanes: number
  readonly events: number
  readonly bytes: number
}

/**
 * Which held lanes of a projection are let go next: those that are due by themselves or were begun by a redrive, and then those that
 * a redrive is to begin. All that go at the same pace go together. A lane that has more than its part of a batch goes behind the others.
 */
export class Releases {
  readonly redriving: Redriving
  readonly #mono: () => number
  readonly #due = new Set<string>()
  /** Lanes whose row the database has refused. */
  readonly #careful = new Set<string>()
  /** Fewer than usual where rows are refused: each refusal costs the whole batch. */
  #most = lanesAtOnce
  #pace: Pace | undefined

  constructor(parts: Pick<WorkerParts, 'store' | 'subscription' | 'share' | 'runtime'>) {
    this.redriving = new Redriving(parts)
    this.#mono = () => parts.runtime.clock.mono()
  }

  /** Whether there is something to let go, now or later. */
  get isDue(): boolean {
    return this.#due.size > 0 || this.redriving.isTold
  }

  /** Whether there may be something to let go now. */
  isDueNow(held: ReadonlyMap<string, HeldLane>): boolean {
    return (this.nextAt(held) ?? Number.POSITIVE_INFINITY) <= this.#mono()
  }

  /** When there may be something to let go; undefined: not before something happens. */
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

  /** Undefined when there is nothing, or nothing may go yet. */
  async next({ held }: Pick<Partition, 'held'>, limits: BatchLimits): Promise<LaneBatch | undefined> {
    await this.redriving.learn(held.values())
    const most = Math.min(limits.lanes, this.#most)
    const lanes = new Set<string>()
    this.#pace = undefined
    for (const lane of this.#due) {
      if (lanes.size >= most) break
      if (this.#admits(this.#paceOf(held, lane), lanes.size === 0)) lanes.add(lane)
    }
    const { tasks, passed } = await this.#begin(held, lanes, most)
    if (lanes.size === 0 && passed.length === 0) return undefined
    const events = Math.max(1, Math.min(limits.events, this.#allowance()))
    // A lane costs more than a letter: a few of them with some letters each, rather than many with one.
    const some = [...lanes].slice(0, Math.ceil(events / leastPerLane))
    const perLane = Math.ceil(events / Math.max(1, some.length))
    return { lanes: some, tasks, passed, limits: { events, bytes: limits.bytes, perLane }, singles: this.#careful }
  }

  /** It is in the store. Of a page, too: it may have made lanes due. */
  accept({ lanes, counts, stopped, redriven }: Outcome, isBatch: boolean): void {
    for (const { lane, hold } of lanes) {
      this.#due.delete(lane)
      if (hold?.status === 'retrying') this.#due.add(lane)
      else this.#careful.delete(lane)
    }
    // The last of its lanes may have ended it, or let more of them begin.
    if (redriven.some(({ state }) => state !== 'running')) this.redriving.hear()
    if (!isBatch) return
    this.#pace?.take(stopped.length - counts.held)
    this.#most = Math.min(this.#most * 2, lanesAtOnce)
  }

  /** The database refused a row, and with it the batch. Gives the lane whose head is to blame, when that is clear. */
  reject({ lanes }: LaneBatch, key: string): string | undefined {
    const [first, second] = lanes
    const lane = lanes.includes(key) ? key : first
    if (lane === undefined) return undefined
    const isClear = this.#careful.has(lane) && (lane === key || second === undefined)
    this.#careful.add(lane)
    this.#most = lane === key ? Math.max(1, Math.floor(this.#most / 4)) : 1
    return isClear ? lane : undefined
  }

  /** Adds lanes that a redrive is to begin, as far as there is room for them. */
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

  /** Whether a lane may go with the others of a batch. The first one says how fast they go. */
  #admits(pace: Pace | undefined, isFirst: boolean): boolean {
    if (!isFirst) return pace === this.#pace
    if (pace && pace.available(this.#mono()) < 1) return false
    this.#pace = pace
    return true
  }

  /** How many letters may be tried with the batch at hand. */
  #allowance(): number {
    return this.#pace?.available(this.#mono()) ?? Number.POSITIVE_INFINITY
  }

  #paceOf(held: ReadonlyMap<string, HeldLane>, lane: string): Pace | undefined {
    return this.redriving.paceOf(held.get(lane)?.redrive)
  }
}
