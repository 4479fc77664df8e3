// From pg-boss to the log: new work is appended, and remaining jobs of the queue are moved, each exactly once.
import { createEngine, createLog, defineEvents, defineHandler } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { Pool, type PoolClient } from 'pg'
import { PgBoss } from 'pg-boss'
import { z } from 'zod'

const connection = process.argv[2] ?? 'postgres://localhost/postgres'
const mail = z.object({ to: z.string() })
const work = defineEvents({ MailRequested: mail })
await using store = await createPostgresStore({ connection })
const log = createLog({ store, events: work })
const pool = new Pool({ connectionString: connection })

// The existing queue has three jobs and no worker any more.
const boss = new PgBoss({ connectionString: connection, supervise: false, schedule: false })
boss.on('error', console.error)
await boss.start()
await boss.createQueue('mail')
for (const to of ['ada', 'bob', 'eve']) await boss.send('mail', { to })

// #region move
/** Fetches a batch of jobs, appends them and completes them. The id of the job is the id of the event, so a repeat changes nothing. */
async function moveJobs(queue: string): Promise<number> {
  const jobs = await boss.fetch<z.infer<typeof mail>>(queue, { batchSize: 100 })
  if (jobs.length === 0) return 0
  await inTransaction(async (tx) => {
    for (const { id, data } of jobs) await log.append(`mail-${data.to}`, [{ id, type: 'MailRequested', data }], { tx })
    // pg-boss accepts a connection too, so the append and the completion are one commit.
    const db = { executeSql: (text: string, values?: unknown[]) => tx.query(text, values) }
    await boss.complete(
      queue,
      jobs.map(({ id }) => id),
      undefined,
      { db },
    )
  })
  return jobs.length
}
// #endregion

async function inTransaction(run: (tx: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await run(client)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

let moved = 0
for (let jobs = 1; jobs > 0; moved += jobs) jobs = await moveJobs('mail')
console.log('moved:', moved)
await boss.stop({ graceful: false })

const mails = defineHandler('mails', {
  events: work,
  on: { MailRequested: ({ data }) => console.log('mail to', data.to) },
})
await using engine = createEngine({ store, subscriptions: [mails] })
await engine.start()
await engine.drain()
await pool.end()
