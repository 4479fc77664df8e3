import type { Store } from 'holdfast'
import type { RedriveTask } from '../../src/redrive/redrive.ts'
import { slotOf } from '../../src/source/share.ts'
import type { ClaimOutcome, Commit, Lease, PartitionState } from '../../src/subscription/subscription-store.ts'
import { inOrder, isAccepted, type StoreEffect } from '../../src/testing/simulation/checks.ts'
import type { History } from '../../src/testing/simulation/history.ts'
import type { Flaw, StepsApp, Tried } from './steps.ts'

/** An event as those who judge a subscription know it. */
export interface Known {
  readonly id: string
  readonly position: number
  readonly lane: string
  readonly partition: number
  readonly flaw: Flaw
}

/** A process that has, or had, a partition of the subscription: from its claim on. */
export interface Ownership {
  readonly who: string
  readonly partition: number
  readonly epoch: number
}

export interface Begun {
  readonly number: number
  readonly event: Known
  /** Undefined for one who never claimed the partition. */
  readonly ownership: Ownership | undefined
  readonly atMs: number
  /** What the handler was told. */
  readonly attempt?: number | undefined
}

/** Who goes through what happened to a subscription, in the order in which it did. */
export interface Watcher {
  claimed?(ownership: Ownership, claim: Extract<ClaimOutcome, { outcome: 'claimed' }>, atMs: number): void
  /** It reads how its partition stands: what it goes by from then on if it has `taken` it, or whether a commit of its own was made. */
  loaded?(ownership: Ownership): void
  /** What it has loaded last it goes by, unless it never hears of what comes next and loads again. */
  taken?(ownership: Ownership): void
  renewed?(ownership: Ownership, atMs: number): void
  released?(lease: Lease): void
  committed?(commit: Commit, ownership: Ownership, atMs: number): void
  /** It lives, and says so. */
  acquitted?(who: string, partition: number, atMs: number): void
  /** It learns what people want to be tried again. */
  asked?(tasks: readonly RedriveTask[]): void
  saved?(who: string, breaker: { readonly name: string; readonly record: string }): void
  begun?(begun: Begun): void
  ended?(begun: Begun, tried: Tried, atMs: number): void
  killed?(who: string, atMs: number): void
  /** The subscription was paused or resumed. */
  paused?(atMs: number): void
  /** A call of it was lost, there or back. */
  lost?(who: string, what: string, atMs: number): void
}

export async function knownOf({ log }: Store, { written }: StepsApp, partitions: number): Promise<readonly Known[]> {
  const { events } = await log.readAll(0, { events: 100_000, bytes: 100_000_000 })
  const flaws = new Map([...written].flatMap(([key, steps]) => steps.map(({ n, flaw }) => [`${key}-${n}`, flaw])))
  return events.map(({ id, key, position }) => {
    const flaw = flaws.get(id) as Flaw
    return { id, position, lane: key, partition: slotOf(key) % partitions, flaw }
  })
}

export function walk(
  history: History,
  subscription: Tried['subscription'],
  known: readonly Known[],
  watchers: readonly Watcher[],
): void {
  const byId = new Map(known.map((event) => [event.id, event]))
  const tenures = new Map<string, Ownership>()
  const running = new Map<number, Begun>()
  for (const { kind, who, about, atMs, text } of inOrder(history, ['effect', 'begin', 'end', 'kill', 'lost'])) {
    if (kind === 'effect') effect(about as StoreEffect, who, atMs)
    else if (kind === 'lost') for (const watcher of watchers) watcher.lost?.(who, text.split(' ', 1)[0] as string, atMs)
    else if (kind === 'kill') for (const watcher of watchers) watcher.killed?.(who, atMs)
    else if ((about as Tried).subscription === subscription) tried(kind, about as Tried, who, atMs)
  }

  function tried(kind: string, one: Tried, who: string, atMs: number): void {
    const event = byId.get(one.id) as Known
    const begun = running.get(one.number) ?? {
      number: one.number,
      event,
      ownership: tenures.get(`${who}/${event.partition}`),
      atMs,
      attempt: one.attempt,
    }
    if (kind === 'begin') running.set(one.number, begun)
    else running.delete(one.number)
    for (const watcher of watchers) {
      if (kind === 'begin') watcher.begun?.(begun)
      else watcher.ended?.(begun, one, atMs)
    }
  }

  function effect(done: StoreEffect, who: string, atMs: number): void {
    const { what, value, about: [asked] = [] } = done
    // The act of an operator says in its transaction which subscription it is about.
    if (what.startsWith('subscriptions.pause') || what.startsWith('subscriptions.resume'))
      for (const watcher of watchers) watcher.paused?.(atMs)
    if (what === 'subscriptions.claim') return claimed(value as ClaimOutcome | undefined, who, atMs)
    const [, partition] = done.about ?? []
    const owned = asked === subscription ? tenures.get(`${who}/${partition as number}`) : undefined
    if (owned && what === 'subscriptions.load' && (value as PartitionState | undefined)?.epoch === owned.epoch)
      for (const watcher of watchers) watcher.loaded?.(owned)
    // Nobody else asks for the lanes, and nobody asks before it has the rest.
    if (owned && what === 'letters.heldLanes') for (const watcher of watchers) watcher.taken?.(owned)
    if (owned && what === 'redrives.due')
      for (const watcher of watchers) watcher.asked?.((value ?? []) as readonly RedriveTask[])
    // One that the store refused took nothing back.
    const isTakenBack = what === 'subscriptions.acquit' || what === 'subscriptions.announceStop'
    if (isTakenBack && asked === subscription && !('error' in done))
      for (const watcher of watchers) watcher.acquitted?.(who, partition as number, atMs)
    // An operator's act is written with its entry in the audit.
    const isOperated = what === 'breakers.save.commit' && !('error' in done)
    if (isOperated || (what === 'breakers.save' && value === true))
      for (const watcher of watchers) watcher.saved?.(who, asked as { name: string; record: string })
    const lease = isAccepted(done) ? (asked as Commit).lease : (asked as Lease | undefined)
    const ownership = lease?.subscription === subscription ? tenures.get(`${who}/${lease.partition}`) : undefined
    if (!lease || !ownership || ownership.epoch !== lease.epoch) return
    for (const watcher of watchers) {
      if (isAccepted(done)) watcher.committed?.(asked as Commit, ownership, atMs)
      if (isAccepted(done) || (what === 'subscriptions.renew' && value === true)) watcher.renewed?.(ownership, atMs)
      if (what === 'subscriptions.release') watcher.released?.(lease)
    }
  }

  function claimed(value: ClaimOutcome | undefined, who: string, atMs: number): void {
    if (value?.outcome !== 'claimed' || value.lease.subscription !== subscription) return
    const { partition, epoch } = value.lease
    const ownership = { who, partition, epoch }
    tenures.set(`${who}/${partition}`, ownership)
    for (const watcher of watchers) watcher.claimed?.(ownership, value, atMs)
  }
}
