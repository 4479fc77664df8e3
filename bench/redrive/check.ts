import { createEngine, type Counts } from 'holdfast'
import { answer } from '../child.ts'
import { countsOf } from '../handlers/counts.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { ledger } from './ledger.ts'

export interface Checked {
  readonly counts: Counts
  /** Rows that are not the fold of their events in order, each once; and whatever else does not add up. */
  readonly differences: number
  readonly first: unknown
}

async function check({ place }: { readonly place: Place }): Promise<Checked> {
  await using store = await openStore(place)
  const engine = createEngine({ store, subscriptions: [ledger('fixed')] })
  const { differenceCount, differences } = await engine.verify('ledger')
  return { counts: await countsOf(engine), differences: differenceCount, first: differences[0] }
}

if (import.meta.main) await answer(check)
