import type { BreakerState } from '../../breaker/breaker.ts'
import type { HeldSummary, LaneSummary } from '../../dead-letter/letter-store.ts'
import type { Gap } from '../../log/log-store.ts'
import type { Clock } from '../../runtime/ports.ts'
import type { Source } from '../../source/source.ts'
import type { Store } from '../../store.ts'
import { addCounts, type Checkpoint, type Counts, noCounts } from '../../subscription/checkpoint.ts'
import type { PartitionState, Pause } from '../../subscription/subscription-store.ts'
import type { Runner } from './runner.ts'
import type { SubscriptionState } from '../ownership/subscription-state.ts'

/** The state of subscriptions in the store, across all processes. */
export interface StoreStatus {
  /** The time of the status, in milliseconds since 1970. */
  readonly at: number
  readonly subscriptions: readonly StoredSubscriptionStatus[]
  /** The open transaction that readers of the log wait for, if there is one. */
  readonly gap: Gap | undefined
  /** The breakers of all processes that are not closed. The name of a handler's breaker starts with the name of the handler. */
  readonly breakers: readonly BreakerStatus[]
}

/** The same, plus the state of this process. */
export interface EngineStatus extends StoreStatus {
  readonly subscriptions: readonly SubscriptionStatus[]
}

export interface BreakerStatus {
  readonly name: string
  readonly state: BreakerState
}

/** A held lane, what it waits for, and since when. */
export interface LaneStatus extends LaneSummary {
  readonly ageSeconds: number
  /** The missing version, if the lane waits for one. A lane can also wait for a `breaker`. */
  readonly missingVersion: number | undefined
}

/** The current state of a subscription in the store. Nothing is cached. */
export interface StoredStatus {
  /** Set by an operator, through any process. */
  readonly pause: Pause | undefined
  readonly partitions: readonly PartitionStatus[]
  /** The sum over all partitions. */
  readonly counts: Counts
  /** `seconds` is the age of the first event without an outcome: it grows while nothing is processed, and is 0 at the head. */
  readonly lag: { readonly events: number; readonly seconds: number }
  /** At the speed of this process. Undefined at the head, while nothing is processed, and for an operator, which processes nothing. */
  readonly etaSeconds: number | undefined
  readonly held: Omit<HeldSummary, 'oldest'> & { readonly oldest: readonly LaneStatus[] }
}

export interface PartitionStatus {
  readonly partition: number
  readonly owner: string | undefined
  readonly epoch: number
  readonly checkpoint: Checkpoint
  readonly lag: StoredStatus['lag']
}

export interface StoredSubscriptionStatus {
  readonly name: string
  /** Undefined while the store can't be read (`unreadable` has the error), and for a subscription that was never started. */
  readonly stored: StoredStatus | undefined
  readonly unreadable: unknown
}

export interface SubscriptionStatus extends StoredSubscriptionStatus {
  readonly state: SubscriptionState
  /** The throughput of this process over the last seconds. */
  readonly eventsPerSecond: number
  /** How often a commit or renewal of this process found that another process owns the partition. */
  readonly fenced: number
  /** The number of events that this process saw of each type that the catalog doesn't have. */
  readonly unknownTypes: Readonly<Record<string, number>>
}

/** A subscription to report. `perSecond` is the recent throughput of the calling process. */
export interface Watched {
  readonly name: string
  readonly source: Pick<Source, 'lag'>
  readonly perSecond: number
}

const shownLanes = 20

export async function readStatus(store: Store, watched: readonly Watched[], clock: Clock): Promise<StoreStatus> {
  const gap = store.log.gap().catch(() => undefined)
  const subscriptions = await Promise.all(watched.map((each) => subscriptionStatus(store, each, clock)))
  return { at: clock.now(), subscriptions, gap: await gap, breakers: await breakersOf(store) }
}

export async function engineStatus(store: Store, runners: readonly Runner[], clock: Clock): Promise<EngineStatus> {
  const seen = runners.map((runner) => ({
    state: runner.state,
    eventsPerSecond: runner.rate.perSecond(clock.mono()),
    fenced: runner.fenced,
    unknownTypes: Object.fromEntries(runner.unknownTypes),
  }))
  const watched = runners.map(({ subscription: { name }, source }, i) => ({
    name,
    source,
    perSecond: seen[i]?.eventsPerSecond ?? 0,
  }))
  const status = await readStatus(store, watched, clock)
  const subscriptions = seen.map((own, i) => ({ ...(status.subscriptions[i] as StoredSubscriptionStatus), ...own }))
  return { ...status, subscriptions }
}

async function breakersOf(store: Store): Promise<BreakerStatus[]> {
  const breakers = await store.breakers.list().catch(() => [])
  return breakers.filter(({ state }) => state.state !== 'closed').map(({ name, state }) => ({ name, state }))
}

async function subscriptionStatus(store: Store, watched: Watched, clock: Clock): Promise<StoredSubscriptionStatus> {
  const { name } = watched
  try {
    return { name, stored: await storedStatus(store, watched, clock), unreadable: undefined }
  } catch (unreadable) {
    return { name, stored: undefined, unreadable }
  }
}

/** The status of any stored subscription, also of one that this code does not declare. */
export async function storedStatus(
  store: Store,
  { name, source, perSecond }: Watched,
  clock: Clock,
): Promise<StoredStatus | undefined> {
  const states = await store.subscriptions.partitions(name)
  const [first] = states
  if (!first) return undefined
  const partitions = await Promise.all(states.map((state) => partitionStatus(source, state, states.length, clock)))
  const held = await store.letters.summary(name, shownLanes)
  const now = clock.now()
  const events = partitions.reduce((sum, { lag }) => sum + lag.events, 0)
  return {
    pause: first.pause,
    partitions,
    counts: states.reduce((sum, { checkpoint }) => addCounts(sum, checkpoint.counts), noCounts() as Counts),
    lag: { events, seconds: Math.max(...partitions.map(({ lag }) => lag.seconds)) },
    etaSeconds: events > 0 && perSecond > 0 ? events / perSecond : undefined,
    held: { ...held, oldest: held.oldest.map((lane) => laneStatus(lane, now)) },
  }
}

async function partitionStatus(
  source: Pick<Source, 'lag'>,
  { partition, owner, epoch, checkpoint }: PartitionState,
  of: number,
  clock: Clock,
): Promise<PartitionStatus> {
  const { events, since } = await source.lag(checkpoint.position, { partition, of })
  const seconds = since === undefined ? 0 : secondsSince(since, clock.now())
  return { partition, owner, epoch, checkpoint, lag: { events, seconds } }
}

function laneStatus(lane: LaneSummary, now: number): LaneStatus {
  const isGap = lane.status === 'waiting' && lane.breaker === undefined
  const missing = isGap ? (lane.done ?? 0) + 1 : undefined
  return { ...lane, ageSeconds: secondsSince(lane.since, now), missingVersion: missing }
}

function secondsSince(then: number, now: number): number {
  return Math.max(0, (now - then) / 1_000)
}
