import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Client } from 'pg'
import type { LogStore, NewEvent } from '../../src/log/log-store.ts'
import { slotOf } from '../../src/source/share.ts'

/** How events get in: through our log, or as anybody would write it without one. */
export interface Appends {
  plain(client: Client, key: string, events: readonly NewEvent[]): Promise<void>
  within(client: Client, key: string, events: readonly NewEvent[]): Promise<void>
}

export function ourAppends(log: LogStore): Appends {
  return {
    plain: async (_client, key, events) => check(await log.append(key, events, 'any')),
    within: async (client, key, events) => check(await log.append(key, events, 'any', { tx: client })),
  }
}

function check({ outcome }: { readonly outcome: string }): void {
  if (outcome !== 'appended') throw new Error(`An append ended as ${outcome}.`)
}

/**
 * The usual way: the next version by the highest one, and again when somebody else was first. Ours is prepared on the
 * connections of the store and not on those of the user, where `pg` prepares nothing unless it is told to; `isPrepared` says
 * whether the naive one is there.
 */
export function naiveAppends(schema: string, isPrepared: boolean): Appends {
  const insert = async (
    client: Client,
    key: string,
    [event]: readonly NewEvent[],
    named: { readonly name?: string },
  ) => {
    if (!event) return
    await client.query({
      ...named,
      text: `INSERT INTO ${schema}.holdfast_events (version, schema_version, slot, id, key, type, time, data)
        SELECT coalesce(max(version), 0) + 1, $1, $2, $3, $4, $5, $6, $7 FROM ${schema}.holdfast_events WHERE key = $4`,
      values: [event.schemaVersion, slotOf(key), event.id, key, event.type, event.time, event.body],
    })
  }
  return {
    plain: (client, key, events) => insert(client, key, events, { name: 'naive' }),
    within: (client, key, events) => insert(client, key, events, isPrepared ? { name: 'naive' } : {}),
  }
}

export interface WriteJob {
  readonly transactions: number
  readonly keys: number
  /** An append has up to so many. */
  readonly mostEvents: number
}

export interface Tally {
  committed: number
  rolledBack: number
}

const body = JSON.stringify({ amount: 1250, currency: 'EUR', account: 'a'.repeat(60), note: 'n'.repeat(80) })

/**
 * One writer: transactions of all kinds, one after the other. A quarter append by themselves; of the others a third write
 * elsewhere first, and so have their number early, a third stay open for a while after the append, and a tenth roll back.
 */
export async function write(client: Client, appends: Appends, job: WriteJob): Promise<Tally> {
  const tally: Tally = { committed: 0, rolledBack: 0 }
  for (let i = 0; i < job.transactions; i++) {
    const key = `key-${Math.floor(Math.random() * job.keys)}`
    const events = Array.from({ length: 1 + Math.floor(Math.random() * job.mostEvents) }, newEvent)
    const kind = Math.random()
    if (kind < 0.25) {
      await again(() => appends.plain(client, key, events))
      tally.committed += events.length
      continue
    }
    const rollsBack = Math.random() < 0.1
    await again(async () => {
      await client.query('BEGIN')
      try {
        if (kind < 0.5) await client.query("INSERT INTO elsewhere (what) VALUES ('a row of the business')")
        await appends.within(client, key, events)
        if (kind >= 0.75) await setTimeout(1 + Math.random() * 29)
        await client.query(rollsBack ? 'ROLLBACK' : 'COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      }
    })
    if (rollsBack) tally.rolledBack += events.length
    else tally.committed += events.length
  }
  return tally
}

function newEvent(): NewEvent {
  const time = '2026-01-01T00:00:00.000Z'
  return { id: randomUUID(), type: 'Touched', schemaVersion: 1, time, body, metadata: undefined }
}

/** unique_violation and deadlock_detected: somebody else was first. */
async function again(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!['23505', '40P01'].includes(String((error as { code?: unknown }).code))) throw error
    }
  }
}
