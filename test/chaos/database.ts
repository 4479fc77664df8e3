import { createEngine } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { type Admin, createAdmin } from './admin.ts'
import { type Ground, roles } from './ground.ts'
import { subscriptions, tables } from './postings.ts'

/** A database with everything in it that the engines need and may not make for themselves. */
export async function createChaosDatabase({ server, disk }: Ground, name: string): Promise<string> {
  const url = await server.createDatabase(name)
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
  await grant(admin)
  return url
}

async function grant(admin: Admin): Promise<void> {
  const who = Object.values(roles).join(', ')
  await admin.query(`GRANT USAGE ON SCHEMA holdfast TO ${who};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast, public TO ${who};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast, public TO ${who};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO ${who}`)
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
