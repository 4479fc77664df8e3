import { Database } from '../../src/postgres/connection/database.ts'
import { loadDriver } from '../../src/postgres/connection/driver.ts'
import { createListener } from '../../src/postgres/connection/listener.ts'

// A process that is there until it is killed, and tells its number.

const [url = '', schema = ''] = process.argv.slice(2)
const connection = { connectionString: url }
const listener = createListener(new Database({ driver: await loadDriver(), connection, schema, connections: 2 }))
await listener.ready()
process.send?.(listener.presence)
