// Moves from the file to the server: does what `holdfast copy` does, then the projection continues from its checkpoint.
import { copyStore, createEngine } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { balances } from '../bank/bank.ts'

const [file = 'data/bank.db', connection = 'postgres://localhost/postgres'] = process.argv.slice(2)

await using from = await createSqliteStore({ file })
await using to = await createPostgresStore({ connection, schema: 'bank', connections: 10 })
const { counts, left } = await copyStore({ from, to })
console.log('copied and compared:', counts, 'left behind:', left)

await using engine = createEngine({ store: to, subscriptions: [balances] })
await engine.start()
await engine.drain()
const { ok, events, rows } = await engine.verify(balances.name)
console.log(ok ? 'equal:' : 'DIFFERENT:', events, 'events,', rows, 'rows')
process.exitCode = ok ? 0 : 1
