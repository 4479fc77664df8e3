export interface Settings {
  readonly store: string
  readonly events: number
  readonly keys: number
  readonly rounds: number
  /** Where databases may be made; they are gone when the benchmark ends. */
  readonly dir: string | undefined
  /** Of a PostgreSQL where databases may be made; without it, one is started for the run. */
  readonly url: string | undefined
  /** Where CPU profiles are left; undefined makes none. */
  readonly profile: string | undefined
  readonly signal: AbortSignal
  readonly progress: (line: string) => void
}

/** What a run found. A run whose results were wrong throws instead. */
export interface Report {
  /** Whether every target is met. */
  readonly ok: boolean
  /** For `--json`. */
  readonly fields: object
  /** Without `--json`. */
  readonly text: string
}

export interface Benchmark {
  readonly summary: string
  /** The first is taken when none is named. */
  readonly stores: readonly [string, ...string[]]
  /** When the command line says nothing. */
  readonly defaults: Pick<Settings, 'events' | 'rounds'>
  run(settings: Settings): Promise<Report>
}

/** The command line was not understood. */
export class UsageError extends Error {}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] as number) + (sorted[Math.ceil(middle)] as number)) / 2
}

/** Four significant digits: more would pretend to a precision that no run has. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}
