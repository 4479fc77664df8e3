import type { RecordedEvent } from '../../event/event.ts'
import type { Range } from '../../subscription/subscription-store.ts'

/** An event on its way, from when it was read until the checkpoint has passed it. */
export interface Slot {
  readonly record: RecordedEvent
  /** Its outcome is in a commit that was made, or is about to be. */
  isDone: boolean
}

/**
 * The events of a partition above its checkpoint, in order, as far as they were read. They end in any order; the checkpoint can only
 * pass what has nothing unfinished before it, so what is finished above it is marked.
 */
export class Window {
  readonly #slots: Slot[] = []
  readonly #before: readonly Range[]
  #through: number
  #unfinished = 0
  #unfinishedBytes = 0

  /** `before` is what an owner before had finished above the checkpoint. */
  constructor(through: number, before: readonly Range[] = []) {
    this.#through = through
    this.#before = before
  }

  /** How far was read. */
  get through(): number {
    return this.#through
  }

  get size(): number {
    return this.#slots.length
  }

  /** How many are unfinished, and how large they are. Asked whenever something ends, so it is counted and not looked up. */
  get unfinished(): number {
    return this.#unfinished
  }

  get unfinishedBytes(): number {
    return this.#unfinishedBytes
  }

  add(slots: readonly Slot[], through: number): void {
    for (const slot of slots) {
      this.#slots.push(slot)
      if (!slot.isDone) this.#count(slot, 1)
    }
    this.#through = Math.max(this.#through, through)
  }

  /** One that was added is done. */
  finish(slot: Slot): void {
    if (slot.isDone) return
    slot.isDone = true
    this.#count(slot, -1)
  }

  /** Up to where everything is done, and the last event of that; undefined when that is none. */
  done(): { readonly position: number; readonly last: RecordedEvent | undefined } {
    const first = this.#slots.findIndex(({ isDone }) => !isDone)
    if (first < 0) return { position: this.#through, last: this.#slots.at(-1)?.record }
    const last = this.#slots[first - 1]?.record
    return { position: last?.position ?? Number.NEGATIVE_INFINITY, last }
  }

  /** What is done above the first that isn't. A range may span positions of other partitions. */
  marks(): Range[] {
    const ranges: [number, number][] = []
    let open: [number, number] | undefined
    let isAbove = false
    for (let i = 0; i < this.#slots.length; i++) {
      const { record, isDone } = this.#slots[i] as Slot
      if (!isDone) {
        isAbove = true
        open = undefined
        continue
      }
      // Those below the first that is unfinished are gone with the commit.
      if (!isAbove) continue
      // One slow event may hold up the checkpoint for long: of what is done meanwhile, nothing but its place is kept.
      if (record.body !== '') this.#slots[i] = { record: { ...record, body: '', metadata: undefined }, isDone }
      if (open) open[1] = record.position
      else ranges.push((open = [record.position, record.position]))
    }
    // What is not read yet is as finished as it was; left out, it would be begun again by whoever comes next.
    for (const [from, to] of this.#before) {
      if (to > this.#through) ranges.push([Math.max(from, this.#through + 1), to])
    }
    return ranges
  }

  hasUnfinished(upTo: number): boolean {
    return this.#slots.some(({ record, isDone }) => !isDone && record.position <= upTo)
  }

  /** The checkpoint is here. */
  pass(position: number): void {
    const first = this.#slots.findIndex(({ record }) => record.position > position)
    this.#slots.splice(0, first < 0 ? this.#slots.length : first)
  }

  #count({ record }: Slot, sign: 1 | -1): void {
    this.#unfinished += sign
    this.#unfinishedBytes += sign * record.body.length
  }
}

export function isMarked(marks: readonly Range[], position: number): boolean {
  return marks.some(([from, to]) => position >= from && position <= to)
}
