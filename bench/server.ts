import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { startServer } from '../test/postgres/server.ts'
import type { Settings } from './benchmark.ts'

export interface BenchServer extends AsyncDisposable {
  /** Of a database from which others may be made. */
  readonly url: string
  readonly version: string
}

/** The server that was named, or one of its own with PostgreSQL's default settings, fsync among them. */
export async function useServer({ url, dir, progress }: Settings): Promise<BenchServer> {
  if (url !== undefined) {
    await using client = await connect(url)
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version')
    return { url, version: rows[0]?.server_version ?? 'unknown', [Symbol.asyncDispose]: async () => undefined }
  }
  const folder = dir === undefined ? undefined : await mkdtemp(join(dir, 'holdfast-bench-'))
  const server = await startServer({ version: 'newest', ...(folder !== undefined && { folder }) })
  progress(`started PostgreSQL ${server.version}`)
  return {
    url: server.url,
    version: server.version,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]()
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}

export async function connect(url: string): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString: url })
  // A pending query rejects with the same error; without a listener it would end the process.
  client.on('error', () => undefined)
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}
