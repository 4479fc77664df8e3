// Moves back to the file: appends to the file, in order and with the same ids, the events that were appended on the server since the copy.
// Run it while no process appends. If it is interrupted, run it again.
import { createLog, type DraftOf } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { bank } from '../bank/bank.ts'

const [connection = 'postgres://localhost/postgres', file = 'data/bank.db'] = process.argv.slice(2)

await using from = await createPostgresStore({ connection, schema: 'bank' })
await using to = await createSqliteStore({ file })
const there = createLog({ store: from, events: bank })
const here = createLog({ store: to, events: bank })

let appended = 0
for await (const { key, version, id, type, data, time, metadata } of there.readAll({ after: await to.log.head() })) {
  const draft = { id, type, data, time, metadata } as DraftOf<typeof bank>
  const { repeated } = await here.append(key, [draft], { expectedVersion: version === 1 ? 'new' : version - 1 })
  if (!repeated) appended++
}
console.log('appended to the file:', appended, 'events')
