import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { emptierOf } from '../subscription/begin-anew.ts'
import type { ResetReport } from '../subscription/subscription-store.ts'
import { type OperatorParts, whole } from './parts.ts'

export interface PurgeOptions {
  readonly reason: string
  /** Letters that were resolved longer ago than this. '30d' unless you say otherwise. */
  readonly olderThan?: Duration
  /** How many the person saw, see `Operator.purgeable`. If there are others now, nothing is done (`PURGE_CHANGED`). */
  readonly expected?: number
}

export interface Purged {
  readonly letters: number
  /** Held and ended letters that are still there. */
  readonly left: number
}

export async function pause(parts: OperatorParts, subscription: string, given: string): Promise<void> {
  const reason = parts.reasonOf(given)
  await parts.partitionsOf(subscription)
  const deed = parts.deed({ act: 'subscription.pause', target: subscription, reason, details: {} })
  await parts.store.subscriptions.pause(subscription, { reason, at: deed.at }, deed)
}

export async function resume(parts: OperatorParts, subscription: string, given: string): Promise<void> {
  const reason = parts.reasonOf(given)
  await parts.partitionsOf(subscription)
  const deed = parts.deed({ act: 'subscription.resume', target: subscription, reason, details: {} })
  await parts.store.subscriptions.resume(subscription, deed)
}

export async function reset(parts: OperatorParts, name: string, given: string): Promise<ResetReport> {
  const reason = parts.reasonOf(given)
  const empty = emptierOf(parts.subscriptionOf(name))
  await parts.liveOf(name)
  await parts.partitionsOf(name)
  const deed = parts.deed({ act: 'subscription.reset', target: name, reason, details: {} })
  return parts.store.subscriptions.reset(name, empty, deed)
}

const perPurge = 1_000

export async function purgeable(
  parts: OperatorParts,
  subscription: string,
  options: Pick<PurgeOptions, 'olderThan'> = {},
): Promise<number> {
  checkOptions(options, 'purgeable', ['olderThan'])
  await parts.partitionsOf(subscription)
  return parts.store.letters.purgeable(subscription, endedBefore(parts, options))
}

/** Some at a time, each with its own entry in the audit: a million letters in one transaction would hold up everybody. */
export async function purge(parts: OperatorParts, subscription: string, options: PurgeOptions): Promise<Purged> {
  checkOptions(options, 'purge', ['reason', 'olderThan', 'expected'])
  const { letters } = parts.store
  const reason = parts.reasonOf(options.reason)
  await parts.partitionsOf(subscription)
  const before = endedBefore(parts, options)
  const found = await letters.purgeable(subscription, before)
  const { expected } = options
  if (expected !== undefined && found !== whole(expected, 'expected', 0, Number.MAX_SAFE_INTEGER)) {
    throw new HoldfastError(
      'PURGE_CHANGED',
      `There are ${found} letters now, and ${expected} were seen. Nothing was done.`,
      {
        hint: 'Look again, and ask again.',
      },
    )
  }
  let purged = 0
  while (purged < found) {
    const details = { endedBefore: before, lettersBefore: found - purged }
    const deed = parts.deed({ act: 'letters.purge', target: subscription, reason, details })
    const some = await letters.purge(subscription, before, Math.min(perPurge, found - purged), deed)
    if (some === 0) break
    purged += some
    await parts.runtime.timers.yield()
  }
  const { byStatus } = await letters.stats(subscription)
  return { letters: purged, left: Object.values(byStatus).reduce((sum, many) => sum + many, 0) }
}

function endedBefore({ runtime }: OperatorParts, { olderThan = '30d' }: Pick<PurgeOptions, 'olderThan'>): number {
  return Math.floor(runtime.clock.now() - toMs(olderThan, 'olderThan'))
}
