import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Clock } from '../../runtime/ports.ts'

interface Item {
  readonly lane: string
  /** By the monotonic clock: setting back the system clock by an hour must not delay lanes by an hour. */
  readonly dueAt: number
}

/**
 * The held lanes to retry, in a heap by due time. A lane with a new time leaves a stale entry in the heap, which is ignored when it comes
 * up.
 */
export class DueLanes {
  readonly #heap: Item[] = []
  readonly #times = new Map<string, number>()

  /** `clock.now` is the clock of the store, which set the due times. */
  constructor(lanes: Iterable<HeldLane>, clock: Clock) {
    const before = clock.now() - clock.mono()
    for (const { lane, status, dueAt = 0 } of lanes) if (status === 'retrying') this.add(lane, dueAt - before)
  }

  add(lane: string, dueAt: number): void {
    this.#times.set(lane, dueAt)
    this.#heap.push({ lane, dueAt })
    this.#rise(this.#heap.length - 1)
  }

  /** Removes a lane. */
  drop(lane: string): void {
    this.#times.delete(lane)
  }

  isDue(now: number): boolean {
    const next = this.nextAt()
    return next !== undefined && next <= now
  }

  nextAt(): number | undefined {
    for (let first = this.#heap[0]; first; first = this.#heap[0]) {
      if (this.#times.get(first.lane) === first.dueAt) return first.dueAt
      this.#pop()
    }
    return undefined
  }

  /** Removes and returns the lane that has been due longest. */
  take(now: number): string | undefined {
    if (!this.isDue(now)) return undefined
    const { lane } = this.#pop() as Item
    this.#times.delete(lane)
    return lane
  }

  #pop(): Item | undefined {
    const [first] = this.#heap
    const last = this.#heap.pop()
    if (last && this.#heap.length > 0) {
      this.#heap[0] = last
      this.#sink()
    }
    return first
  }

  #rise(index: number): void {
    for (let i = index; i > 0; ) {
      const parent = (i - 1) >> 1
      if (!this.#swapIfLater(parent, i)) return
      i = parent
    }
  }

  #sink(): void {
    for (let i = 0; ; ) {
      const left = 2 * i + 1
      const right = left + 1
      const child = this.#timeAt(right) < this.#timeAt(left) ? right : left
      if (child >= this.#heap.length || !this.#swapIfLater(i, child)) return
      i = child
    }
  }

  #swapIfLater(parent: number, child: number): boolean {
    const [above, below] = [this.#heap[parent] as Item, this.#heap[child] as Item]
    if (above.dueAt <= below.dueAt) return false
    this.#heap[parent] = below
    this.#heap[child] = above
    return true
  }

  #timeAt(index: number): number {
    return this.#heap[index]?.dueAt ?? Number.POSITIVE_INFINITY
  }
}
