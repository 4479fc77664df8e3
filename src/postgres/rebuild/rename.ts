import type { Database } from '../connection/database.ts'
import { quote } from '../connection/identifier.ts'
import { fresh, type Query } from '../connection/statement.ts'

/** Table names without the schema. Null if there is none: a SQL projection writes the user's own tables. */
export interface Places {
  /** The live table, and its new name. */
  readonly live: string | null
  readonly kept: string | null
  /** The next table, and its new name. */
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
 * Exchanges the names of two tables. A view refers to a table and not to its name, and permissions belong to the table: so the
 * user's views are created again, and the permissions are copied.
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
