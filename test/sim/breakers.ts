import type { Plan } from '../../src/testing/simulation/plan.ts'
import { breakerOf, opensAfter, type StepsSettings, type Tried } from './steps.ts'
import type { Begun, Known, Ownership, Watcher } from './walk.ts'

const storeFaults = [
  'slow',
  'lostRequest',
  'lostAnswer',
  'busy',
  'outageEveryMs',
  'crashEveryMs',
  'pauseEveryMs',
] as const

/**
 * I10: whoever has seen so many calls fail in a row makes no more of them before all know. Of the first time that a breaker opens, and where
 * the store is always there: who can't ask it goes by what it saw itself.
 */
export class Breakers implements Watcher {
  readonly problems: string[] = []
  readonly #settings: StepsSettings
  readonly #owners = new Map<number, Ownership>()
  readonly #opened = new Set<string>()
  /** By process and breaker: how many failed in a row, and how many of them before the last one's instant. */
  readonly #failed = new Map<string, { readonly inARow: number; readonly before: number; readonly atMs: number }>()

  static for({ conditions }: Plan, settings: StepsSettings): Breakers | undefined {
    const isCalm = storeFaults.every((fault) => conditions[fault] === 0)
    return settings.breaker && isCalm ? new Breakers(settings) : undefined
  }

  constructor(settings: StepsSettings) {
    this.#settings = settings
  }

  claimed(ownership: Ownership): void {
    this.#owners.set(ownership.partition, ownership)
  }

  saved(_who: string, { name, record }: { readonly name: string; readonly record: string }): void {
    if ((JSON.parse(record) as { state: string }).state !== 'closed') this.#opened.add(name)
  }

  begun({ event, ownership, atMs }: Begun): void {
    const name = this.#nameOf(event)
    const failed = this.#failed.get(`${ownership?.who} ${name}`)
    // Several are let in together, and one of them may have failed when the next one begins.
    const inARow = (failed?.atMs === atMs ? failed.before : failed?.inARow) ?? 0
    if (inARow >= opensAfter && !this.#opened.has(name))
      this.problems.push(`I10 ${event.id} was begun after ${inARow} failures in a row, and ${name} never opened`)
  }

  ended({ event, ownership }: Begun, { how }: Tried, atMs: number): void {
    const row = `${ownership?.who} ${this.#nameOf(event)}`
    const isHeard = ownership !== undefined && this.#owners.get(event.partition) === ownership
    if (how === 'transient' && isHeard) {
      const { inARow, before, atMs: lastMs } = this.#failed.get(row) ?? { inARow: 0, before: 0, atMs }
      this.#failed.set(row, { inARow: inARow + 1, before: lastMs === atMs ? before : inARow, atMs })
    } else if (how !== 'abandoned') this.#failed.delete(row)
  }

  #nameOf({ lane }: Known): string {
    return breakerOf(this.#settings, lane) as string
  }
}
