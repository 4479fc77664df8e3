import type { Share } from '../../source/share.ts'

/** The number of events that may start between two commits beyond what was read. After a death they are suspects too, so it is small. */
const aheadEvents = 100
const aheadMs = 100

/**
 * The position up to which events may start, as an earlier commit allowed. A commit allows the events that were read, and a few more;
 * without these, events that arrive one by one would each wait for their own commit. The extra part is valid only briefly, because
 * commits are also how a process learns that it is paused or no longer the owner.
 */
export class BeginWindow {
  #through: number
  #ahead = 0
  #aheadUntil = Number.NEGATIVE_INFINITY

  constructor(through: number) {
    this.#through = through
  }

  /** The position that the next commit allows, if the source was read up to `through`. */
  static reach(through: number, { of }: Share): number {
    return through + aheadEvents * of
  }

  /** A commit succeeded. `now` is a time of the monotonic clock. */
  extend(through: number, tried: number, now: number): void {
    this.#through = Math.max(this.#through, through)
    this.#ahead = tried
    this.#aheadUntil = now + aheadMs
  }

  covers(position: number, now: number): boolean {
    return position <= this.#through || (position <= this.#ahead && now < this.#aheadUntil)
  }
}
