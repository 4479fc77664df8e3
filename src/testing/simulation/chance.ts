import { createRandom } from '../virtual.ts'

/** Random decisions from a seed. Each part of a run has its own stream, so that a change in one does not affect the others. */
export interface Chance {
  u32(): number
  below(limit: number): number
  /** Between 0 and `most`, small numbers more often. */
  upTo(most: number): number
  /** True with this probability. */
  is(probability: number): boolean
  /** The time until an event with this average interval. */
  until(everyMs: number): number
  pick<T>(from: readonly T[]): T
}

export function createChance(seed: number, part: string): Chance {
  const random = createRandom(mix(seed, part))
  const unit = () => random.u32() / 2 ** 32
  // The first numbers of neighbouring seeds are too similar.
  for (let i = 0; i < 4; i++) random.u32()
  return {
    ...random,
    upTo: (most) => most * unit() * unit(),
    is: (probability) => probability > 0 && unit() < probability,
    until: (everyMs) => -Math.log(1 - unit()) * everyMs,
    pick: <T>(from: readonly T[]) => from[random.below(from.length)] as T,
  }
}

/** FNV-1a over the seed and the name. */
function mix(seed: number, part: string): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0
  for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 0x01000193) >>> 0
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0
}
