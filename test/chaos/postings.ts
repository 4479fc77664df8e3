import { defineSubscription, type Subscription } from 'holdfast'
import { defineSqlProjection } from 'holdfast/postgres'
import type { ClientBase } from 'pg'
import { ledgerEvents, ledgerProjection } from '../crash/ledger.ts'

export { ledgerEvents, type Posting } from '../crash/ledger.ts'

/** So low that no balance stands it, and no check of `effects`: the event is poison to both subscriptions. */
export const poison = -1_000_000_000

// No unique index over events: it would refuse a second application, and what was done twice would look like poison.
export const tables = `
CREATE TABLE effects (
  serial   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id text NOT NULL,
  key      text NOT NULL,
  version  bigint NOT NULL,
  amount   bigint NOT NULL CHECK (amount >= 0)
);
CREATE TABLE business (id text PRIMARY KEY);
`

/** Every event leaves one row, and the rows of a key lie in the order in which they were made. */
const effects = defineSqlProjection('effects', {
  events: ledgerEvents,
  on: {
    Posted: ({ id, key, version, data }, tx: ClientBase) =>
      tx.query('INSERT INTO public.effects (event_id, key, version, amount) VALUES ($1, $2, $3, $4)', [
        id,
        key,
        version,
        data.amount,
      ]),
  },
  reset: (tx) => tx.query('TRUNCATE public.effects'),
  maxDeaths: 1_000,
})

export const partitions = 4

/** A fold, and SQL of the user's own. */
export const subscriptions: readonly Subscription[] = [
  defineSubscription(ledgerProjection('ledger'), { partitions }),
  defineSubscription(effects, { partitions }),
]
