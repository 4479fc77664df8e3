/** A number as people read it. */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** `1 lane`, `2 lanes`. */
export function many(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`
}

/** The lane of events that can't be read has no name: they may be about any row. */
export function laneName(lane: string): string {
  return lane === '' ? '(any row)' : lane
}

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** How long, in its two largest units: `3d 4h`, `12s`. */
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

/** A moment, to the second, in UTC: an operator and a log should say the same. */
export function moment(ms: number | undefined): string {
  return ms === undefined ? '-' : new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** For how long something has been so. */
export function ago(ms: number | undefined, now: number): string {
  return ms === undefined ? '-' : `${span(Math.max(0, (now - ms) / 1_000))} ago`
}
