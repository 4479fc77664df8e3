import { createHash } from 'node:crypto'
import { type Counts, createEngine, type Verification } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { answer } from '../child.ts'
import { balances } from './bank.ts'
import { openFile } from './table.ts'

/** What to do with a file after it was measured: verify what the engine left, or compare the table with the log. */
export type InspectTask =
  | { readonly what: 'verify'; readonly file: string }
  | { readonly what: 'checksum'; readonly file: string }
  | { readonly what: 'expected'; readonly file: string; readonly events: number }

export interface Inspection {
  /** Of key, version, position and data of every row, in order of key. */
  readonly checksum: string
  readonly counts?: Counts
}

const tableSql = 'SELECT key, version, position, data FROM balances ORDER BY key'
// Written another way than the statement that is measured, so that the two don't share a mistake.
const expectedSql = `
  SELECT key, max(version) AS version, max(position) AS position, json_object(
    'balance', sum(iif(type = 'FundsCredited', 1, -1) * (data ->> 'amount')),
    'movements', count(*)) AS data
  FROM holdfast_events WHERE position <= ? GROUP BY key ORDER BY key`

async function inspect(task: InspectTask): Promise<Inspection> {
  const { file } = task
  switch (task.what) {
    case 'verify':
      return { checksum: checksum(file, tableSql), counts: await verify(file) }
    case 'checksum':
      return { checksum: checksum(file, tableSql) }
    case 'expected':
      return { checksum: checksum(file, expectedSql, task.events) }
    default:
      return task satisfies never
  }
}

async function verify(file: string): Promise<Counts> {
  await using store = await createSqliteStore({ file })
  await using engine = createEngine({ store, subscriptions: [balances] })
  const found: Verification = await engine.verify(balances.name)
  if (!found.ok) throw new Error(`verify found ${found.differenceCount} differences`, { cause: found.differences[0] })
  return found.counts
}

function checksum(file: string, sql: string, ...values: number[]): string {
  using db = openFile(file)
  const hash = createHash('sha256')
  for (const { key, version, position, data } of db.prepare(sql).iterate(...values))
    hash.update(JSON.stringify([key, version, position, data]))
  return hash.digest('hex')
}

if (import.meta.main) await answer(inspect)
