import type { RowChange } from '../../subscription/subscription-store.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import { exactTypes } from '../connection/driver.ts'
import type { Query } from '../connection/statement.ts'

/** A table that the transaction has written to, or may have. */
interface WrittenTable {
  /** Quoted, with its schema. */
  readonly name: string
  /** For display: without a schema that is in the search path. */
  readonly told: string
  /** The columns of its primary key, as JSON; empty if it has none. */
  readonly key: string
  /** Whether rows may have been deleted. */
  readonly hasDeleted: boolean
  /** It was created, truncated or altered: no other transaction can read it until this one ends. */
  readonly isLocked: boolean
}

interface Image {
  readonly values: Readonly<Record<string, unknown>>
  /** The row and its key as JSON; equal for equal content. */
  readonly text: string
  readonly key: string | null
}

/** The result is for display. */
const mostRows = 1_000

/**
 * The user's rows that a transaction has changed, before and after. `inside` is in that transaction, with the id `number`. Other
 * connections still see the earlier rows, so these are read on another connection: a written row is visible inside and not
 * outside, and a deleted row the other way round. Candidate rows are found by the transaction ids in xmin and xmax.
 */
export async function rowChanges(db: Database, inside: Query, number: string): Promise<RowChange[]> {
  const tables = await inside<WrittenTable>(writtenSql, [db.schema])
  if (tables.length === 0) return []
  const client = await db.connect()
  let isReusable = false
  try {
    const outside: Query = async (statement, values = []) => rowsOf(await client.query(queryOf(statement, values)))
    const changes: RowChange[] = []
    for (const table of tables) changes.push(...(await changesOf(table, inside, outside, number)))
    isReusable = true
    return changes
  } finally {
    client.release(!isReusable)
  }
}

// Written tables are locked until the transaction ends. Temporary tables are ignored.
const writtenSql = `
  SELECT format('%I.%I', n.nspname, c.relname) AS name, c.oid::regclass::text AS told,
    coalesce((
      SELECT json_agg(a.attname ORDER BY a.attnum) FROM pg_index AS i
      JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
      WHERE i.indrelid = c.oid AND i.indisprimary), '[]') AS key,
    NOT current_setting('track_counts')::boolean OR pg_stat_get_xact_tuples_deleted(c.oid) > 0 AS "hasDeleted",
    bool_or(l.mode = 'AccessExclusiveLock') AS "isLocked"
  FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
    AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    AND NOT (n.nspname = $1 AND c.relname LIKE 'holdfast\\_%')
  GROUP BY c.oid, c.relname, n.nspname ORDER BY name`

async function changesOf(table: WrittenTable, inside: Query, outside: Query, number: string): Promise<RowChange[]> {
  const key = (JSON.parse(table.key) as string[]).map((name) => new KeyColumn(name))
  const after = await writtenRows(table, key, inside, outside, number)
  const before = table.isLocked ? [] : await replacedRows(table, key, after, outside)
  if (!table.isLocked && (key.length === 0 || table.hasDeleted)) {
    const known = new Set(before.map((image) => image.key))
    const gone = await goneRows(table, key, inside, outside)
    before.push(...gone.filter((image) => image.key === null || !known.has(image.key)))
  }
  return paired(table.told, before, after)
}

function paired(table: string, before: readonly Image[], after: readonly Image[]): RowChange[] {
  const byKey = new Map(before.map((image) => [image.key ?? image, image]))
  const changes: RowChange[] = []
  for (const image of after) {
    const was = image.key === null ? undefined : byKey.get(image.key)
    byKey.delete(image.key ?? image)
    if (was?.text !== image.text) changes.push({ table, before: was?.values, after: image.values })
  }
  for (const { values } of byKey.values()) changes.push({ table, before: values, after: undefined })
  return changes.slice(0, mostRows)
}

/** Rows with a transaction id from `number` on; each savepoint has its own. Rows only store the lower half of the id. */
async function writtenRows(
  table: WrittenTable,
  key: readonly KeyColumn[],
  inside: Query,
  outside: Query,
  number: string,
): Promise<Image[]> {
  const [recent] = await inside<{ places: string | null }>(
    `SELECT array_agg(t.ctid)::text AS places FROM ONLY ${table.name} AS t
     WHERE ((t.xmin::text::bigint - $1::bigint) & 4294967295) < 2147483648`,
    [number],
  )
  const places = table.isLocked ? recent?.places : await unseen(outside, table, recent?.places)
  return imagesOf(inside, table, key, `WHERE t.ctid = ANY ($1::tid[]) LIMIT ${mostRows}`, [places ?? '{}'])
}

/** The earlier rows with the same key. */
async function replacedRows(
  table: WrittenTable,
  key: readonly KeyColumn[],
  after: readonly Image[],
  outside: Query,
): Promise<Image[]> {
  if (key.length === 0 || after.length === 0) return []
  const same = key.map(({ quoted }) => `t.${quoted} = k.${quoted}`).join(' AND ')
  const from = `JOIN json_populate_recordset(NULL::${table.name}, $1::json) AS k ON ${same}`
  return imagesOf(outside, table, key, from, [`[${after.map((image) => image.key).join(',')}]`])
}

/** A transaction that updates, deletes or locks a row sets its xmax, to a transaction id or a multixact id. */
async function goneRows(
  table: WrittenTable,
  key: readonly KeyColumn[],
  inside: Query,
  outside: Query,
): Promise<Image[]> {
  const [marked] = await outside<{ places: string | null }>(
    `SELECT array_agg(t.ctid)::text AS places FROM ONLY ${table.name} AS t WHERE t.xmax <> '0'`,
  )
  const places = await unseen(inside, table, marked?.places)
  return imagesOf(outside, table, key, `WHERE t.ctid = ANY ($1::tid[]) LIMIT ${mostRows}`, [places ?? '{}'])
}

/** The places in a table at which no row is visible. */
async function unseen(
  query: Query,
  { name }: WrittenTable,
  places: string | null | undefined,
): Promise<string | null | undefined> {
  const [row] = await query<{ places: string | null }>(
    `SELECT array_agg(p.place)::text AS places FROM unnest($1::tid[]) AS p (place)
     WHERE NOT EXISTS (SELECT FROM ONLY ${name} AS t WHERE t.ctid = p.place)`,
    [places ?? '{}'],
  )
  return row?.places
}

async function imagesOf(
  query: Query,
  { name }: WrittenTable,
  key: readonly KeyColumn[],
  rest: string,
  values: readonly unknown[],
): Promise<Image[]> {
  const fields = key.map(({ literal, quoted }) => `${literal}, t.${quoted}`).join(', ')
  const keyOf = key.length > 0 ? `json_build_object(${fields})::text` : 'NULL::text'
  const statement = {
    name: '',
    text: `SELECT ${keyOf} AS " key", row_to_json(t)::text AS " text", t.* FROM ONLY ${name} AS t ${rest}`,
    types: exactTypes,
  }
  const rows = await query<{ ' key': string | null; ' text': string; [column: string]: unknown }>(statement, values)
  return rows.map(({ ' key': found, ' text': text, ...own }) => ({ key: found, text, values: own }))
}

/** A column with any name that PostgreSQL allows. */
class KeyColumn {
  readonly quoted: string
  readonly literal: string

  constructor(name: string) {
    this.quoted = `"${name.replaceAll('"', '""')}"`
    this.literal = `'${name.replaceAll("'", "''")}'`
  }
}
