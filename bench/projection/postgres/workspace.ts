import { randomBytes } from 'node:crypto'
import { createDatabase, type Database } from '../../../test/postgres/create-database.ts'
import { connect } from '../../server.ts'
import type { PostgresPlace, Workspace } from '../way.ts'

/** Databases on one server, dropped at the end. */
export async function createWorkspace(server: { readonly url: string }): Promise<Workspace<PostgresPlace>> {
  const prefix = `holdfast_bench_${randomBytes(6).toString('hex')}`
  const logs = new Map<string, Database>()
  const databases = new AsyncDisposableStack()
  const admin = databases.use(await connect(server.url))
  const measured = `${prefix}_measured`
  const drop = () => admin.query(`DROP DATABASE IF EXISTS ${measured} WITH (FORCE)`)
  databases.defer(async () => void (await drop()))
  return {
    create: async (log) => {
      const database = databases.use(await createDatabase(server, `${prefix}_${log}`))
      logs.set(log, database)
      return { store: 'postgres', url: database.url }
    },
    copyOf: async (log) => {
      const { name, url } = logs.get(log) as Database
      await drop()
      // As files: nothing goes through the WAL, all is on the disk and in the page cache, and a checkpoint was just made, so that
      // every way begins in the same state.
      await admin.query(`CREATE DATABASE ${measured} TEMPLATE ${name} STRATEGY file_copy`)
      const copy = new URL(url)
      copy.pathname = `/${measured}`
      return { store: 'postgres', url: copy.href }
    },
    [Symbol.asyncDispose]: () => databases.disposeAsync(),
  }
}
