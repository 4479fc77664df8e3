import { HoldfastError } from '../errors.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { OperatorParts } from './parts.ts'

/** The rows that are there are those of the live version: to code of another one they mean nothing, and it must not touch them. */
export async function checkLiveVersion({ store }: OperatorParts, { name, consumer }: Subscription): Promise<void> {
  if (consumer.kind === 'handler') return
  const [live] = await store.rebuilds.list(name)
  if (!live || live.version === consumer.version) return
  throw new HoldfastError(
    'PROJECTION_VERSION',
    `${name} is live at version ${live.version}, and this program has version ${consumer.version}.`,
    { hint: 'Rebuild the version you want and switch to it, or use the program that has the live one.' },
  )
}
