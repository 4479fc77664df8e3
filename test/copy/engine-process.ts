// An engine on a file, until it is killed.
import { createEngine } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { accounts } from './original.ts'

const store = await createSqliteStore({ file: process.argv[2] ?? '' })
const engine = createEngine({ store, subscriptions: [accounts] })
engine.on('partition.claimed', () => console.log('works'))
await engine.start()
