import type * as NodeSqlite from 'node:sqlite'
import { HoldfastError } from '../errors.ts'

const needed = 24

/**
 * Node's SQLite, or a refusal that says what is missing. Importing `node:sqlite` at the top would fail on an older Node before
 * a word could be said.
 */
export function nodeSqlite(
  version: string = process.versions.node,
  load: ((id: string) => unknown) | undefined = process.getBuiltinModule?.bind(process),
): typeof NodeSqlite {
  const sqlite = load?.('node:sqlite') as typeof NodeSqlite | undefined
  if (Number.parseInt(version, 10) >= needed && sqlite) return sqlite
  throw new HoldfastError(
    'NODE_TOO_OLD',
    `Holdfast needs Node ${needed} or newer for its embedded SQLite; this is Node ${version}.`,
    {
      hint: `Install Node ${needed}, or add it to your project with: npm install --save-dev node@${needed}`,
    },
  )
}
