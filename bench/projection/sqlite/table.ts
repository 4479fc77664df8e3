import { DatabaseSync } from 'node:sqlite'
import { pragmas } from '../../../src/sqlite/connection/database.ts'

/** The store's file, without the store, and with its pragmas: what is compared must be as durable, and have the same cache. */
export function openFile(file: string): DatabaseSync {
  const db = new DatabaseSync(file)
  db.exec(pragmas)
  return db
}

/** The table as the engine makes it for this projection, and the smallest checkpoint there can be. */
export function createTable(db: DatabaseSync): void {
  db.exec(`
    CREATE TABLE balances (
      key TEXT PRIMARY KEY, version INTEGER NOT NULL, position INTEGER NOT NULL, data TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE bench_checkpoint (name TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO bench_checkpoint VALUES ('balances', 0);`)
}

export const moveCheckpointSql = "UPDATE bench_checkpoint SET position = ? WHERE name = 'balances' AND position = ?"
