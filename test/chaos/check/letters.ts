import type { Tally } from '../tally.ts'
import type { ExpectedLane } from './expected.ts'
import type { Letter } from './snapshot.ts'

/**
 * Held are the events that are poison by construction and those behind them, and no others: a letter of any other event is one
 * that an outage wrote. And no outage used up an attempt.
 */
export function checkLetters(
  subscription: string,
  letters: readonly Letter[],
  expected: ReadonlyMap<string, ExpectedLane>,
  tally: Tally,
): void {
  const byKey = Map.groupBy(letters, ({ key }) => key)
  for (const key of byKey.keys())
    if (!expected.has(key)) tally.problem(`${subscription}: ${key} has letters and no events.`)
  for (const { key, ids, applied } of expected.values()) {
    const found = byKey.get(key) ?? []
    const innocent = found.filter(({ version }) => version <= applied)
    tally.add('outageLetters', innocent.length)
    for (const letter of innocent)
      tally.problem(`${subscription}: ${letter.id} is held, and neither is it poison nor behind any.`)
    const wanted = ids.slice(applied)
    const missing = new Set(wanted).difference(new Set(found.map(({ id }) => id)))
    tally.add('lost', missing.size)
    if (missing.size > 0) tally.problem(`${subscription}: ${[...missing].join(', ')} should be held and is not.`)
    const guilty = found.filter(({ version }) => version > applied)
    if (guilty.length > wanted.length) tally.problem(`${subscription}: an event of ${key} is held twice.`)
    const wrong = guilty.find(({ status, attempts }, i) =>
      i === 0 ? status !== 'parked' || attempts !== 1 : status !== 'queued' || attempts !== 0,
    )
    if (wrong) tally.problem(`${subscription}: the letter ${JSON.stringify(wrong)} is not as it should be.`)
  }
}
