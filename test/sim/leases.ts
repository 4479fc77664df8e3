import type { Plan } from '../../src/testing/simulation/plan.ts'
import type { Begun, Tenure, Watcher } from './walk.ts'

/** Whoever can't be sure that a partition is still its own begins nothing there: when its lease has run out, another one may have begun. */
export class Leases implements Watcher {
  readonly problems: string[] = []
  readonly #leaseMs: number
  /** Until when it is its own, by the store. */
  readonly #until = new Map<Tenure, number>()

  /** Undefined where something may come between the last look at the lease and the attempt: a process that is stopped. */
  static for({ conditions, leaseMs }: Plan): Leases | undefined {
    return conditions.pauseEveryMs > 0 ? undefined : new Leases(leaseMs)
  }

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  claimed(tenure: Tenure, _claim: unknown, atMs: number): void {
    this.#until.set(tenure, atMs + this.#leaseMs)
  }

  renewed(tenure: Tenure, atMs: number): void {
    this.#until.set(tenure, Math.max(this.#until.get(tenure) ?? 0, atMs + this.#leaseMs))
  }

  begun({ event, tenure, atMs }: Begun): void {
    const lateMs = tenure ? atMs - (this.#until.get(tenure) as number) : 0
    if (lateMs > 0)
      this.problems.push(
        `I13 ${event.id} was begun by ${tenure?.who}, ${lateMs.toFixed(0)} ms after the end of its lease`,
      )
  }
}
