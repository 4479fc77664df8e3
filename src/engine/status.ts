import type { BreakerState } from '../breaker/breaker.ts'
import type { HeldSummary, LaneSummary } from '../dead-letter/letter-store.ts'
import type { Gap } from '../log/log-store.ts'
import type { Clock } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import { addCounts, type Checkpoint, type Counts, noCounts } from '../subscription/checkpoint.ts'
import type { PartitionState, Pause } from '../subscription/subscription-store.ts'
import type { Runner } from './runner.ts'
import type { SubscriptionState } from './state.ts'

export interface EngineStatus {
  /** When it was asked, in milliseconds since 1970. */
  readonly at: number
  readonly subscriptions: readonly SubscriptionStatus[]
  /** Why readers of the log wait, if they do: a transaction that appended and has not ended. */
  readonly gap: Gap | undefined
  /** The breakers that are not closed, of all processes; those of a handler begin with its name. */
  readonly breakers: readonly BreakerStatus[]
}

export interface BreakerStatus {
  readonly name: string
  readonly state: BreakerState
}

/** A held lane, with what it waits for and for how long. */
export interface LaneStatus extends LaneSummary {
  readonly ageSeconds: number
  /** The version that has not come yet, for a lane that waits for one; `breaker` is the other thing a lane can wait for. */
  readonly missingVersion: number | undefined
}

/** What the store says about a subscription at the moment of asking; nothing of it is remembered from before. */
export interface StoredStatus {
  /** Set by a person, whichever process they asked. */
  readonly pause: Pause | undefined
  readonly partitions: readonly PartitionStatus[]
  /** Of all partitions together. */
  readonly counts: Counts
  /** `seconds` is how long ago the first event without an outcome was appended: it grows while nothing moves, and is 0 at the head. */
  readonly lag: { readonly events: number; readonly seconds: number }
  /** Undefined when there is nothing to do, or nothing moves. */
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

export interface SubscriptionStatus {
  readonly name: string
  readonly state: SubscriptionState
  /** By this process, over the last seconds. */
  readonly eventsPerSecond: number
  /** How often this process found, at a commit or a renewal, that another owns the partition. */
  readonly fenced: number
  /** Types that the catalog doesn't know, and how many events of each this process saw. */
  readonly unknownTypes: Readonly<Record<string, number>>
  /** Undefined while the store can't be read; `unreadable` says why. */
  readonly stored: StoredStatus | undefined
  readonly unreadable: unknown
}

const shownLanes = 20

export async function readStatus(store: Store, runners: readonly Runner[], clock: Clock): Promise<EngineStatus> {
  const gap = store.log.gap().catch(() => undefined)
  const subscriptions = await Promise.all(runners.map((runner) => subscriptionStatus(store, runner, clock)))
  return { at: clock.now(), subscriptions, gap: await gap, breakers: await breakersOf(store) }
}

async function breakersOf(store: Store): Promise<BreakerStatus[]> {
  const breakers = await store.breakers.list().catch(() => [])
  return breakers.filter(({ state }) => state.state !== 'closed').map(({ name, state }) => ({ name, state }))
}

async function subscriptionStatus(store: Store, runner: Runner, clock: Clock): Promise<SubscriptionStatus> {
  const eventsPerSecond = runner.rate.perSecond(clock.mono())
  const seen = {
    name: runner.subscription.name,
    state: runner.state,
    eventsPerSecond,
    fenced: runner.fenced,
    unknownTypes: Object.fromEntries(runner.unknownTypes),
  }
  try {
    return { ...seen, stored: await storedStatus(store, runner, clock, eventsPerSecond), unreadable: undefined }
  } catch (unreadable) {
    return { ...seen, stored: undefined, unreadable }
  }
}

async function storedStatus(
  store: Store,
  runner: Runner,
  clock: Clock,
  perSecond: number,
): Promise<StoredStatus | undefined> {
  const { name } = runner.subscription
  const states = await store.subscriptions.partitions(name)
  const [first] = states
  if (!first) return undefined
  const partitions = await Promise.all(states.map((state) => partitionStatus(runner, state, states.length, clock)))
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
  { source }: Runner,
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
