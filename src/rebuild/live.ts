import { HoldfastError } from '../errors.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { generationIn } from './generation.ts'
import type { RebuildStore } from './rebuild-store.ts'

/** What another version has in its table is not this code's to empty, or to judge. */
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
    { hint: 'Rebuild this version and switch to it; that leaves the live one as it is until then.' },
  )
}

/** People act on the live one. What they decide there holds for those beside it; decided twice, it could be decided differently. */
export function refuseBeside(name: string): void {
  const beside = generationIn(name)
  if (!beside) return
  const { subscription, version } = beside
  throw new HoldfastError(
    'REBUILD_BESIDE',
    `${name} names version ${version} of ${subscription}, which is not the live one: letters there can be looked at, and not acted on.`,
    {
      hint: `Act on ${subscription}: that holds for the other versions too. What only version ${version} holds is redriven when it is live, or built anew after a drop.`,
    },
  )
}
