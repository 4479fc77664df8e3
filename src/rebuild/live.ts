import { HoldfastError } from '../errors.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { generationIn } from './generation.ts'
import type { RebuildStore } from './rebuild-store.ts'

/** This code must not empty or check the table of another version. */
export async function refuseOtherVersion(
  store: { readonly rebuilds: RebuildStore },
  { name, consumer }: Pick<Subscription, 'name' | 'consumer'>,
): Promise<void> {
  if (consumer.kind === 'handler') return
  const live = (await store.rebuilds.list(name)).find(({ isLive }) => isLive)
  if (!live || live.version === consumer.version) return
  throw new HoldfastError(
    'PROJECTION_VERSION',
    `${name} is live at version ${live.version}, and this program has version ${consumer.version}.`,
    { hint: 'Rebuild this version and switch to it. The live version does not change until the switch.' },
  )
}

/**
 * Operators act on the live version only. Their decisions apply to the other versions too; separate decisions per version could contradict
 * each other.
 */
export function refuseBeside(name: string): void {
  const beside = generationIn(name)
  if (!beside) return
  const { subscription, version } = beside
  throw new HoldfastError(
    'REBUILD_BESIDE',
    `${name} names version ${version} of ${subscription}, which is not live: its letters can be read but not changed.`,
    {
      hint: `Act on ${subscription}: the act applies to its other versions too. To change letters that only version ${version} holds, switch to it first, or drop and rebuild it.`,
    },
  )
}
