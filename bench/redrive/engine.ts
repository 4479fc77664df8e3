import { createEngine } from 'holdfast'
import { quietLogger } from '../handlers/notify.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { ledger } from './ledger.ts'

/** Runs the fixed release until it is stopped or killed. */
async function run({ place }: { readonly place: Place }): Promise<void> {
  await using store = await openStore(place)
  await using engine = createEngine({ store, subscriptions: [ledger('fixed')], logger: quietLogger })
  await engine.start()
  process.send?.('running')
  await new Promise((resolve) => process.once('message', resolve))
  await engine.drain()
}

if (import.meta.main) {
  await run(JSON.parse(process.argv[2] ?? 'null') as { place: Place })
  process.disconnect()
}
