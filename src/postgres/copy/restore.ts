import type { ArchivedEvent, ArchivedLane, ArchivePart } from '../../archive/archive.ts'
import type { StoredSubscription } from '../../subscription/subscription-store.ts'
import type { BreakerRecord } from '../../breaker/breaker-store.ts'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import { HoldfastError } from '../../errors.ts'
import type { InboxMark } from '../../handler/inbox-store.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import { slotOf } from '../../source/share.ts'
import { type Database, queryOf, rollback } from '../connection/database.ts'
import { storeError } from '../connection/errors.ts'
import type { PgResult } from '../connection/driver.ts'
import { columnsText } from '../../subscription/registration.ts'
import { restoreHandwork } from './restore-handwork.ts'
import { createTableSql, rowValues, upsertSql } from '../subscription/rows.ts'

type Ask = (text: string, values?: readonly unknown[]) => Promise<PgResult>

/**
 * Fills an empty schema from an archive, in one transaction. There is no retry, because the parts can be read only once; after a
 * failure everything is rolled back.
 */
export async function restore(db: Database, parts: AsyncIterable<ArchivePart>): Promise<void> {
  const client = await told(db, db.connect())
  // Errors of the parts are not about this database, and are thrown unchanged.
  const ask: Ask = (text, values = []) => told(db, client.query(queryOf(text, values)))
  let isDone = false
  try {
    await ask('BEGIN')
    // Without a time limit: no other process uses the schema.
    await ask('SET LOCAL statement_timeout = 0')
    await ask('SET LOCAL idle_in_transaction_session_timeout = 0')
    await refuseUsed(db, ask)
    const writer = new Writer(db, ask)
    for await (const part of parts) await writer.write(part)
    await writer.finish()
    const { command } = await ask('COMMIT')
    isDone = command === 'COMMIT'
    if (!isDone) throw new HoldfastError('INTERNAL', `${db.name} rolled the copy back.`)
  } finally {
    if (!isDone) await rollback(client)
    client.release(!isDone)
  }
}

async function told<T>(db: Database, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw storeError(error, db.name)
  }
}

/** Locked, so that nothing is written between the check and the end. */
async function refuseUsed(db: Database, ask: Ask): Promise<void> {
  const tables = ['events', 'subscriptions', 'breakers', 'audit'].map((name) => db.table(`holdfast_${name}`))
  await ask(`LOCK TABLE ${tables.join(', ')} IN EXCLUSIVE MODE`)
  for (const table of tables) {
    const { rows } = await ask(`SELECT 1 FROM ${table} LIMIT 1`)
    if (rows.length === 0) continue
    throw new HoldfastError('STORE_NOT_EMPTY', `${db.name} already has data in the schema ${db.schema}.`, {
      hint: 'Copy into an empty schema. Nothing was changed.',
    })
  }
}

class Writer {
  readonly #db: Database
  readonly #ask: Ask

  constructor(db: Database, ask: Ask) {
    this.#db = db
    this.#ask = ask
  }

  async write(part: ArchivePart): Promise<void> {
    switch (part.part) {
      case 'subscription':
        return this.#subscription(part.subscription)
      case 'events':
        return this.#events(part.events)
      case 'rows':
        return this.#rows(part.table, part.rows)
      case 'lanes':
        return this.#lanes(part.subscription, part.lanes)
      case 'letters':
        return this.#letters(part.subscription, part.letters)
      case 'revisions':
      case 'incidents':
      case 'redrive':
      case 'redrive-lanes':
      case 'audit':
        return restoreHandwork(this.#db, this.#ask, part)
      case 'inbox':
        return this.#inbox(part.subscription, part.marks)
      case 'breakers':
        return this.#breakers(part.breakers)
      default:
        part satisfies never
    }
  }

  /** The next position must be higher than all copied ones. */
  async finish(): Promise<void> {
    const events = this.#db.table('holdfast_events')
    await this.#query(
      `SELECT setval(pg_get_serial_sequence($1, 'position'), max(position)) FROM ${events} HAVING max(position) IS NOT NULL`,
      [events],
    )
  }

