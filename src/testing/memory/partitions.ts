import { HoldfastError } from '../../errors.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import type { Partition, State, Subscribed } from './state.ts'

export function newPartition(partition: number, epoch: number, start: number): Partition {
  return {
    partition,
    epoch,
    owner: undefined,
    presence: undefined,
    leaseUntil: Number.NEGATIVE_INFINITY,
    pause: undefined,
    checkpoint: newCheckpoint(start, 0),
    marks: [],
    tried: undefined,
    trials: [],
    order: undefined,
    letters: new Map(),
    held: new Map(),
  }
}

export function newCheckpoint(start: number, commits: number): Partition['checkpoint'] {
  const none = { eventId: undefined, eventType: undefined, eventTime: undefined, committedAt: undefined }
  return { start, position: start, ...none, counts: noCounts(), commits }
}

/** Removes the owner, who is fenced. */
export function free(row: Partition, epoch: number): void {
  row.epoch = epoch
  row.owner = undefined
  row.presence = undefined
  row.leaseUntil = Number.NEGATIVE_INFINITY
  row.tried = undefined
}

export function toState(row: Partition): PartitionState {
  const { partition, epoch, owner, checkpoint, pause, marks, tried, trials, order } = row
  const own = order === undefined ? {} : { order }
  return { partition, epoch, owner: owner || undefined, checkpoint, pause, marks, tried, trials, ...own }
}

export function statesOf({ subscriptions }: State, name: string): readonly PartitionState[] {
  return subscriptions.get(name)?.partitions.map(toState) ?? []
}

export function subscribedOf({ subscriptions }: State, name: string): Subscribed {
  const known = subscriptions.get(name)
  if (known) return known
  throw unknownSubscription(name)
}

export function unknownSubscription(name: string): HoldfastError {
  return new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(name)}.`, {
    hint: 'Start it once to create it.',
  })
}
