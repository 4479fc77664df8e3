import type { RecordedEvent } from '../../event/event.ts'
import type { Range } from '../../subscription/subscription-store.ts'

/** An event from the read until the checkpoint has passed it. */
export interface Slot {
  readonly record: RecordedEvent
  /** Its outcome is in the last or the next commit. */
  isDone: boolean
}

/**
 * The events of a partition above its checkpoint that were read, in order. They finish in any order. The checkpoint can only pass events
 * without an unfinished one before them, so finished events above it are marked.
 */
export class Window {
  readonly #slots: Slot[] = []
  readonly #before: readonly Range[]
  #through: number
  #unfinished = 0
  #unfinishedBytes = 0

  /** `before` are the events that a previous owner had finished above the checkpoint. */
  constructor(through: number, before: readonly Range[] = []) {
    this.#through = through
    this.#before = before
  }

  /** How far the source was read. */
  get through(): number {
    return this.#through
  }

  get size(): number {
    return this.#slots.length
  }

  /** The number of unfinished events. It is kept as a counter, because it is read after every outcome. */
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

  /** Marks an event as done. */
  finish(slot: Slot): void {
    if (slot.isDone) return
    slot.isDone = true
    this.#count(slot, -1)
  }

  /** The position up to which everything is done, and the last event there; undefined if there is none. */
  done(): { readonly position: number; readonly last: RecordedEvent | undefined } {
    const first = this.#slots.findIndex(({ isDone }) => !isDone)
    if (first < 0) return { position: this.#through, last: this.#slots.at(-1)?.record }
    const last = this.#slots[first - 1]?.record
    return { position: last?.position ?? Number.NEGATIVE_INFINITY, last }
  }

  /** The events that are done above the first unfinished one. A range may span positions of other partitions. */
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
      // Events below the first unfinished one are covered by the checkpoint.
      if (!isAbove) continue
      // One slow event may delay the checkpoint for long, so the bodies of finished events are dropped.
      if (record.body !== '') this.#slots[i] = { record: { ...record, body: '', metadata: undefined }, isDone }
      if (open) open[1] = record.position
      else ranges.push((open = [record.position, record.position]))
    }
    // Marks above the read position are kept; without them the next owner would start those events again.
    for (const [from, to] of this.#before) {
      if (to > this.#through) ranges.push([Math.max(from, this.#through + 1), to])
    }
    return ranges
  }

  hasUnfinished(upTo: number): boolean {
    return this.#slots.some(({ record, isDone }) => !isDone && record.position <= upTo)
  }

  /** The checkpoint was committed at this position. */
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