  async #subscription(subscription: StoredSubscription): Promise<void> {
    const { name, kind, table, partitions, version, epochs, generationOf, retiredAt } = subscription
    if (table) for (const text of createTableSql(this.#db, table)) await this.#query(text, [])
    await this.#query(
      `INSERT INTO ${this.#db.table('holdfast_subscriptions')} (name, kind, table_name, columns, partitions, version, epochs,
         generation_of, retired_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [name, kind, table?.name, columnsText(table), partitions.length, version, epochs, generationOf, retiredAt],
    )
    for (const { partition, epoch, checkpoint, pause, marks, tried, trials, order } of partitions) {
      const { counts } = checkpoint
      await this.#query(
        `INSERT INTO ${this.#db.table('holdfast_partitions')} (subscription, partition, epoch, paused_at, pause_reason, start,
           position, event_id, event_type, event_time, committed_at, commits, applied, duplicate, filtered, held, discarded, marks,
           tried, lane_order)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
        [
          name,
          partition,
          epoch,
          pause?.at,
          pause?.reason,
          checkpoint.start,
          checkpoint.position,
          checkpoint.eventId,
          checkpoint.eventType,
          checkpoint.eventTime,
          checkpoint.committedAt,
          checkpoint.commits,
          counts.applied,
          counts.duplicate,
          counts.filtered,
          counts.held,
          counts.discarded,
          JSON.stringify(marks),
          tried,
          order,
        ],
      )
      await this.#query(
        `INSERT INTO ${this.#db.table('holdfast_trials')} (subscription, partition, position, instance)
         SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[])`,
        [name, partition, trials.map(({ position }) => position), trials.map(({ instance }) => instance)],
      )
    }
  }

  async #events(events: readonly ArchivedEvent[]): Promise<void> {
    await this.#query(
      `INSERT INTO ${this.#db.table('holdfast_events')} (position, version, appended_at, schema_version, slot, id, key, type, time,
         data, metadata)
       OVERRIDING SYSTEM VALUE
       SELECT position, version, to_timestamp(appended / 1000.0), schema_version, slot, id, key, type, time, data::json, metadata::json
       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::smallint[], $6::text[], $7::text[], $8::text[],
         $9::text[], $10::text[], $11::text[])
         AS e (position, version, appended, schema_version, slot, id, key, type, time, data, metadata)`,
      [
        events.map((event) => event.position),
        events.map((event) => event.version),
        events.map((event) => event.appendedAt),
        events.map((event) => event.schemaVersion),
        events.map((event) => slotOf(event.key)),
        events.map((event) => event.id),
        events.map((event) => event.key),
        events.map((event) => event.type),
        events.map((event) => event.time),
        events.map((event) => event.body),
        events.map((event) => event.metadata ?? null),
      ],
    )
  }

  #rows(table: TableSpec, rows: readonly RowWrite[]): Promise<void> {
    return this.#query(upsertSql(this.#db, table, 1), rowValues(table, rows))
  }

  async #lanes(subscription: string, lanes: readonly ArchivedLane[]): Promise<void> {
    await this.#query(
      `INSERT INTO ${this.#db.table('holdfast_lanes')} (subscription, lane, partition, done, status, since, head,
         head_position, due_at, tries, breaker, redrive)
       SELECT $1, * FROM unnest($2::text[], $3::integer[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
         $9::bigint[], $10::integer[], $11::text[], $12::text[])`,
      [
        subscription,
        lanes.map(({ lane }) => lane),
        lanes.map(({ partition }) => partition),
        lanes.map(({ done }) => done ?? null),
        lanes.map(({ hold }) => hold?.status ?? null),
        lanes.map(({ hold }) => hold?.since ?? null),
        lanes.map(({ hold }) => hold?.head ?? null),
        lanes.map(({ hold }) => hold?.headPosition ?? null),
        lanes.map(({ hold }) => hold?.dueAt ?? null),
        lanes.map(({ hold }) => hold?.tries ?? null),
        lanes.map(({ hold }) => hold?.breaker ?? null),
        lanes.map(({ hold }) => hold?.redrive ?? null),
      ],
    )
  }

  /** One by one: there are few, and each has its own table. A letter that is only queued stays a reference to the log. */
  async #letters(subscription: string, letters: readonly DeadLetter[]): Promise<void> {
    for (const letter of letters) {
      const { partition, status, logged, heldAt, endedAt, endedBy, endedReason, lane, sequence, event } = letter
      const { failure, attempts, attemptsTotal } = letter
      const isBare = logged && attempts.length === 0 && ['queued', 'resolved', 'discarded'].includes(status)
      const bytes = (text: string | Uint8Array | undefined) => (text === undefined ? null : Buffer.from(text))
      await this.#query(
        `INSERT INTO ${this.#db.table('holdfast_letters')} (subscription, position, partition, status, logged, held_at, ended_at,
           ended_by, lane, sequence, event_id, type, key, version, schema_version, time, is_text, data, metadata, class,
           fingerprint, attempts, ended_reason, failed_at, attempts_total)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`,
        [
          subscription,
          event.position,
          partition,
          status,
          logged,
          heldAt,
          endedAt,
          endedBy,
          ...(isBare
            ? Array.from({ length: 11 }, () => null)
            : [
                lane,
                sequence,
                event.id,
                event.type,
                event.key,
                event.version,
                event.schemaVersion,
                event.time,
                typeof event.body === 'string',
                bytes(event.body),
                bytes(event.metadata),
              ]),
          failure?.class,
          failure?.fingerprint,
          attempts.length > 0 ? JSON.stringify(attempts) : null,
          endedReason,
          attempts.at(-1)?.at,
          attemptsTotal,
        ],
      )
    }
  }

  async #inbox(subscription: string, marks: readonly InboxMark[]): Promise<void> {
    await this.#query(
      `INSERT INTO ${this.#db.table('holdfast_inbox')} (subscription, key, result, until)
       SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[])`,
      [
        subscription,
        marks.map(({ key }) => key),
        marks.map(({ result }) => result),
        marks.map(({ until }) => until ?? null),
      ],
    )
  }

  async #breakers(breakers: readonly BreakerRecord[]): Promise<void> {
    for (const { name, state, record, revision } of breakers) {
      await this.#query(
        `INSERT INTO ${this.#db.table('holdfast_breakers')} (name, state, record, revision) VALUES ($1, $2, $3, $4)`,
        [name, JSON.stringify(state), record, revision],
      )
    }
  }

  async #query(text: string, values: readonly unknown[]): Promise<void> {
    await this.#ask(text, values)
  }
}
