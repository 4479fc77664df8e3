import type * as NodeSqlite from 'node:sqlite'
import { HoldfastError } from '../../errors.ts'

const needed = 24

/**
 * The SQLite of Node, or an error that names the missing version. A static import of `node:sqlite` would fail on an older Node
 * without a useful message.
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
