import { randomBy } from './seed.ts'

/** The number of ways to interleave the events of several keys, each in its own order; counted up to `most`. */
export function countOrders(keys: readonly string[], most: number): number {
  const sizes = new Map<string, number>()
  let count = 1
  let placed = 0
  for (const key of keys) {
    const size = (sizes.get(key) ?? 0) + 1
    sizes.set(key, size)
    placed++
    // The multinomial coefficient, one event at a time.
    count = (count * placed) / size
    if (count > most) return most + 1
  }
  return Math.round(count)
}

/** All orders, as lists of indices, the given order first. */
export function* allOrders(keys: readonly string[]): Generator<readonly number[]> {
  const queues = queuesOf(keys)
  yield* extend([])

  function* extend(order: readonly number[]): Generator<readonly number[]> {
    if (order.length === keys.length) {
      yield order
      return
    }
    // Sorted by the given order, so that this order comes first.
    const next = [...queues.values()].filter((queue) => queue.length > 0).toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0))
    for (const queue of next) {
      const index = queue.shift() as number
      yield* extend([...order, index])
      queue.unshift(index)
    }
  }
}

/** A random sample, the given order first. */
export function* someOrders(keys: readonly string[], count: number, seed: number): Generator<readonly number[]> {
  const random = randomBy(seed)
  yield keys.map((_, i) => i)
  for (let i = 1; i < count; i++) {
    const queues = queuesOf(keys)
    yield keys.map(() => {
      const open = [...queues.values()].filter((queue) => queue.length > 0)
      // Weighted by the remaining events of each key, so that all interleavings are equally likely.
      let place = random.below(open.reduce((sum, queue) => sum + queue.length, 0))
      const queue = open.find((one) => (place -= one.length) < 0) as number[]
      return queue.shift() as number
    })
  }
}

/** The orders from one to another, each an exchange of neighbours; both ends are included. */
export function pathBetween(from: readonly number[], to: readonly number[]): (readonly number[])[] {
  const rank = new Map(to.map((index, place) => [index, place]))
  const path = [from]
  const order = [...from]
  for (let end = order.length; end > 1; end--) {
    for (let i = 1; i < end; i++) {
      const [left, right] = [order[i - 1] as number, order[i] as number]
      if ((rank.get(left) as number) < (rank.get(right) as number)) continue
      order[i - 1] = right
      order[i] = left
      path.push([...order])
    }
  }
  return path
}

function queuesOf(keys: readonly string[]): Map<string, number[]> {
  return Map.groupBy(
    keys.map((_, i) => i),
    (i) => keys[i] as string,
  )
}
