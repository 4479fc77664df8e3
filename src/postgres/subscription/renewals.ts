import type { Lease } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { fresh, numberArray, prepared } from '../connection/statement.ts'

interface Asked {
  readonly lease: Lease
  readonly leaseMs: number
  readonly answer: (isRenewed: Promise<boolean> | boolean) => void
}

/** Partitions ask for their renewal at the same moment, but not in the same tick: a timer may be late by some milliseconds. */
const gatherMs = 5

/**
 * Renews leases, those that are asked for together in one statement. A row that another transaction has locked is left out of it, because
 * two transactions that lock several rows could wait for each other; such a lease, and one that may be lost, is renewed on its own.
 */
export function createRenewals(db: Database, presence: () => number | undefined) {
  const sql = statements(db)
  let waiting: Asked[] = []

  async function flush(): Promise<void> {
    const asked = waiting
    waiting = []
    const [{ leaseMs }] = asked as [Asked]
    const leases = asked.map(({ lease }) => lease)
    const together =
      leases.length === 1 || asked.some((one) => one.leaseMs !== leaseMs) ? none : renewAll(leases, leaseMs)
    const renewed = await together.catch(() => new Set<number>())
    for (const [i, { lease, leaseMs: ownMs, answer }] of asked.entries())
      answer(renewed.has(i + 1) || renewOne(lease, ownMs))
  }

  /** Returns the numbers of the renewed leases, from 1. */
  async function renewAll(leases: readonly Lease[], leaseMs: number): Promise<ReadonlySet<number>> {
    const rows = await db.query<{ number: number }>(sql.all, [
      leases.map(({ subscription }) => subscription),
      numberArray(leases.map(({ partition }) => partition)),
      numberArray(leases.map(({ epoch }) => epoch)),
      leases.map(({ owner }) => owner),
      leaseMs,
      presence(),
    ])
    return new Set(rows.map(({ number }) => number))
  }

  async function renewOne({ subscription, partition, epoch, owner }: Lease, leaseMs: number): Promise<boolean> {
    return (await db.query(sql.one, [subscription, partition, epoch, owner, leaseMs, presence()])).length === 1
  }

  return (lease: Lease, leaseMs: number): Promise<boolean> =>
    new Promise((answer) => {
      waiting.push({ lease, leaseMs, answer })
      if (waiting.length === 1) setTimeout(() => void flush(), gatherMs)
    })
}

const none: Promise<ReadonlySet<number>> = Promise.resolve(new Set<number>())

function statements(db: Database) {
  const partitions = db.table('holdfast_partitions')
  const until = `clock_timestamp() + $5::double precision * interval '1 millisecond'`
  return {
    one: prepared(`
      UPDATE ${partitions} SET lease_until = ${until}, presence = $6
      WHERE subscription = $1 AND partition = $2 AND epoch = $3 AND owner = $4 RETURNING 1`),
    all: fresh(`
      WITH asked AS (
        SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[])
          WITH ORDINALITY AS asked (subscription, partition, epoch, owner, number)
      ),
      own AS MATERIALIZED (
        SELECT p.subscription, p.partition, asked.number FROM asked JOIN ${partitions} AS p
          ON p.subscription = asked.subscription AND p.partition = asked.partition
            AND p.epoch = asked.epoch AND p.owner = asked.owner
        FOR NO KEY UPDATE OF p SKIP LOCKED
      )
      UPDATE ${partitions} AS p SET lease_until = ${until}, presence = $6::integer
      FROM own WHERE p.subscription = own.subscription AND p.partition = own.partition
      RETURNING own.number`),
  }
}
