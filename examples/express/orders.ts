// The tables of the app and the log of events are in one file, so one transaction can write both.
import { DatabaseSync } from 'node:sqlite'
import { createLog, type Store } from 'holdfast'
import { shop } from './shop.ts'

export interface Order {
  readonly id: string
  readonly email: string
  readonly total: number
}

export function createOrders(store: Store, file: string) {
  const log = createLog({ store, events: shop })
  const db = new DatabaseSync(file, { timeout: 5_000 })
  db.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, email TEXT NOT NULL, total INTEGER NOT NULL)')
  let last: Promise<unknown> = Promise.resolve()

  // #region place
  /** Commits the row and its event together. Returns false if the order was placed before. */
  async function place({ id, email, total }: Order): Promise<boolean> {
    return transaction(async (tx) => {
      const placed = { id: `${id}-placed`, type: 'OrderPlaced', data: { email, total } } as const
      const { repeated } = await log.append(id, [placed], { tx })
      if (repeated) return false
      tx.prepare('INSERT INTO orders (id, email, total) VALUES (?, ?, ?)').run(id, email, total)
      return true
    })
  }

  /** One connection has one transaction at a time, so requests take turns. */
  function transaction<T>(work: (tx: DatabaseSync) => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      db.exec('BEGIN IMMEDIATE')
      try {
        const result = await work(db)
        db.exec('COMMIT')
        return result
      } catch (error) {
        db.exec('ROLLBACK')
        throw error
      }
    })
    last = turn.catch(() => undefined)
    return turn
  }
  // #endregion

  const list = () => db.prepare('SELECT id, email, total FROM orders ORDER BY id').all()
  return { place, list, close: () => db.close() }
}
