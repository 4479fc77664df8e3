import { poison } from './postings.ts'

interface Random {
  below(limit: number): number
}

/** A key on its way, with what it is appended next. */
export interface Lane {
  /** Of the key, so far. */
  readonly version: number
  next(): { readonly key: string; readonly first: number; readonly amounts: readonly number[] }
  advance(events: number): void
  retire(): void
}

const lanesAtOnce = 8
/** One lane in so many has an event that is poison. */
const poisonous = 50

/**
 * Keys that come, get some events and go, so that at any time there are old ones, new ones and held ones. What an event says
 * is drawn when it is asked for: an append that was rolled back is followed by another with the same ids.
 */
export function createLanes(name: string, random: Random) {
  const lanes: (Lane & { readonly isDone: () => boolean })[] = []
  let born = 0

  function create(key: string, length: number, poisonAt: number) {
    let done = 0
    let isRetired = false
    return {
      get version() {
        return done
      },
      next: () => {
        const first = done + 1
        const count = Math.min(1 + random.below(4), length - done)
        const amounts = Array.from({ length: count }, (_, i) => (first + i === poisonAt ? poison : random.below(1_000)))
        return { key, first, amounts }
      },
      advance: (events: number) => {
        done += events
      },
      retire: () => {
        isRetired = true
      },
      isDone: () => isRetired || done >= length,
    }
  }

  function createAny() {
    const length = 10 + random.below(40)
    const poisonAt = random.below(poisonous) === 0 ? 1 + random.below(length) : 0
    return create(`${name}-${++born}`, length, poisonAt)
  }

  return {
    pick(): Lane {
      const at = random.below(lanesAtOnce)
      const lane = lanes[at]
      if (lane && !lane.isDone()) return lane
      const next = createAny()
      lanes[at] = next
      return next
    },
    /** A new key that begins with poison, and goes on. */
    poisoned(key: string): Lane {
      const lane = create(key, 10, 1)
      lanes[random.below(lanesAtOnce)] = lane
      return lane
    },
  }
}
