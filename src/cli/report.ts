import type { EngineStatus, LaneStatus, SubscriptionStatus } from '../engine/status.ts'
import { generationIn } from '../rebuild/generation.ts'
import type { Counts } from '../subscription/checkpoint.ts'
import type { Consumer, Subscription } from '../subscription/subscription.ts'
import type { Context } from './context.ts'

/**
 *     new          the store does not have it yet: nobody ever started it
 *     orphan       the store has it, and the configuration does not: nobody runs it from here
 *     beside       a version of a projection that is built beside the live one, or was live before
 *     other-code   its live version is not that of this code: this code waits
 *     paused       by a person
 *     idle         nobody who is alive owns a partition of it
 *     catching-up  it is behind its source
 *     live         it is at the head
 *     unreadable   the store can't be asked
 */
export type ReportState =
  | 'new'
  | 'orphan'
  | 'beside'
  | 'other-code'
  | 'paused'
  | 'idle'
  | 'catching-up'
  | 'live'
  | 'unreadable'

/** A subscription as all processes together have it, at the moment of asking. */
export interface SubscriptionReport {
  readonly name: string
  readonly kind: 'fold' | 'sql' | 'handler'
  readonly state: ReportState
  readonly pause: { readonly reason: string; readonly at: number } | undefined
  readonly partitions: number
  /** Those who are alive. */
  readonly owners: readonly string[]
  /** Partitions that nobody who is alive owns. */
  readonly unowned: number
  readonly counts: Counts | undefined
  readonly lag: { readonly events: number; readonly seconds: number } | undefined
  readonly held: { readonly lanes: number; readonly letters: number; readonly byStatus: object } | undefined
  /** The lanes that have been held longest. */
  readonly oldest: readonly LaneStatus[]
}

export interface StoreReport {
  readonly at: number
  readonly subscriptions: readonly SubscriptionReport[]
  readonly gap: EngineStatus['gap']
  readonly breakers: EngineStatus['breakers']
}

export async function reportOf(ctx: Context): Promise<StoreReport> {
  const engine = await ctx.engine()
  const [status, stored] = await Promise.all([engine.status(), ctx.stored()])
  const declared = await ctx.subscriptions()
  const versions = await liveVersions(ctx, declared, stored)
  const reports = status.subscriptions.map((each): SubscriptionReport => {
    const consumer = declared.find(({ name }) => name === each.name)?.consumer
    const kind = consumer?.kind ?? 'fold'
    const isOther = consumer !== undefined && isOfOtherCode(consumer, versions)
    const partitions = stored.get(each.name)?.partitions ?? []
    const owners = [...new Set(partitions.flatMap(({ owner }) => owner ?? []))]
    const unowned = partitions.filter(({ owner }) => owner === undefined).length
    const held = each.stored && { ...each.stored.held, oldest: undefined }
    return {
      name: each.name,
      kind,
      state: isOther && !each.stored?.pause ? 'other-code' : stateOf(each, owners.length),
      pause: each.stored?.pause,
      partitions: partitions.length,
      owners,
      unowned,
      counts: each.stored?.counts,
      lag: each.stored?.lag,
      held,
      oldest: each.stored?.held.oldest ?? [],
    }
  })
  const orphans = [...stored.values()].filter(({ name }) => !declared.some((each) => each.name === name))
  for (const { name, kind, partitions } of orphans) {
    const store = await ctx.store()
    const { lanes, letters, byStatus } = await store.letters.summary(name, 0)
    reports.push({
      name,
      kind,
      state: stored.has(generationIn(name)?.subscription ?? '') ? 'beside' : 'orphan',
      pause: partitions[0]?.pause,
      partitions: partitions.length,
      owners: [...new Set(partitions.flatMap(({ owner }) => owner ?? []))],
      unowned: partitions.filter(({ owner }) => owner === undefined).length,
      counts: undefined,
      lag: undefined,
      held: { lanes, letters, byStatus },
      oldest: [],
    })
  }
  return { at: status.at, subscriptions: reports, gap: status.gap, breakers: status.breakers }
}

/** Whether what is live was made by another version of the code. */
export function isOfOtherCode(consumer: Consumer, versions: ReadonlyMap<string, number>): boolean {
  if (consumer.kind === 'handler') return false
  return (versions.get(consumer.name) ?? consumer.version) !== consumer.version
}

/** Of those that the store has. */
export async function liveVersions(
  ctx: Context,
  declared: readonly Subscription[],
  stored: ReadonlyMap<string, unknown>,
): Promise<ReadonlyMap<string, number>> {
  const store = await ctx.store()
  const found = new Map<string, number>()
  for (const { name, consumer } of declared) {
    if (consumer.kind === 'handler' || !stored.has(name)) continue
    const live = (await store.rebuilds.list(name)).find(({ isLive }) => isLive)
    if (live) found.set(name, live.version)
  }
  return found
}

function stateOf({ stored, unreadable }: SubscriptionStatus, owners: number): ReportState {
  if (unreadable !== undefined) return 'unreadable'
  if (!stored) return 'new'
  if (stored.pause) return 'paused'
  if (owners === 0) return 'idle'
  return stored.lag.events > 0 ? 'catching-up' : 'live'
}
