import { HoldfastError } from '../../errors.ts'
import { createRandom } from '../virtual.ts'

/** The seed that was given, or that of the environment. */
export function seedOf(given: number | undefined): number {
  const seed = given ?? Number(process.env.HOLDFAST_SEED ?? 1)
  if (Number.isSafeInteger(seed) && seed >= 0) return seed
  throw new HoldfastError('OPTION_INVALID', `The seed is ${seed}.`, { hint: 'Give a whole number from 0.' })
}

/** Seeds are small numbers, and the first that are drawn by two of them would be alike. */
export function randomBy(seed: number): ReturnType<typeof createRandom> {
  return createRandom(Math.imul(seed + 1, 0x9e3779b1) >>> 0)
}

/** All of them, or so many that the seed draws; in their order. */
export function draw<T>(items: readonly T[], most: number, seed: number): readonly T[] {
  if (items.length <= most) return items
  const random = randomBy(seed)
  const left = items.map((_, i) => i)
  const drawn = Array.from({ length: most }, () => left.splice(random.below(left.length), 1)[0] as number)
  return drawn.toSorted((a, b) => a - b).map((i) => items[i] as T)
}
