import type { Plan } from '../../src/testing/simulation/plan.ts'
import { timeoutMs, type Tried } from './steps.ts'
import type { Begun, Watcher } from './walk.ts'

/** No attempt takes longer than it may. */
export class Deadlines implements Watcher {
  readonly problems: string[] = []
  readonly #running = new Map<number, Begun>()

  /** Undefined where processes stand still: who does can't give anything up. */
  static for({ conditions }: Plan): Deadlines | undefined {
    return conditions.pauseEveryMs > 0 ? undefined : new Deadlines()
  }

  begun(begun: Begun): void {
    this.#running.set(begun.number, begun)
  }

  ended(begun: Begun, _tried: Tried, atMs: number): void {
    this.#running.delete(begun.number)
    this.#judge(begun, atMs)
  }

  killed(who: string, atMs: number): void {
    for (const begun of this.#running.values()) {
      if (begun.ownership?.who !== who) continue
      this.#running.delete(begun.number)
      this.#judge(begun, atMs)
    }
  }

  #judge({ event, atMs: begunAt }: Begun, atMs: number): void {
    // One more, for what is lost by rounding.
    if (atMs - begunAt > timeoutMs + 1)
      this.problems.push(
        `I11 ${event.id} was under way for ${(atMs - begunAt).toFixed(0)} ms, and may for ${timeoutMs}`,
      )
  }
}
