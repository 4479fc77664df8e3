import type { Deed } from '../../audit/audit.ts'
import assert from 'node:assert/strict'
import type { HeldLane, NewLetter } from '../../dead-letter/letter.ts'
import type { LetterQueue } from '../../dead-letter/letter-store.ts'
import type { AppendOutcome, NewEvent, PageLimits } from '../../log/log-store.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import type { Store } from '../../store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { ClaimOutcome, Commit, LaneWrite, Lease } from '../../subscription/subscription-store.ts'

export interface World {
  /** Advances time for the store, as it measures leases. */
  readonly elapse: (ms: number) => Promise<void>
  /** Adds a unique index on `owner` to the table `balances`, as a user would. */
  readonly addRule: () => Promise<void>
  /** SQL in the store's dialect that a SQL projection might run: `n` goes into the table `notes`, which this creates. */
  readonly notes: {
    readonly make: () => Promise<void>
    readonly add: (handle: unknown, n: number) => Promise<void>
    readonly all: () => Promise<readonly number[]>
  }
}

export type Case = (store: Store, world: World) => Promise<void>

export const table: TableSpec = {
  name: 'balances',
  columns: [
    { name: 'balance', type: 'integer' },
    { name: 'owner', type: 'text' },
    { name: 'open', type: 'boolean' },
  ],
}
export const limits = { events: 100, bytes: 1_000_000 }
export const leaseMs = 10_000

export function newEvent(id: string): NewEvent {
  return { id, type: 'Touched', schemaVersion: 1, time: '2026-01-01T00:00:00.000Z', body: '{}', metadata: undefined }
}

export function claimBy(owner: string) {
  return { subscription: 's', partition: 0, owner, leaseMs }
}

export function claimed(outcome: ClaimOutcome): Lease {
  assert.equal(outcome.outcome, 'claimed')
  return outcome.lease
}

export async function begin(subscriptions: Store['subscriptions']): Promise<Lease> {
  await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
  return claimed(await subscriptions.claim(claimBy('one')))
}

export function at(position: number): Commit['to'] {
  return { position, eventId: `e${position}`, eventType: 'T', eventTime: '2026-01-01T00:00:00.000Z' }
}

export function commitOf(lease: Lease): Commit {
  return {
    lease,
    leaseMs,
    from: 0,
    commits: undefined,
    to: at(0),
    at: 1,
    counts: noCounts(),
    table,
    rows: [],
    lanes: [],
    held: [],
    letters: [],
  }
}

export function row(key: string, version: number): RowWrite {
  return { key, version, position: version, json: `{"balance":${version}}`, columns: [version, null, null] }
}

export let nextPosition = 1

export function letter(
  lane: string,
  sequence: number,
  status: NewLetter['status'],
  body: string | Uint8Array = '{"a":"\\u0000"}',
): NewLetter {
  return {
    lane,
    sequence,
    status,
    logged: false,
    event: {
      position: nextPosition++,
      id: `event-${lane}-${sequence}`,
      type: 'Touched',
      key: lane,
      version: sequence,
      schemaVersion: 1,
      time: '2026-01-01T00:00:00.000Z',
      body,
      metadata: undefined,
    },
    failure: undefined,
  }
}

export function appended(result: AppendOutcome): { version: number; position: number } {
  assert.equal(result.outcome, 'appended')
  return { version: result.version, position: result.position }
}

/** The queue of one lane. */
export async function queueOf(
  store: Store,
  subscription: string,
  partition: number,
  lane: string,
  most: PageLimits,
): Promise<LetterQueue> {
  const [queue] = await store.letters.queues(subscription, partition, [lane], { ...most, perLane: most.events })
  return queue as LetterQueue
}

/** A lane with this letter as its head. */
export function hold({ lane, sequence, status, event }: NewLetter, since: number): LaneWrite {
  const held = { lane, since, done: undefined, head: sequence, headPosition: event.position }
  return { lane, hold: { ...held, status: status as HeldLane['status'] }, done: undefined }
}

/** What an operator does, as the audit has it. */
export const deedOf = (act: string, target = 's'): Deed => ({
  by: 'ann',
  act,
  target,
  reason: `because of ${act}`,
  at: 5,
  details: { lanes: 2, "it's": 'so', none: null, yes: true },
})
