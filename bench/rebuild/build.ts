import { createOperator } from 'holdfast'
import { quietLogger } from '../handlers/notify.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { accounts } from './accounts.ts'

/** Builds the next version with nothing set, until it is killed or level; then it follows until the switch. */
async function run({ place }: { readonly place: Place }): Promise<void> {
  await using store = await openStore(place)
  let wasLevel = false
  const operator = createOperator({ store, subscriptions: [accounts(2)], by: 'bench' })
  await operator.rebuild(accounts(2).name, {
    reason: 'to measure it',
    logger: quietLogger,
    follow: true,
    onProgress: ({ isLevel }) => {
      if (isLevel && !wasLevel) process.send?.('level')
      wasLevel = isLevel
    },
  })
}

if (import.meta.main) {
  process.send?.('running')
  await run(JSON.parse(process.argv[2] ?? 'null') as { place: Place })
  process.disconnect()
}
