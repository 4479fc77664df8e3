import type { LogStore } from '../../src/log/log-store.ts'
import { Database } from '../../src/postgres/connection/database.ts'
import { loadDriver } from '../../src/postgres/connection/driver.ts'
import { createListener, type Listener } from '../../src/postgres/connection/listener.ts'
import { postgresLog } from '../../src/postgres/log/log.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { migrations } from '../../src/postgres/migrations/index.ts'

export interface OpenLog extends AsyncDisposable {
  readonly db: Database
  readonly listener: Listener
  readonly log: LogStore
}

/** A log alone, as a process of its own would open it. */
export async function openLog(url: string, schema = 'holdfast'): Promise<OpenLog> {
  const connection = { connectionString: url }
  const db = new Database({ driver: await loadDriver(), connection, schema, connections: 5 })
  await migrate(db, migrations)
  const listener = createListener(db)
  return {
    db,
    listener,
    log: postgresLog(db, listener),
    [Symbol.asyncDispose]: async () => {
      await listener.close()
      await db.close()
    },
  }
}
