import type { Plan } from '../../src/testing/simulation/plan.ts'
import type { Begun, Ownership, Watcher } from './walk.ts'

/** Whoever can't be sure that a partition is still its own begins nothing there: when its lease has run out, another one may have begun. */
export class Leases implements Watcher {
  readonly problems: string[] = []
  readonly #leaseMs: number
  /** Until when it is its own, by the store. */
  readonly #until = new Map<Ownership, number>()

  /** Undefined where something may come between the last look at the lease and the attempt: a process that is stopped. */
  static for({ conditions, leaseMs }: Plan): Leases | undefined {
    return conditions.pauseEveryMs > 0 ? undefined : new Leases(leaseMs)
  }

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  claimed(ownership: Ownership, _claim: unknown, atMs: number): void {
    this.#until.set(ownership, atMs + this.#leaseMs)
  }

  renewed(ownership: Ownership, atMs: number): void {
    this.#until.set(ownership, Math.max(this.#until.get(ownership) ?? 0, atMs + this.#leaseMs))
  }

  begun({ event, ownership, atMs }: Begun): void {
    const lateMs = ownership ? atMs - (this.#until.get(ownership) as number) : 0
    if (lateMs > 0)
      this.problems.push(
        `I13 ${event.id} was begun by ${ownership?.who}, ${lateMs.toFixed(0)} ms after the end of its lease`,
      )
  }
}
