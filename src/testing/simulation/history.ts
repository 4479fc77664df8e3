/**
 * What happened in a run, in order. `about` is for checks and can be anything; `text` is what a person reads in a trace, and what two runs of
 * one seed are compared by.
 */
export interface Happening {
  readonly atMs: number
  readonly who: string
  readonly kind: string
  readonly text: string
  readonly about: unknown
}

export class History {
  readonly happenings: Happening[] = []

  /** The same for two runs only if they were the same to the letter. Made when it is asked for, which most runs never are. */
  get hash(): string {
    let hash = 0x811c9dc5
    for (const happening of this.happenings) {
      const line = lineOf(happening)
      for (let i = 0; i < line.length; i++) hash = Math.imul(hash ^ line.charCodeAt(i), 0x01000193)
    }
    return (hash >>> 0).toString(16).padStart(8, '0')
  }

  add(atMs: number, who: string, kind: string, text: string, about?: unknown): void {
    this.happenings.push({ atMs, who, kind, text, about })
  }
}

export function lineOf({ atMs, who, kind, text }: Happening): string {
  return `${atMs.toFixed(3)} ${who} ${kind} ${text}`
}

/** Where two runs of one seed part, for a person; undefined if they don't. */
export function divergence(one: History, other: History): string | undefined {
  const length = Math.max(one.happenings.length, other.happenings.length)
  for (let i = 0; i < length; i++) {
    const [a, b] = [one.happenings[i], other.happenings[i]]
    const [first, second] = [a && lineOf(a), b && lineOf(b)]
    if (first !== second) return `step ${i + 1}: ${first ?? 'nothing more'}, and then ${second ?? 'nothing more'}`
  }
  return undefined
}
