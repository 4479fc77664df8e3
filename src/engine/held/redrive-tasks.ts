import type { HeldLane } from '../../dead-letter/letter.ts'
import { isActedOn } from '../../redrive/acts.ts'
import type { Redrive, RedriveProgress, RedriveTask } from '../../redrive/redrive.ts'
import { TokenBucket } from './token-bucket.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'

/** The number of lanes of a redrive that are in progress at a time, or started with one commit. */
export const lanesAtOnce = 100

const lanesPerQuestion = 1_000

/** A lane that is ended as a whole. */
export type WholeTask = RedriveTask & { readonly until: number }

/**
 * What the owner of a partition knows about redrives: whether there may be lanes to start, and the rate of each redrive. The store is
 * queried for the lanes each time, because a redrive can be cancelled between two queries.
 */
export class Redriving {
  readonly #parts: Pick<WorkerParts, 'store' | 'subscription' | 'share' | 'runtime'>
  /** True at first: the previous owner may have been about to start a redrive. */
  #isTold = true
  #isLearned = false
  #askAt = Number.NEGATIVE_INFINITY
  /** By redrive; undefined for no limit. */
  readonly #paces = new Map<string, TokenBucket | undefined>()
  /** Lanes that are ended as a whole, by redrive and lane. */
  readonly #wholes = new Map<string, Map<string, RedriveTask>>()

  constructor(parts: Pick<WorkerParts, 'store' | 'subscription' | 'share' | 'runtime'>) {
    this.#parts = parts
  }

  /** There may be lanes to start, or a redrive to end. */
  get isTold(): boolean {
    return this.#isTold
  }

  hear(): void {
    this.#isTold = true
  }

  /** The held lanes were read again. */
  forget(): void {
    this.#isTold = true
    this.#isLearned = false
  }

  /** Whether to query the store now; by the monotonic clock. */
  isDue(now: number): boolean {
    return this.#isTold && now >= this.#askAt
  }

  /** When to query the store, if not immediately. */
  nextAt(): number | undefined {
    return this.#isTold ? this.#askAt : undefined
  }

  /** No lane may start before a time. */
  postpone(at: number): void {
    this.#askAt = at
  }

  /** The lanes to start next. After an empty result the store is not queried until the next notification. */
  async due(limit: number): Promise<readonly RedriveTask[]> {
    const { store, subscription, share, runtime } = this.#parts
    await store.redrives.advance(subscription.name)
    const tasks = await store.redrives.due(subscription.name, share.partition, limit)
    this.#isTold = tasks.length > 0
    this.#askAt = Number.NEGATIVE_INFINITY
    for (const task of tasks) {
      const { redrive, rate } = task
      if (!this.#paces.has(redrive)) this.#pace(redrive, rate, runtime.clock.mono())
      this.#note(task)
    }
    return tasks
  }

  paceOf(redrive: string | undefined): TokenBucket | undefined {
    return redrive === undefined ? undefined : this.#paces.get(redrive)
  }

  /** The task that ends the letters of a lane up to a position; undefined if its letters are tried. */
  wholeOf(lane: string, redrive: string | undefined): WholeTask | undefined {
    const task = redrive === undefined ? undefined : this.#wholes.get(redrive)?.get(lane)
    return task as WholeTask | undefined
  }

  /** Whether the head of a started lane is ended with the whole lane. */
  isLeftOut({ lane, redrive, headPosition }: HeldLane): boolean {
    const whole = this.wholeOf(lane, redrive)
    return whole !== undefined && headPosition <= whole.until
  }

  /** A commit has recorded the progress of lanes. */
  told(redriven: readonly RedriveProgress[]): void {
    for (const { redrive, lane, state } of redriven) {
      if (state === 'running') continue
      // A finished lane may have ended its redrive, or allow the next stage.
      this.hear()
      this.#wholes.get(redrive)?.delete(lane)
    }
  }

  /** Loads the rates and the whole lanes of redrives that a previous owner started, once for all held lanes. */
  async learn(held: Iterable<HeldLane>): Promise<void> {
    if (this.#isLearned) return
    const { store, share, runtime } = this.#parts
    const unknown = new Set<string>()
    for (const { redrive, lane } of held) {
      if (redrive === undefined) continue
      const isKnown = this.#paces.has(redrive) && this.#wholes.get(redrive)?.has(lane) !== false
      if (!isKnown) unknown.add(redrive)
    }
    for (const id of unknown) {
      const found = await store.redrives.find(id)
      // The number of partitions of the redrive is unknown, so it assumes all of them: never too fast.
      if (!this.#paces.has(id))
        this.#pace(id, found?.rate === undefined ? undefined : found.rate / share.of, runtime.clock.mono())
      if (found?.isWhole) await this.#learnWholes(found)
    }
    this.#isLearned = true
  }

  /** Reads lanes of all states: a lane that started before its redrive was cancelled is `left`, and is still finished. */
  async #learnWholes({ id, act, by, reason, rate }: Redrive): Promise<void> {
    const { store, share } = this.#parts
    for (let after = 0; ; ) {
      const lanes = await store.redrives.lanes(id, undefined, after, lanesPerQuestion)
      for (const { redrive, partition, lane, position, until, ordinal } of lanes) {
        after = ordinal
        if (partition === share.partition) this.#note({ redrive, lane, position, until, act, by, reason, rate })
      }
      if (lanes.length < lanesPerQuestion) return
    }
  }

  #note(task: RedriveTask): void {
    const { redrive, lane, until } = task
    if (until === undefined) return
    const lanes = this.#wholes.get(redrive) ?? new Map<string, RedriveTask>()
    this.#wholes.set(redrive, lanes.set(lane, task))
  }

  #pace(redrive: string, rate: number | undefined, now: number): void {
    this.#paces.set(redrive, rate === undefined ? undefined : new TokenBucket(rate, now))
  }
}

/** Whether the head of a lane is the same as when the redrive was created. */
export function fits({ act, position }: RedriveTask, hold: HeldLane | undefined): hold is HeldLane {
  return hold?.headPosition === position && isActedOn(act, hold)
}

/** Whether the task ends the head without trying it. */
export function endsHead({ act }: RedriveTask): boolean {
  return act === 'discard' || act === 'resolve'
}
