import type { Counter, Tally } from './tally.ts'

export type Result = Readonly<Record<Counter, number>> & {
  readonly ok: boolean
  readonly store: string
  /** Its version. */
  readonly postgres: string
  readonly engines: number
  readonly seed: number
  readonly takeoverP50Ms: number
  readonly takeoverP99Ms: number
  readonly takeoverMaxMs: number
  readonly problems: readonly string[]
  /** Nemeses that can't be had here, with the reason. */
  readonly skipped: readonly string[]
  readonly seconds: number
  /** The commits that it ran on. */
  readonly revisions: readonly string[]
}

/** Without these the run would have proved nothing. */
const neededForProof = [
  ...(['kills', 'stops', 'terminated', 'restarts', 'cuts', 'revokes'] as const),
  ...(['fenced', 'unknownCommits', 'takeovers', 'applied', 'held'] as const),
] as const
export const unprovedBy = (tally: Tally) => neededForProof.filter((name) => tally.of(name) === 0)
const violations = ['lost', 'twice', 'inverted', 'outageLetters'] as const

export function resultOf(
  tally: Tally,
  settings: Pick<Result, 'store' | 'postgres' | 'engines' | 'seed' | 'seconds' | 'revisions'>,
): Result {
  const counts = <Name extends Counter>(...names: readonly Name[]) =>
    Object.fromEntries(names.map((name) => [name, tally.of(name)])) as Record<Name, number>
  const found = [
    ...violations.filter((name) => tally.of(name) > 0).map((name) => `${tally.of(name)} events: ${name}.`),
    ...tally.problems,
  ]
  const problems = found.length > 0 ? found : unprovedBy(tally).map((name) => `The run proves nothing: ${name} is 0.`)
  const times = tally.takeoverMs.toSorted((a, b) => a - b)
  const percentile = (of: number) => Math.round(times[Math.ceil(times.length * of) - 1] ?? 0)
  return {
    ok: problems.length === 0,
    ...settings,
    ...counts('cycles', 'kills', 'stops', 'terminated', 'cancelled', 'restarts', 'cuts', 'diskFull', 'revokes'),
    ...counts('fenced', 'refused', 'unknownCommits', 'undoneCommits', 'repeated', 'unknownAppends'),
    ...counts('takeovers'),
    takeoverP50Ms: percentile(0.5),
    takeoverP99Ms: percentile(0.99),
    takeoverMaxMs: percentile(1),
    ...counts('appended', 'applied', 'held', 'checks', 'lost', 'twice', 'inverted', 'outageLetters'),
    problems,
    skipped: [...tally.skipped],
  }
}
