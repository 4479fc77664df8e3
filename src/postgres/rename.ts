import type { Database } from './database.ts'
import { quote } from './identifier.ts'
import { fresh, type Query } from './statement.ts'

/** Tables by their names, without the schema. Null where there is none: the user's own SQL writes the user's own tables. */
export interface Places {
  /** What is live, and what it is called from now on. */
  readonly live: string | null
  readonly kept: string | null
  /** What is to be live, and what it is called from now on. */
  readonly next: string | null
  readonly taken: string | null
}

interface ViewRow {
  readonly name: string
  readonly definition: string
}

interface GrantRow {
  readonly grantee: string
  readonly privilege: string
  readonly is_grantable: boolean
}

/**
 * Two tables change places by their names. Views follow the table they were made over and not its name, and rights belong to the table:
 * so views of users are made anew over the name, and whoever may read the one may read the other.
 */
export async function renameTables(db: Database, run: Query, { live, kept, next, taken }: Places): Promise<void> {
  const tables = [live, next].flatMap((name) => (name === null ? [] : db.table(name)))
  if (tables.length === 0) return
  await run(`LOCK TABLE ${tables.join(', ')} IN ACCESS EXCLUSIVE MODE`)
  const views = live === null || taken === null ? [] : await run<ViewRow>(viewsSql, [db.table(live)])
  const grants = live === null || next === null ? [] : await run<GrantRow>(grantsSql, [db.table(live)])
  for (const { grantee, privilege, is_grantable } of grants) {
    const option = is_grantable ? ' WITH GRANT OPTION' : ''
    await run(`GRANT ${privilege} ON ${db.table(next as string)} TO ${grantee}${option}`)
  }
  if (live !== null && kept !== null) await run(`ALTER TABLE ${db.table(live)} RENAME TO ${quote(kept)}`)
  if (next !== null && taken !== null) await run(`ALTER TABLE ${db.table(next)} RENAME TO ${quote(taken)}`)
  for (const { name, definition } of views) await run(`CREATE OR REPLACE VIEW ${name} AS ${definition}`)
}

// Names and privileges come from the catalog, which quotes them.
const viewsSql = fresh(`
  SELECT DISTINCT v.oid::regclass::text AS name, pg_get_viewdef(v.oid) AS definition
  FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid JOIN pg_class AS v ON v.oid = r.ev_class
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $1::regclass
    AND v.relkind = 'v'`)

const grantsSql = fresh(`
  SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee, a.privilege_type AS privilege,
    a.is_grantable
  FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS a WHERE c.oid = $1::regclass AND a.grantee <> c.relowner`)
