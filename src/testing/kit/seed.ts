import { HoldfastError } from '../../errors.ts'
import { createRandom } from '../virtual.ts'

/** The given seed, or that of the environment. */
export function seedOf(given: number | undefined, name = 'The seed'): number {
  const { HOLDFAST_SEED: told } = process.env
  const seed = given ?? Number(told ?? 1)
  if (Number.isSafeInteger(seed) && seed >= 0) return seed
  const what = given === undefined ? `HOLDFAST_SEED is ${JSON.stringify(told)}.` : `${name} is ${String(given)}.`
  throw new HoldfastError('OPTION_INVALID', what, { hint: 'Give a whole number from 0.' })
}

/** The maximum number of runs. It must be at least 1. */
export function mostOf(given: number | undefined, otherwise: number): number {
  const most = given ?? otherwise
  if (Number.isSafeInteger(most) && most >= 1) return most
  throw new HoldfastError('OPTION_INVALID', `most is ${String(given)}.`, { hint: 'Give a whole number from 1.' })
}

/** Seeds are small numbers, and the first random numbers of similar seeds would be similar. */
export function randomBy(seed: number): ReturnType<typeof createRandom> {
  return createRandom(Math.imul(seed + 1, 0x9e3779b1) >>> 0)
}

/** All items, or a random sample, in order. */
export function draw<T>(items: readonly T[], most: number, seed: number): readonly T[] {
  if (items.length <= most) return items
  const random = randomBy(seed)
  const left = items.map((_, i) => i)
  const drawn = Array.from({ length: most }, () => left.splice(random.below(left.length), 1)[0] as number)
  return drawn.toSorted((a, b) => a - b).map((i) => items[i] as T)
}
