import { type Counts, createEngine } from 'holdfast'
import { answer } from '../child.ts'
import { balances } from './bank.ts'
import { openStore } from './open-store.ts'
import type { Place, Way } from './way.ts'

/** What to look at after a place was measured. */
export interface InspectTask extends Pick<Way, 'events' | 'checks'> {
  readonly place: Place
}

/** A way that is fast and wrong is not worth comparing with: fails when something is not as it should be. */
async function inspect({ place, events, checks }: InspectTask): Promise<Counts | undefined> {
  const differences = checks.includes('compare') ? await countDifferences(place, events) : 0
  if (differences > 0) throw new Error(`${differences} rows are not what the log makes of them`)
  return checks.includes('verify') ? await verify(place) : undefined
}

async function verify(place: Place): Promise<Counts> {
  await using store = await openStore(place)
  await using engine = createEngine({ store, subscriptions: [balances] })
  const found = await engine.verify(balances.name)
  if (!found.ok) throw new Error(`verify found ${found.differenceCount} differences`, { cause: found.differences[0] })
  return found.counts
}

async function countDifferences(place: Place, events: number): Promise<number> {
  switch (place.store) {
    case 'sqlite':
      return (await import('./sqlite/compare.ts')).countDifferences(place, events)
    case 'postgres':
      return (await import('./postgres/compare.ts')).countDifferences(place, events)
    default:
      return place satisfies never
  }
}

if (import.meta.main) await answer(inspect)
