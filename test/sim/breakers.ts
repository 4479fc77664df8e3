import type { Plan } from '../../src/testing/simulation/plan.ts'
import { breakerOf, opensAfter, type StepsSettings, type Tried } from './steps.ts'
import type { Begun, Known, Tenure, Watcher } from './walk.ts'

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
  readonly #owners = new Map<number, Tenure>()
  readonly #opened = new Set<string>()
  /** By process and breaker. */
  readonly #inARow = new Map<string, number>()

  static for({ conditions }: Plan, settings: StepsSettings): Breakers | undefined {
    const isCalm = storeFaults.every((fault) => conditions[fault] === 0)
    return settings.breaker && isCalm ? new Breakers(settings) : undefined
  }

  constructor(settings: StepsSettings) {
    this.#settings = settings
  }

  claimed(tenure: Tenure): void {
    this.#owners.set(tenure.partition, tenure)
  }

  saved(_who: string, { name, record }: { readonly name: string; readonly record: string }): void {
    if ((JSON.parse(record) as { state: string }).state !== 'closed') this.#opened.add(name)
  }

  begun({ event, tenure }: Begun): void {
    const name = this.#nameOf(event)
    const inARow = this.#inARow.get(`${tenure?.who} ${name}`) ?? 0
    if (inARow >= opensAfter && !this.#opened.has(name))
      this.problems.push(`I10 ${event.id} was begun after ${inARow} failures in a row, and ${name} never opened`)
  }

  ended({ event, tenure }: Begun, { how }: Tried): void {
    const row = `${tenure?.who} ${this.#nameOf(event)}`
    const isHeard = tenure !== undefined && this.#owners.get(event.partition) === tenure
    if (how === 'transient' && isHeard) this.#inARow.set(row, (this.#inARow.get(row) ?? 0) + 1)
    else if (how !== 'abandoned') this.#inARow.delete(row)
  }

  #nameOf({ lane }: Known): string {
    return breakerOf(this.#settings, lane) as string
  }
}
