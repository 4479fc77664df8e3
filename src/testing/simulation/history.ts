/** The events of a run, in order. `about` is for checks; `text` is for traces, and two runs of one seed are compared by it. */
export interface Happening {
  readonly atMs: number
  readonly who: string
  readonly kind: string
  readonly text: string
  readonly about: unknown
}

export class History {
  readonly happenings: Happening[] = []

  /** Equal only for identical runs. Computed on demand. */
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

/** Where two runs of one seed diverge; undefined if they don't. */
export function divergence(one: History, other: History): string | undefined {
  const length = Math.max(one.happenings.length, other.happenings.length)
  for (let i = 0; i < length; i++) {
    const [a, b] = [one.happenings[i], other.happenings[i]]
    const [first, second] = [a && lineOf(a), b && lineOf(b)]
    if (first !== second) return `step ${i + 1}: ${first ?? 'the end'}, then ${second ?? 'the end'}`
  }
  return undefined
}
