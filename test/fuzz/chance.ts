import { createHash } from 'node:crypto'
import { createRandom } from 'holdfast/testing'

/** Everything a case is made of comes from here, so that its seed alone makes it again. */
export interface Chance {
  below(limit: number): number
  /** Yes, so many times in a hundred. */
  percent(of: number): boolean
  pick<T>(list: readonly T[]): T
  /** From 0 to `most` of them. */
  some<T>(most: number, make: (index: number) => T): T[]
}

export function createChance(seed: number): Chance {
  const random = createRandom(seed)
  const below = (limit: number) => random.below(limit)
  return {
    below,
    percent: (of) => below(100) < of,
    pick: <T>(list: readonly T[]) => list[below(list.length)] as T,
    some: (most, make) => Array.from({ length: below(most + 1) }, (_, index) => make(index)),
  }
}

/** The seed of one case. Hashed, as neighbours would begin alike. */
export function seedOf(seed: number, door: string, number: number): number {
  return createHash('sha256').update(`${seed} ${door} ${number}`).digest().readUInt32LE(0)
}
