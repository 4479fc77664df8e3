import type { Admin } from '../admin.ts'

export interface LoggedEvent {
  readonly position: number
  readonly id: string
  readonly key: string
  readonly version: number
  readonly n: number
  readonly amount: number
}

export interface Effect {
  readonly id: string
  readonly key: string
  readonly version: number
}

export interface LedgerRow {
  readonly key: string
  readonly version: number
  readonly balance: number
  readonly data: { readonly balance: number; readonly count: number; readonly trail: number }
}

export interface Letter {
  readonly subscription: string
  readonly id: string
  readonly key: string
  readonly version: number
  readonly status: string
  readonly attempts: number
}

export interface PartitionRow {
  readonly subscription: string
  readonly partition: number
  readonly position: number
  readonly outcomes: number
  readonly applied: number
  readonly held: number
}

/** Everything there is, at one moment, read by our own SQL. */
export interface Snapshot {
  /** In order of position. */
  readonly events: readonly LoggedEvent[]
  /** In the order in which they were made. */
  readonly effects: readonly Effect[]
  readonly rows: readonly LedgerRow[]
  /** Those that are open, in order of position. */
  readonly letters: readonly Letter[]
  readonly partitions: readonly PartitionRow[]
  readonly business: readonly { readonly id: string }[]
}

export function readSnapshot(admin: Admin): Promise<Snapshot> {
  return admin.snapshot(async (query) => ({
    events: await query<LoggedEvent>(`
      SELECT position::float8, id, key, version::int, (data->>'n')::int AS n, (data->>'amount')::int AS amount
        FROM holdfast.holdfast_events ORDER BY holdfast_events.position`),
    effects: await query<Effect>('SELECT event_id AS id, key, version::int FROM effects ORDER BY serial'),
    rows: await query<LedgerRow>('SELECT key, version::int, balance::float8, data::json AS data FROM holdfast.ledger'),
    letters: await query<Letter>(`
      SELECT subscription, event_id AS id, key, version::int, status, json_array_length(attempts::json) AS attempts
        FROM holdfast.holdfast_dead_letters WHERE ended_at IS NULL ORDER BY position`),
    partitions: await query<PartitionRow>(`
      SELECT subscription, partition, position::float8, applied::int, held::int,
             (applied + duplicate + filtered + held + discarded)::int AS outcomes
        FROM holdfast.holdfast_partitions`),
    business: await query<{ id: string }>('SELECT id FROM business'),
  }))
}
