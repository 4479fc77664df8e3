import type { Plan } from '../../src/testing/simulation/plan.ts'
import type { StepsSettings } from './steps.ts'
import type { Begun, Tenure, Watcher } from './walk.ts'

/** Whoever can't be sure that a partition is still its own begins nothing there: when its lease has run out, another one may have begun. */
export class Leases implements Watcher {
  readonly problems: string[] = []
  readonly #leaseMs: number
  readonly #renewedAt = new Map<Tenure, number>()

  /** Undefined where a process can't know how long the answer to a renewal has been under way. */
  static for({ leaseMs, conditions }: Plan, { breaker }: StepsSettings): Leases | undefined {
    if (conditions.slow > 0 || conditions.pauseEveryMs > 0 || breaker) return undefined
    // A claim takes several calls, and each of them may be refused a few times.
    return new Leases(leaseMs + 20 * conditions.latencyMs + 200)
  }

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  claimed(tenure: Tenure, _claim: unknown, atMs: number): void {
    this.#renewedAt.set(tenure, atMs)
  }

  renewed(tenure: Tenure, atMs: number): void {
    this.#renewedAt.set(tenure, atMs)
  }

  begun({ event, tenure, atMs }: Begun): void {
    const sinceMs = tenure && atMs - (this.#renewedAt.get(tenure) as number)
    if (sinceMs !== undefined && sinceMs > this.#leaseMs)
      this.problems.push(`I13 ${event.id} was begun by ${tenure?.who}, whose lease is ${sinceMs.toFixed(0)} ms old`)
  }
}
