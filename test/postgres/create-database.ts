import { randomBytes } from 'node:crypto'
import { Client } from 'pg'

export interface Database extends AsyncDisposable {
  readonly url: string
  readonly name: string
}

/**
 * A new database on the server of this URL, empty by default; dropped at the end, with every session that is still open in it.
 *
 * FILE_COPY, because it takes about half the time of the default where nothing waits for a disk: 12 ms against 23 for an empty one, and 180 against 330
 * for a template with 64 stores.
 */
export async function createDatabase(
  server: { readonly url: string },
  name = `holdfast_test_${randomBytes(6).toString('hex')}`,
  // No session can be open in template0, which would make this fail, nor can one have put something into it.
  template = 'template0',
): Promise<Database> {
  await execute(server.url, (quote) => `CREATE DATABASE ${quote(name)} TEMPLATE ${quote(template)} STRATEGY FILE_COPY`)
  const url = new URL(server.url)
  url.pathname = `/${encodeURIComponent(name)}`
  return {
    url: url.href,
    name,
    [Symbol.asyncDispose]: () => execute(server.url, (quote) => `DROP DATABASE IF EXISTS ${quote(name)} WITH (FORCE)`),
  }
}

async function execute(url: string, sql: (quote: (name: string) => string) => string): Promise<void> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query(sql((name) => client.escapeIdentifier(name)))
  } finally {
    await client.end()
  }
}
