import { createEngine } from 'holdfast'
import { answer } from '../child.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { accounts } from './accounts.ts'

export interface Checked {
  readonly events: number
  readonly held: number
  readonly differences: number
  readonly first: unknown
}

/** What is live now, against the fold of everything that is in the log. */
async function check({ place }: { readonly place: Place }): Promise<Checked> {
  await using store = await openStore(place)
  const engine = createEngine({ store, subscriptions: [accounts(2)] })
  const { events, counts, differenceCount, differences } = await engine.verify('accounts')
  return { events, held: counts.held, differences: differenceCount, first: differences[0] }
}

if (import.meta.main) await answer(check)
