import type { Plan } from '../../src/testing/simulation/plan.ts'
import type { StepsSettings } from './steps.ts'
import type { Begun, Tenure, Watcher } from './walk.ts'

/** Whoever can't be sure that a partition is still its own begins nothing there: when its lease has run out, another one may have begun. */
export class Leases implements Watcher {
  readonly problems: string[] = []
  readonly #plan: Plan
  /** Until when it is its own for all that its owner knows. */
  readonly #until = new Map<Tenure, number>()

  /** Undefined where a process can't know how long the answer to a renewal has been under way. */
  static for(plan: Plan, { breaker }: StepsSettings): Leases | undefined {
    const { slow, pauseEveryMs } = plan.conditions
    return slow > 0 || pauseEveryMs > 0 || breaker ? undefined : new Leases(plan)
  }

  constructor(plan: Plan) {
    this.#plan = plan
  }

  claimed(tenure: Tenure, _claim: unknown, atMs: number): void {
    const { leaseMs, conditions } = this.#plan
    // A claim takes several calls, and each of them may be refused a few times.
    this.#until.set(tenure, atMs + leaseMs + 20 * conditions.latencyMs + 200)
  }

  renewed(tenure: Tenure, atMs: number): void {
    const { leaseMs, conditions } = this.#plan
    this.#until.set(tenure, Math.max(this.#until.get(tenure) ?? 0, atMs + leaseMs + conditions.latencyMs + 1))
  }

  begun({ event, tenure, atMs }: Begun): void {
    const lateMs = tenure ? atMs - (this.#until.get(tenure) as number) : 0
    if (lateMs > 0)
      this.problems.push(
        `I13 ${event.id} was begun by ${tenure?.who}, ${lateMs.toFixed(0)} ms after the end of its lease`,
      )
  }
}
