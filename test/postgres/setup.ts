import { Client } from 'pg'
import type { TestProject } from 'vitest/node'
import { type Server, startServer } from './server.ts'
import { makeTemplates, type Templates } from './template.ts'

/** A server that tests can have, or why they can't. */
export type Offer = { readonly name: string; readonly url: string; readonly templates: Templates } | Missing

type Missing = { readonly name: string; readonly missing: string }
type Found = { readonly name: string; readonly url: string }

declare module 'vitest' {
  interface ProvidedContext {
    postgres: readonly Offer[]
  }
}

// Nobody pulls the plug in the middle of a test run, and a process that dies loses nothing that it gave to the kernel.
const settings = { fsync: 'off' }

/** Starts the servers that all test files share, and makes their templates. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const running: Server[] = []
  const embedded = async (version: 'newest' | 'oldest') => {
    const server = await startServer({ version, settings, inMemory: true })
    running.push(server)
    return server.url
  }
  const dropTemplates: (() => Promise<void>)[] = []
  const stop = async () => {
    await Promise.all(dropTemplates.map((drop) => drop()))
    await Promise.all(running.map((server) => server[Symbol.asyncDispose]()))
  }
  const withTemplates = async (found: Found | Missing): Promise<Offer> => {
    if ('missing' in found) return found
    const { templates, drop } = await makeTemplates(found)
    // The servers of a run take theirs along.
    if (!running.some(({ url }) => url === found.url)) dropTemplates.push(drop)
    return { ...found, templates }
  }

  const given = process.env.DATABASE_URL
  const offers = await Promise.all([
    offer('PostgreSQL, newest', () => embedded('newest')).then(withTemplates),
    offer('PostgreSQL, oldest', () => embedded('oldest')).then(withTemplates),
    ...(given
      ? [offer('PostgreSQL of DATABASE_URL', () => Promise.resolve(given), ' (DATABASE_URL)').then(withTemplates)]
      : []),
  ])
  const missing = offers.flatMap((one) => ('missing' in one ? [`${one.name}: ${one.missing}`] : []))
  if (process.env.CI === 'true' && missing.length > 0) {
    await stop()
    throw new Error(`With CI=true no server may be missing. ${missing.join('; ')}`)
  }
  for (const line of missing) console.warn(`Tests are skipped. ${line}`)
  provide('postgres', offers)
  return stop
}

/** Never fails: a server that can't be had is an offer too. */
export async function offer(name: string, getUrl: () => Promise<string>, remark = ''): Promise<Found | Missing> {
  try {
    const url = await getUrl()
    const { version, role, mayCreate } = await ask(url)
    if (!mayCreate)
      return { name, missing: `its role ${role} may not create databases; to allow it: ALTER ROLE … CREATEDB` }
    return { name: `PostgreSQL ${version}${remark}`, url }
  } catch (error) {
    return { name, missing: error instanceof Error ? error.message || error.name : String(error) }
  }
}

async function ask(url: string) {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query<{ version: string; role: string; mayCreate: boolean }>(`
      SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
             rolname AS role,
             rolsuper OR rolcreatedb AS "mayCreate"
        FROM pg_roles
       WHERE rolname = current_user`)
    return rows[0] as (typeof rows)[0]
  } finally {
    await client.end()
  }
}
