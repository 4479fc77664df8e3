/** The most similar name; undefined if none is similar. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(Math.min(word.length, 40) / 3))
  const near = known
    .map((name) => ({ name, distance: distance(word.slice(0, 64), name.slice(0, 64)) }))
    .filter((candidate) => candidate.distance <= most)
  return near.toSorted((a, b) => a.distance - b.distance)[0]?.name
}

/** The number of characters to insert, delete or change. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, changed))
    }
    row = next
  }
  return row[b.length] ?? 0
}
