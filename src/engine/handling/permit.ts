import type { Share } from '../../source/share.ts'

/** What may come between two commits of a busy partition. After a death these are suspects as well, so there are not many of them. */
const aheadEvents = 100
const aheadMs = 100

/**
 * Up to where events may be begun: a commit has said so before. It says so for what was read, and for a little of what is still to
 * come, or where events come one by one each would have to wait for a commit of its own. That part is good for a moment only: commits
 * are also how a process finds out that it is paused, or is not the owner any more.
 */
export class Permit {
  #through: number
  #ahead = 0
  #aheadUntil = Number.NEGATIVE_INFINITY

  constructor(through: number) {
    this.#through = through
  }

  /** What the next commit is to say, when it was read so far. */
  static reach(through: number, { of }: Share): number {
    return through + aheadEvents * of
  }

  /** A commit that is in the store said so. `now` is the monotonic clock's. */
  extend(through: number, tried: number, now: number): void {
    this.#through = Math.max(this.#through, through)
    this.#ahead = tried
    this.#aheadUntil = now + aheadMs
  }

  covers(position: number, now: number): boolean {
    return position <= this.#through || (position <= this.#ahead && now < this.#aheadUntil)
  }
}
