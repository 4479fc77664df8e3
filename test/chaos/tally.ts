export type Counter =
  | 'cycles'
  | 'kills'
  | 'stops'
  | 'terminated'
  | 'cancelled'
  | 'restarts'
  | 'cuts'
  | 'diskFull'
  | 'revokes'
  | 'fenced'
  | 'refused'
  | 'unknownCommits'
  | 'undoneCommits'
  | 'takeovers'
  | 'repeated'
  | 'unknownAppends'
  | 'appended'
  | 'applied'
  | 'held'
  | 'checks'
  | 'lost'
  | 'twice'
  | 'inverted'
  | 'outageLetters'

/** So many are enough to know that something is wrong. */
const mostProblems = 30

/** A tally at rest. */
export interface TallyRecord {
  readonly counts: Readonly<Partial<Record<Counter, number>>>
  readonly problems: readonly string[]
  readonly skipped: readonly string[]
  readonly takeoverMs: readonly number[]
}

/** What happened in a run. */
export class Tally {
  readonly counts = new Map<Counter, number>()
  readonly problems: string[] = []
  readonly skipped = new Set<string>()
  readonly takeoverMs: number[] = []
  /** Where in the run it is, for whoever reads a problem. */
  place = 'the start'

  static of(record: TallyRecord): Tally {
    const tally = new Tally()
    tally.merge(record)
    return tally
  }

  get record(): TallyRecord {
    const { counts, problems, skipped, takeoverMs } = this
    return {
      counts: Object.fromEntries(counts),
      problems: [...problems],
      skipped: [...skipped],
      takeoverMs: [...takeoverMs],
    }
  }

  merge({ counts, problems, skipped, takeoverMs }: TallyRecord): void {
    for (const [name, count] of Object.entries(counts)) this.add(name as Counter, count)
    this.problems.push(...problems)
    for (const reason of skipped) this.skipped.add(reason)
    this.takeoverMs.push(...takeoverMs)
  }

  add(counter: Counter, by = 1): void {
    this.counts.set(counter, this.of(counter) + by)
  }

  of(counter: Counter): number {
    return this.counts.get(counter) ?? 0
  }

  /** There is nothing more to learn from going on. */
  get isEnough(): boolean {
    return this.problems.length >= mostProblems
  }

  problem(what: string): void {
    if (!this.isEnough) this.problems.push(`${this.place}: ${what}`)
  }
}
