import { once } from 'node:events'
import type { Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { engineOf, first, second, silent } from './bank.ts'
import { rebuild, switchRebuild } from '../acts.ts'

/** Where a store is, for processes that open it themselves. */
export type Address = { readonly file: string } | { readonly url: string; readonly schema: string }

export interface ChildSettings {
  readonly address: Address
  /** `switch` changes from one version to the other and back, until it is killed. */
  readonly role: 'live' | 'rebuild' | 'switch'
}

export type ChildReport = 'started' | 'level'

function open(address: Address): Promise<Store> {
  if ('file' in address) return createSqliteStore({ file: address.file })
  return createPostgresStore({ connection: address.url, schema: address.schema, connections: 4 })
}

const { address, role } = JSON.parse(process.argv[2] ?? '') as ChildSettings
const store = await open(address)
if (role === 'live') {
  await using engine = engineOf(store, [first])
  await engine.start()
  process.send?.('started' satisfies ChildReport)
  await once(process, 'message')
} else if (role === 'switch') {
  process.send?.('started' satisfies ChildReport)
  for (;;) {
    const live = (await store.rebuilds.list('balances')).find(({ isLive }) => isLive)
    await switchRebuild(live?.version === 1 ? second : first, { store, logger: silent, wait: '30s' })
  }
} else {
  process.send?.('started' satisfies ChildReport)
  const { end } = await rebuild(second, { store, logger: silent, load: 1, rate: 8_000, page: { events: 100 } })
  if (end !== 'level') throw new Error(`The rebuild is ${end}.`)
  process.send?.('level' satisfies ChildReport)
}
await store.close()
process.disconnect()
