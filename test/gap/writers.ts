import { Client } from 'pg'
import { createPostgresStore } from '../../src/postgres/index.ts'
import { naiveAppends, ourAppends, type Tally, type WriteJob, write } from './workload.ts'

// A process with some writers. It is told what to write, and answers when it is written.

export interface WritersJob extends WriteJob {
  readonly way: 'ours' | 'naive' | 'prepared'
}

const [url = '', count = '1'] = process.argv.slice(2)
const { log } = await createPostgresStore({ connection: url })
const clients = await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    const client = new Client({ connectionString: url, application_name: 'gap writer' })
    await client.connect()
    return client
  }),
)
const ways = {
  ours: ourAppends(log),
  naive: naiveAppends('naive', false),
  prepared: naiveAppends('naive', true),
}

process.on('message', ({ way, ...job }: WritersJob) => {
  const each = { ...job, transactions: Math.ceil(job.transactions / clients.length) }
  void Promise.all(clients.map((client) => write(client, ways[way], each))).then(report, fail)
})
process.send?.('ready')

function report(tallies: readonly Tally[]): void {
  const sum = (field: keyof Tally) => tallies.reduce((total, tally) => total + tally[field], 0)
  process.send?.({ committed: sum('committed'), rolledBack: sum('rolledBack') })
}

function fail(error: unknown): void {
  console.error(error)
  process.exit(1)
}
