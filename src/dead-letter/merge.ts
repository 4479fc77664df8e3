/**
 * Merges the letters of a lane that are in the log with those that are not. Each list keeps its order by sequence; of the two next letters, the
 * one with the lower position comes first.
 */
export function* mergeLetters<L>(
  one: Iterable<L>,
  other: Iterable<L>,
  positionOf: (letter: L) => number,
): Generator<L> {
  const [left, right] = [one[Symbol.iterator](), other[Symbol.iterator]()]
  try {
    let [a, b] = [left.next(), right.next()]
    while (!a.done || !b.done) {
      if (b.done || (!a.done && positionOf(a.value) < positionOf(b.value))) {
        if (a.done) return
        yield a.value
        a = left.next()
      } else {
        yield b.value
        b = right.next()
      }
    }
  } finally {
    left.return?.()
    right.return?.()
  }
}
