import type { Counts, Engine } from 'holdfast'

const none: Counts = { applied: 0, duplicate: 0, filtered: 0, held: 0, discarded: 0 }

/** What became of the events of the one subscription so far, as the store has it. */
export async function countsOf(engine: Engine): Promise<Counts> {
  const { subscriptions } = await engine.status()
  return subscriptions[0]?.stored?.counts ?? none
}
