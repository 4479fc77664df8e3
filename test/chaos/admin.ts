import { setTimeout } from 'node:timers/promises'
import { Pool } from 'pg'

/** A way to the database past all proxies, with every right. */
export interface Admin extends AsyncDisposable {
  query<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** All of them see the same moment. */
  snapshot<T>(read: (query: Admin['query']) => Promise<T>): Promise<T>
}

const tries = 20

export function createAdmin(url: string): Admin {
  const pool = new Pool({ connectionString: url, max: 2 })
  pool.on('error', () => undefined)

  /** The server was just restarted, and a connection may not know it yet. */
  async function persist<T>(work: () => Promise<T>): Promise<T> {
    for (let i = 1; ; i++) {
      try {
        return await work()
      } catch (error) {
        if (i === tries) throw error
        await setTimeout(50)
      }
    }
  }

  return {
    query: <Row extends object>(sql: string, values: readonly unknown[] = []) =>
      persist(async () => (await pool.query<Row>(sql, [...values])).rows),
    snapshot: (read) =>
      persist(async () => {
        const client = await pool.connect()
        try {
          await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
          const result = await read(
            async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
              (await client.query<Row>(sql, [...values])).rows,
          )
          await client.query('COMMIT')
          client.release()
          return result
        } catch (error) {
          client.release(true)
          throw error
        }
      }),
    [Symbol.asyncDispose]: () => pool.end(),
  }
}
