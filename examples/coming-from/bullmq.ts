// From BullMQ to the log: a worker that only appends. The id of the job is the id of the event, so a repeated job changes nothing.
import { Queue, Worker } from 'bullmq'
import { createEngine, createLog, defineEvents, defineHandler } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { createClient } from 'redis'
import { z } from 'zod'

const [file = 'mails.db', redisUrl = 'redis://localhost:6379', prefix = 'bull'] = process.argv.slice(2)
const mail = z.object({ to: z.string() })
const work = defineEvents({ MailRequested: mail })
await using store = await createSqliteStore({ file })
const log = createLog({ store, events: work })

// The existing queue has three jobs. One is delayed.
const connection = await createClient({ url: redisUrl }).connect()
const queue = new Queue<z.infer<typeof mail>>('mail', { connection, prefix })
await queue.add('mail', { to: 'ada' })
await queue.add('mail', { to: 'bob' })
await queue.add('mail', { to: 'eve' }, { delay: 3_600_000 })

// #region move
// Replaces the existing worker. BullMQ removes a job only after the append. If the process dies in between, BullMQ delivers the job again,
// and the append recognises it by its id.
const mover = new Worker<z.infer<typeof mail>>(
  'mail',
  async ({ id, data }) => {
    const event = { id: `bullmq/mail/${id}`, type: 'MailRequested', data } as const
    const { repeated } = await log.append(`mail-${data.to}`, [event])
    console.log(repeated ? 'was moved before:' : 'moved:', event.id)
  },
  { connection, prefix },
)
// Move delayed jobs now: the log has no delays.
for (const job of await queue.getDelayed()) await job.promote()
// #endregion

while ((await queue.getJobCountByTypes('waiting', 'active', 'delayed', 'prioritized')) > 0)
  await new Promise((resolve) => setTimeout(resolve, 20))
await mover.close()
await queue.close()
connection.destroy()

const mails = defineHandler('mails', {
  events: work,
  on: { MailRequested: ({ data }) => console.log('mail to', data.to) },
})
await using engine = createEngine({ store, subscriptions: [mails] })
await engine.start()
await engine.drain()
