import { HoldfastError } from '../errors.ts'
import type { Store } from '../store.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { versionOf } from './worker.ts'

/** What another version has in its table is not this code's to empty, to try or to verify. */
export async function refuseOtherVersion(store: Store, subscription: Subscription): Promise<void> {
  const version = versionOf(subscription)
  if (version === undefined) return
  const { name } = subscription
  const live = (await store.rebuilds.list(name)).find(({ isLive }) => isLive)
  if (!live || live.version === version) return
  throw new HoldfastError(
    'PROJECTION_VERSION',
    `${name} is live at version ${live.version}, and this program has version ${version}.`,
    { hint: 'Use the program that has the live one; or rebuild this version and switch to it.' },
  )
}
