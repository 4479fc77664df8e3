import { setTimeout } from 'node:timers/promises'
import type { Appended, Log } from 'holdfast'
import type { Pool, PoolClient } from 'pg'
import { type Batch, draftsOf, idOf } from './batch.ts'
import type { ledgerEvents } from './postings.ts'

/**
 * Appends in transactions of its own, together with a row of `business`; both are there or neither is. `holdMs` is how long
 * others may overtake it, between its positions and its end.
 */
export function createOutbox(pool: Pool, log: Log<typeof ledgerEvents>) {
  async function write(batch: Batch, holdMs: number, end: (client: PoolClient) => Promise<void>): Promise<Appended> {
    const client = await pool.connect()
    let isDone = false
    try {
      await client.query('BEGIN')
      const id = idOf(batch.key, batch.first)
      await client.query('INSERT INTO business (id) VALUES ($1) ON CONFLICT DO NOTHING', [id])
      const appended = await log.append(batch.key, draftsOf(batch), { tx: client })
      await setTimeout(holdMs)
      await end(client)
      isDone = true
      return appended
    } finally {
      // A connection whose transaction failed is thrown away, and the transaction with it.
      client.release(!isDone)
    }
  }

  return {
    append: (batch: Batch, holdMs: number) =>
      write(batch, holdMs, async (client) => {
        const { command } = await client.query('COMMIT')
        if (command !== 'COMMIT') throw new Error(`A transaction ended with ${command}.`)
      }),
    rollBack: (batch: Batch, holdMs: number) =>
      write(batch, holdMs, async (client) => void (await client.query('ROLLBACK'))),
  }
}
