import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { accountForServers, type Version } from '../postgres/binaries.ts'
import { type Server, startServer } from '../postgres/server.ts'
import { type Disk, mountDisk } from './disk.ts'
import { createProxy, type Proxy } from './proxy.ts'

/** The engines have the rights that `rolesSql` gives, and the writers have the same under a name of their own. */
export const roles = { engine: 'chaos_engine', writer: 'chaos_writer' } as const
type Role = (typeof roles)[keyof typeof roles]

/** What all rounds of a run stand on: a server, a disk for its tables, and the ways to it. */
export interface Ground extends AsyncDisposable {
  readonly server: Server
  readonly disk: Disk | { readonly missing: string }
  /** One for each engine. */
  readonly engineProxies: readonly Proxy[]
  readonly writerProxy: Proxy
  /** How a role reaches a database through a proxy. */
  url(proxy: Proxy, role: Role, database: string): string
}

const settings = { max_wal_size: '256MB', log_min_messages: 'fatal' }

export async function prepareGround(engines: number, version: Version): Promise<Ground> {
  const stack = new AsyncDisposableStack()
  try {
    const disk = await mountDisk(await accountForServers())
    if (!('missing' in disk)) stack.use(disk)
    const server = stack.use(await startServer({ version, inMemory: true, settings }))
    const password = randomUUID()
    await setUp(server, disk, password)
    // What a commit is to a proxy: a statement that moves a checkpoint, or the end of a transaction that did.
    const proxies = await Promise.all(
      Array.from({ length: engines + 1 }, async () => stack.use(await createProxy({ url: server.url, marker }))),
    )
    return {
      server,
      disk,
      engineProxies: proxies.slice(1),
      writerProxy: proxies[0] as Proxy,
      url: (proxy, role, database) => {
        const url = new URL(proxy.url)
        ;[url.username, url.password, url.pathname] = [role, password, database]
        return url.href
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

const marker = /^\s*commit\b|update[^;]*holdfast_partitions[^;]*\bposition\s*=/i

async function setUp(server: Server, disk: Ground['disk'], password: string): Promise<void> {
  const client = new Client({ connectionString: server.url })
  await client.connect()
  try {
    await client.query(`CREATE ROLE ${roles.engine} LOGIN PASSWORD '${password}';
      CREATE ROLE ${roles.writer} LOGIN PASSWORD '${password}' IN ROLE ${roles.engine}`)
    if (!('missing' in disk)) await client.query(`CREATE TABLESPACE small LOCATION '${disk.folder}'`)
  } finally {
    await client.end()
  }
}
