export { count, many } from '../../runtime/count.ts'

/** The lane of unreadable events has no name: they may affect any row. */
export function laneName(lane: string): string {
  return lane === '' ? '(any row)' : lane
}

/** Quotes a word so that a printed command can be copied into a shell. */
export function shellWord(text: string): string {
  return /^[\w.,:/@+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** A duration in its two largest units: `3d 4h`, `12s`. */
export function span(seconds: number): string {
  if (!Number.isFinite(seconds)) return '-'
  if (seconds < 1) return seconds <= 0 ? '0s' : '<1s'
  const first = units.findIndex(([, size]) => seconds >= size)
  let left = Math.floor(seconds)
  const parts: string[] = []
  for (const [unit, size] of units.slice(first, first + 2)) {
    const whole = Math.floor(left / size)
    left -= whole * size
    if (whole > 0) parts.push(`${whole}${unit}`)
  }
  return parts.join(' ')
}

/** A time to the second, in UTC as in logs. */
export function moment(ms: number | undefined): string {
  return ms === undefined ? '-' : new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** The age of a time. */
export function ago(ms: number | undefined, now: number): string {
  return ms === undefined ? '-' : `${span(Math.max(0, (now - ms) / 1_000))} ago`
}
