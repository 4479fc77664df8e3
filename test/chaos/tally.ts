export type Counter =
  | 'cycles'
  | 'kills'
  | 'stops'
  | 'terminated'
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

const mostProblems = 100

/** What happened in a run. */
export class Tally {
  readonly counts = new Map<Counter, number>()
  readonly problems: string[] = []
  readonly skipped = new Set<string>()
  readonly takeoverMs: number[] = []
  /** Where in the run it is, for whoever reads a problem. */
  place = 'the start'

  add(counter: Counter, by = 1): void {
    this.counts.set(counter, this.of(counter) + by)
  }

  of(counter: Counter): number {
    return this.counts.get(counter) ?? 0
  }

  problem(what: string): void {
    if (this.problems.length < mostProblems) this.problems.push(`${this.place}: ${what}`)
  }
}
