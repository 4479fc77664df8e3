import { createLog, type Store } from 'holdfast'
import { createRandom } from 'holdfast/testing'
import { type Act, taskEvents } from './tasks.ts'

/** An event that the log said it has. */
export interface Written {
  readonly id: string
  readonly key: string
  readonly version: number
  readonly position: number
  readonly act: Act
}

interface Lane {
  readonly key: string
  readonly length: number
  /** The version that is refused, if one is. */
  readonly refused: number | undefined
  version: number
}

/** Keys that are being written to at a time, and how many events each gets before another takes its place. */
const lanesAtOnce = 40
const laneLength = 25
const oneIn = { refused: 12, hiccup: 30 }
const longestEffectMs = 6

/** Appends tasks from a seed and remembers what was acknowledged. */
export function createWriter(store: Store, seed: number) {
  const log = createLog({ store, events: taskEvents })
  const random = createRandom(seed)
  const written: Written[] = []
  let born = 0
  const lanes = Array.from({ length: lanesAtOnce }, nextLane)

  return {
    /** In the order in which they were acknowledged. */
    written: written as readonly Written[],
    /** One event for each of some keys. */
    async appendSome(): Promise<void> {
      const chosen = new Set(Array.from({ length: lanesAtOnce / 2 }, () => random.below(lanesAtOnce)))
      await Promise.all(Array.from(chosen, appendTo))
    },
  }

  async function appendTo(index: number): Promise<void> {
    const lane = lanes[index] as Lane
    const { key, refused, length } = lane
    const version = ++lane.version
    const id = `${key}-${version}`
    const act = version === refused ? 'refuse' : 'go'
    const hiccups = random.below(oneIn.hiccup) === 0 ? 2 : 0
    const { position } = await log.append(key, [
      { id, type: 'Asked', data: { act, hiccups, ms: 1 + random.below(longestEffectMs) } },
    ])
    written.push({ id, key, version, position, act })
    if (version === length) lanes[index] = nextLane()
  }

  function nextLane(): Lane {
    const length = 5 + random.below(2 * laneLength)
    // Counted and not drawn, so that the shortest run has some.
    const refused = born % oneIn.refused === 0 ? 1 + random.below(length) : undefined
    return { key: `key-${++born}`, length, refused, version: 0 }
  }
}

export type Writer = ReturnType<typeof createWriter>
