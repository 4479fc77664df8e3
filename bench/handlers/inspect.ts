import { type Counts, createEngine } from 'holdfast'
import { answer } from '../child.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { notifying } from './notify.ts'

/** After a place was measured: fails when the engine finds something there that is not as it should be. */
async function inspect({ place }: { readonly place: Place }): Promise<Counts> {
  await using store = await openStore(place)
  const handler = notifying({ concurrency: 1, act: () => undefined })
  await using engine = createEngine({ store, subscriptions: [handler] })
  const found = await engine.verify(handler.name)
  if (!found.ok) throw new Error(`verify found ${found.differenceCount} differences`, { cause: found.differences[0] })
  return found.counts
}

if (import.meta.main) await answer(inspect)
