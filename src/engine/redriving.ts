import type { HeldLane } from '../dead-letter/letter.ts'
import { isActedOn } from '../redrive/acts.ts'
import type { RedriveTask } from '../redrive/redrive.ts'
import { Pace } from './pace.ts'
import type { WorkerParts } from './worker.ts'

/** As many lanes of a redrive as are under way at a time, or taken up with one commit. */
export const lanesAtOnce = 100

/**
 * What the owner of a partition knows of redrives: whether there may be lanes to begin, and how fast each of them may go. Which lanes
 * that are is the store's to say, each time anew: a redrive can be cancelled between two questions.
 */
export class Redriving {
  readonly #parts: Pick<WorkerParts, 'store' | 'subscription' | 'share' | 'runtime'>
  /** Whoever had the partition before may have been about to begin one, so the first look is its own. */
  #isTold = true
  #isLearned = false
  #askAt = Number.NEGATIVE_INFINITY
  /** Undefined for as fast as it goes. */
  readonly #paces = new Map<string, Pace | undefined>()

  constructor(parts: Pick<WorkerParts, 'store' | 'subscription' | 'share' | 'runtime'>) {
    this.#parts = parts
  }

  /** There may be something to begin, or a redrive to end. */
  get isTold(): boolean {
    return this.#isTold
  }

  hear(): void {
    this.#isTold = true
  }

  /** What is held was read anew. */
  forget(): void {
    this.#isTold = true
    this.#isLearned = false
  }

  /** Whether to ask now; by the monotonic clock. */
  isDue(now: number): boolean {
    return this.#isTold && now >= this.#askAt
  }

  /** When to ask, if that is not at once. */
  nextAt(): number | undefined {
    return this.#isTold ? this.#askAt : undefined
  }

  /** Nothing of what there is may be begun before a time. */
  postpone(at: number): void {
    this.#askAt = at
  }

  /** The lanes that are to be begun next. None: there is nothing until it is told so again. */
  async due(limit: number): Promise<readonly RedriveTask[]> {
    const { store, subscription, share, runtime } = this.#parts
    const tasks = await store.redrives.due(subscription.name, share.partition, limit)
    this.#isTold = tasks.length > 0
    this.#askAt = Number.NEGATIVE_INFINITY
    for (const { redrive, rate } of tasks) {
      if (!this.#paces.has(redrive)) this.#pace(redrive, rate, runtime.clock.mono())
    }
    return tasks
  }

  paceOf(redrive: string | undefined): Pace | undefined {
    return redrive === undefined ? undefined : this.#paces.get(redrive)
  }

  /** How fast those may go that somebody else has begun. Asked once for all that are held. */
  async learn(held: Iterable<HeldLane>): Promise<void> {
    if (this.#isLearned) return
    const { store, share, runtime } = this.#parts
    const unknown = new Set<string>()
    for (const { redrive } of held) if (redrive !== undefined && !this.#paces.has(redrive)) unknown.add(redrive)
    for (const id of unknown) {
      const found = await store.redrives.find(id)
      // Over how many partitions it is spread is not said; never faster than with all of them.
      this.#pace(id, found?.rate === undefined ? undefined : found.rate / share.of, runtime.clock.mono())
    }
    this.#isLearned = true
  }

  #pace(redrive: string, rate: number | undefined, now: number): void {
    this.#paces.set(redrive, rate === undefined ? undefined : new Pace(rate, now))
  }
}

/** Whether a lane still stands where it stood when the set was frozen. */
export function fits({ act, position }: RedriveTask, hold: HeldLane | undefined): hold is HeldLane {
  return hold?.headPosition === position && isActedOn(act, hold)
}

/** Whether the head is to be left out rather than tried. */
export function endsHead({ act }: RedriveTask): boolean {
  return act === 'discard' || act === 'resolve'
}
