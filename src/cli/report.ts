import { type EngineStatus, type LaneStatus, storedStatus, type SubscriptionStatus } from '../engine/process/status.ts'
import { generationIn } from '../rebuild/generation.ts'
import { logSource } from '../source/source.ts'
import type { Counts } from '../subscription/checkpoint.ts'
import type { Consumer, Subscription } from '../subscription/subscription.ts'
import type { StoredSubscription } from '../subscription/subscription-store.ts'
import type { Context } from './context.ts'

/**
 *     new          declared, but never started: the store does not have it
 *     orphan       stored, but not declared in the configuration
 *     beside       a projection version that is being built or was live before
 *     other-code   the live version differs from the declared one: this code does not run it
 *     paused       paused by an operator
 *     idle         no running process owns a partition of it
 *     catching-up  behind its source
 *     live         at the head of its source
 *     unreadable   the store failed to return its state
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

/** The current state of a subscription across all processes. */
export interface SubscriptionReport {
  readonly name: string
  readonly kind: 'fold' | 'sql' | 'handler'
  readonly state: ReportState
  readonly pause: { readonly reason: string; readonly at: number } | undefined
  readonly partitions: number
  /** Names of the owners that are alive. */
  readonly owners: readonly string[]
  /** The number of partitions without a live owner. */
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
  const { file } = await ctx.settings()
  for (const orphan of orphans) reports.push(await orphanReport(ctx, orphan, stored, file.value !== undefined))
  return { at: status.at, subscriptions: reports, gap: status.gap, breakers: status.breakers }
}

/** The report of a subscription that is not declared. Without a configuration file it is assumed to read from the log, as most do. */
async function orphanReport(
  ctx: Context,
  { name, kind, partitions }: StoredSubscription,
  stored: ReadonlyMap<string, unknown>,
  isConfigured: boolean,
): Promise<SubscriptionReport> {
  const store = await ctx.store()
  const isBeside = stored.has(generationIn(name)?.subscription ?? '')
  const owners = [...new Set(partitions.flatMap(({ owner }) => owner ?? []))]
  const about = {
    name,
    kind,
    pause: partitions[0]?.pause,
    partitions: partitions.length,
    owners,
    unowned: partitions.filter(({ owner }) => owner === undefined).length,
  }
  const found =
    isBeside || isConfigured
      ? undefined
      : await storedStatus(store, { name, source: logSource(store.log), perSecond: 0 }, ctx.clock)
  if (found) {
    const { counts, lag } = found
    const { oldest, ...held } = found.held
    const state = stateOf({ stored: found, unreadable: undefined }, owners.length)
    return { ...about, state, counts, lag, held, oldest }
  }
  const { lanes, letters, byStatus } = await store.letters.summary(name, 0)
  const held = { lanes, letters, byStatus }
  return { ...about, state: isBeside ? 'beside' : 'orphan', counts: undefined, lag: undefined, held, oldest: [] }
}

/** Whether the live version differs from the declared one. */
export function isOfOtherCode(consumer: Consumer, versions: ReadonlyMap<string, number>): boolean {
  if (consumer.kind === 'handler') return false
  return (versions.get(consumer.name) ?? consumer.version) !== consumer.version
}

/** The live version of each stored projection. */
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

function stateOf(
  { stored, unreadable }: Pick<SubscriptionStatus, 'stored' | 'unreadable'>,
  owners: number,
): ReportState {
  if (unreadable !== undefined) return 'unreadable'
  if (!stored) return 'new'
  if (stored.pause) return 'paused'
  if (owners === 0) return 'idle'
  return stored.lag.events > 0 ? 'catching-up' : 'live'
}
