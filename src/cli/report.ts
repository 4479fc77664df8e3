import type { EngineStatus, LaneStatus, SubscriptionStatus } from '../engine/status.ts'
import type { Counts } from '../subscription/checkpoint.ts'
import type { Context } from './context.ts'

/**
 *     new          the store does not have it yet: nobody ever started it
 *     orphan       the store has it, and the configuration does not: nobody runs it from here
 *     paused       by a person
 *     idle         nobody who is alive owns a partition of it
 *     catching-up  it is behind its source
 *     live         it is at the head
 *     unreadable   the store can't be asked
 */
export type ReportState = 'new' | 'orphan' | 'paused' | 'idle' | 'catching-up' | 'live' | 'unreadable'

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
  const reports = status.subscriptions.map((each): SubscriptionReport => {
    const kind = declared.find(({ name }) => name === each.name)?.consumer.kind ?? 'fold'
    const partitions = stored.get(each.name)?.partitions ?? []
    const owners = [...new Set(partitions.flatMap(({ owner }) => owner ?? []))]
    const unowned = partitions.filter(({ owner }) => owner === undefined).length
    const held = each.stored && { ...each.stored.held, oldest: undefined }
    return {
      name: each.name,
      kind,
      state: stateOf(each, owners.length),
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
      state: 'orphan',
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

function stateOf({ stored, unreadable }: SubscriptionStatus, owners: number): ReportState {
  if (unreadable !== undefined) return 'unreadable'
  if (!stored) return 'new'
  if (stored.pause) return 'paused'
  if (owners === 0) return 'idle'
  return stored.lag.events > 0 ? 'catching-up' : 'live'
}
