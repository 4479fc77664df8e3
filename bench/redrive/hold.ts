import { createEngine } from 'holdfast'
import { answer } from '../child.ts'
import { countsOf } from '../handlers/counts.ts'
import { quietLogger } from '../handlers/notify.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { ledger } from './ledger.ts'

/** What a bad release leaves behind: every lane held at its first event. Gives how many letters there are. */
async function hold({ place }: { readonly place: Place }): Promise<number> {
  await using store = await openStore(place)
  await using engine = createEngine({ store, subscriptions: [ledger('broken')], logger: quietLogger })
  await engine.start()
  await engine.drain()
  return (await countsOf(engine)).held
}

if (import.meta.main) await answer(hold)
