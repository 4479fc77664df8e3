import { randomBytes } from 'node:crypto'
import { Client } from 'pg'

export interface Database extends AsyncDisposable {
  readonly url: string
  readonly name: string
}

/** A fresh, empty database on the server of this URL; dropped at the end, whoever is still connected to it. */
export async function createDatabase(
  server: { readonly url: string },
  name = `holdfast_test_${randomBytes(6).toString('hex')}`,
): Promise<Database> {
  // template0, because nobody can be connected to it, which would make this fail, or have put something into it.
  await execute(server.url, (quote) => `CREATE DATABASE ${quote(name)} TEMPLATE template0`)
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
