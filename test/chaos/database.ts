import { createEngine } from 'holdfast'
import { createPostgresStore, rolesSql } from 'holdfast/postgres'
import { createDatabase, type Database } from '../postgres/create-database.ts'
import { createAdmin } from './admin.ts'
import { type Ground, roles } from './ground.ts'
import { subscriptions, tables } from './postings.ts'

/** A database with everything in it that the engines need and may not make for themselves. */
export async function createChaosDatabase({ server, disk }: Ground, name: string): Promise<Database> {
  const database = await createDatabase(server, name)
  const { url } = database
  {
    await using admin = createAdmin(url)
    if (!('missing' in disk)) await admin.query(`ALTER DATABASE ${name} SET default_tablespace = small`)
  }
  {
    await using store = await createPostgresStore({ connection: url })
    await createEngine({ store, subscriptions }).prepare()
  }
  await using admin = createAdmin(url)
  await admin.query(tables)
  await admin.query(rolesSql({ migrator: 'chaos_migrator', engine: roles.engine, reader: 'chaos_reader' }))
  await admin.query(`GRANT SELECT, INSERT ON effects, business TO ${roles.engine}`)
  return database
}

/** What Holdfast itself says about it, from outside of all engines. */
export async function verify(url: string): Promise<string[]> {
  await using store = await createPostgresStore({ connection: url })
  const engine = createEngine({ store, subscriptions })
  const problems: string[] = []
  for (const { name } of subscriptions) {
    const { ok, differenceCount, differences } = await engine.verify(name)
    if (!ok) problems.push(`verify ${name}: ${differenceCount} differences: ${JSON.stringify(differences.slice(0, 5))}`)
  }
  return problems
}
