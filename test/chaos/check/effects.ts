import type { Tally } from '../tally.ts'
import type { ExpectedLane } from './expected.ts'
import type { Effect } from './snapshot.ts'

/** Every event that should be applied left exactly one row, and those of a key lie in its order. */
export function checkEffects(
  effects: readonly Effect[],
  held: ReadonlySet<string>,
  expected: ReadonlyMap<string, ExpectedLane>,
  tally: Tally,
): void {
  const byKey = Map.groupBy(effects, ({ key }) => key)
  for (const key of byKey.keys()) if (!expected.has(key)) tally.problem(`effects: ${key} has rows and no events.`)
  for (const { key, ids, applied } of expected.values()) {
    const found = byKey.get(key) ?? []
    const wanted = new Set(ids.slice(0, applied))
    const distinct = new Set(found.map(({ id }) => id))
    // What is held by mistake is not lost, and is found elsewhere.
    const missing = wanted.difference(distinct).difference(held)
    const extra = distinct.difference(wanted)
    const inverted = found.filter(({ version }, i) => i > 0 && version <= (found[i - 1] as Effect).version).length
    // What was done twice stands out of order too, and is one mistake and not two.
    const twice = found.length - distinct.size
    tally.add('lost', missing.size)
    tally.add('twice', twice)
    tally.add('inverted', Math.max(0, inverted - twice))
    if (missing.size > 0) tally.problem(`effects: ${[...missing].join(', ')} left nothing.`)
    if (twice > 0) tally.problem(`effects: ${twice} events of ${key} were applied twice.`)
    if (inverted > twice)
      tally.problem(`effects: the order of ${key} is ${found.map(({ version }) => version).join()}.`)
    if (extra.size > 0) tally.problem(`effects: ${[...extra].join(', ')} should be held.`)
  }
}
