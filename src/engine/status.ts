import type { HeldSummary, LaneSummary } from '../dead-letter/letter-store.ts'
import type { Clock } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import type { Checkpoint } from '../subscription/checkpoint.ts'
import type { Pause } from '../subscription/subscription-store.ts'
import type { SubscriptionState } from './state.ts'
import type { Worker } from './worker.ts'

export interface EngineStatus {
  /** When it was asked, in milliseconds since 1970. */
  readonly at: number
  readonly subscriptions: readonly SubscriptionStatus[]
}

/** A held lane, with what it waits for and for how long. */
export interface LaneStatus extends LaneSummary {
  readonly ageSeconds: number
  /** The version that has not come yet, for a lane that waits. */
  readonly missingVersion: number | undefined
}

/** What the store says about a subscription at the moment of asking; nothing of it is remembered from before. */
export interface StoredStatus {
  readonly owner: string | undefined
  readonly epoch: number
  /** Set by a person, whichever process they asked. */
  readonly pause: Pause | undefined
  readonly checkpoint: Checkpoint
  /** `seconds` is how long ago the first event without an outcome was appended: it grows while nothing moves, and is 0 at the head. */
  readonly lag: { readonly events: number; readonly seconds: number }
  /** Undefined when there is nothing to do, or nothing moves. */
  readonly etaSeconds: number | undefined
  readonly held: Omit<HeldSummary, 'oldest'> & { readonly oldest: readonly LaneStatus[] }
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

export async function readStatus(store: Store, workers: readonly Worker[], clock: Clock): Promise<EngineStatus> {
  const subscriptions = await Promise.all(workers.map((worker) => subscriptionStatus(store, worker, clock)))
  return { at: clock.now(), subscriptions }
}

async function subscriptionStatus(store: Store, worker: Worker, clock: Clock): Promise<SubscriptionStatus> {
  const eventsPerSecond = worker.rate.perSecond(clock.mono())
  const seen = {
    name: worker.subscription.name,
    state: worker.state,
    eventsPerSecond,
    fenced: worker.fenced,
    unknownTypes: Object.fromEntries(worker.unknownTypes),
  }
  try {
    return { ...seen, stored: await storedStatus(store, worker, clock, eventsPerSecond), unreadable: undefined }
  } catch (unreadable) {
    return { ...seen, stored: undefined, unreadable }
  }
}

async function storedStatus(
  store: Store,
  worker: Worker,
  clock: Clock,
  perSecond: number,
): Promise<StoredStatus | undefined> {
  const { name } = worker.subscription
  const state = await store.subscriptions.load(name, 0)
  if (!state) return undefined
  const { events, since } = await worker.source.lag(state.checkpoint.position)
  const held = await store.letters.summary(name, shownLanes)
  const now = clock.now()
  return {
    owner: state.owner,
    epoch: state.epoch,
    pause: state.pause,
    checkpoint: state.checkpoint,
    lag: { events, seconds: since === undefined ? 0 : secondsSince(since, now) },
    etaSeconds: events > 0 && perSecond > 0 ? events / perSecond : undefined,
    held: { ...held, oldest: held.oldest.map((lane) => laneStatus(lane, now)) },
  }
}

function laneStatus(lane: LaneSummary, now: number): LaneStatus {
  const missing = lane.status === 'waiting' ? (lane.done ?? 0) + 1 : undefined
  return { ...lane, ageSeconds: secondsSince(lane.since, now), missingVersion: missing }
}

function secondsSince(then: number, now: number): number {
  return Math.max(0, (now - then) / 1_000)
}
