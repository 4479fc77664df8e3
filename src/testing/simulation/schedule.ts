import type { Random } from '../../runtime/ports.ts'
import { tick, turn } from '../turn.ts'

interface Entry {
  readonly due: number
  /** Random order for items that are due at the same time. */
  readonly tie: number
  readonly run: () => void
  isCancelled: boolean
}

/** Work that makes so many steps without virtual time passing is an endless loop: a real process would use a whole core. */
const mostStepsAtOnce = 10_000

/** So that real I/O is served too: a timer of a test, a message of another process. */
const stepsPerTurn = 100

/** Cancels a scheduled item. */
export type Cancel = () => void

/**
 * Virtual time: a list of what happens when. One item runs at a time, with all its consequences down to the last promise, before
 * the next one. So only the seed determines the order of a run.
 */
export class Schedule {
  readonly #random: Random
  readonly #heap: Entry[] = []
  #now = 0
  /** Running real effects; time stands still for them. */
  #pending = 0
  #steps = 0
  #stepsNow = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Milliseconds since the start. */
  get now(): number {
    return this.#now
  }

  /** The number of steps. */
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

  /** Runs a real effect that takes no virtual time, such as a statement of a database in this process. */
  async hold<T>(effect: () => T | Promise<T>): Promise<T> {
    this.#pending++
    try {
      return await effect()
    } finally {
      this.#pending--
    }
  }

  /** Runs due items until a time, until `isOver` returns true, or until nothing is left. */
  async run(until: number, isOver: () => boolean = () => false): Promise<void> {
    for (;;) {
      // A tick resolves when all promises that can be settled are settled; only real effects have to wait for the event loop,
      // which costs more.
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
      if (this.#stepsNow > mostStepsAtOnce) throw new Error(`Endless loop at ${this.#now} ms.`)
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
