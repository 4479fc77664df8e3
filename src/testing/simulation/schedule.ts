import type { Random } from '../../runtime/ports.ts'
import { tick, turn } from '../turn.ts'

interface Entry {
  readonly due: number
  /** Among what is due at the same time, chance decides. */
  readonly tie: number
  readonly run: () => void
  isCancelled: boolean
}

/** Whatever does so much without any time going by never stops: a process would take all of its core for it. */
const mostStepsAtOnce = 10_000

/** So that whatever has its own way to the outside is seen to, too: a timer of a test, a message of another process. */
const stepsPerTurn = 100

/** Takes back what was scheduled. */
export type Cancel = () => void

/**
 * Virtual time: a list of what happens when. One thing happens at a time, and then everything that follows from it at once, to the last
 * promise, before the next does. So the order of a run is decided by the seed and by nothing else.
 */
export class Schedule {
  readonly #random: Random
  readonly #heap: Entry[] = []
  #now = 0
  /** Effects that have begun and are not over; time stands still for them. */
  #pending = 0
  #steps = 0
  #stepsNow = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Milliseconds since the beginning. */
  get now(): number {
    return this.#now
  }

  /** How many things happened. */
  get steps(): number {
    return this.#steps
  }

  in(ms: number, run: () => void): Cancel {
    const entry: Entry = { due: this.#now + Math.max(0, ms), tie: this.#random.u32(), run, isCancelled: false }
    push(this.#heap, entry)
    return () => {
      entry.isCancelled = true
    }
  }

  /** Something real that takes no virtual time, such as a statement of a database in this process. */
  async hold<T>(effect: () => T | Promise<T>): Promise<T> {
    this.#pending++
    try {
      return await effect()
    } finally {
      this.#pending--
    }
  }

  /** Lets happen what is due, until a time, or until `isOver` says so, or until nothing is left. */
  async run(until: number, isOver: () => boolean = () => false): Promise<void> {
    for (;;) {
      // A tick comes when all promises that can be settled are; only something real has to wait for the loop, which costs more.
      await (this.#steps % stepsPerTurn === 0 ? turn() : tick())
      while (this.#pending > 0) await turn()
      if (isOver()) return
      while (this.#heap[0]?.isCancelled && this.#heap[0].due <= until) pop(this.#heap)
      const next = this.#heap[0]
      if (next === undefined || next.due > until) {
        this.#now = Math.max(this.#now, until)
        return
      }
      pop(this.#heap)
      this.#stepsNow = next.due > this.#now ? 0 : this.#stepsNow + 1
      if (this.#stepsNow > mostStepsAtOnce) throw new Error(`Something spins at ${this.#now} ms.`)
      this.#now = Math.max(this.#now, next.due)
      this.#steps++
      next.run()
    }
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.due < b.due || (a.due === b.due && a.tie < b.tie)
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.length
  heap.push(entry)
  while (at > 0) {
    const parent = (at - 1) >>> 1
    if (!isBefore(entry, heap[parent] as Entry)) break
    heap[at] = heap[parent] as Entry
    at = parent
  }
  heap[at] = entry
}

function pop(heap: Entry[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child++
    if (!isBefore(heap[child] as Entry, last)) break
    heap[at] = heap[child] as Entry
    at = child
  }
  heap[at] = last
}
