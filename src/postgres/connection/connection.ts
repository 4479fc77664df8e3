import { HoldfastError } from '../../errors.ts'
import type { PgConfig } from './driver.ts'

// A user's transaction holds one, and the work that it waits for needs another.
const fewest = 2
const most = 1_000

/** The configuration for pg. It is never displayed: it contains a password. */
export function toConfig(connection: unknown): PgConfig {
  if (typeof connection === 'object' && connection !== null && !Array.isArray(connection)) return { ...connection }
  if (typeof connection !== 'string') throw badConnection(`of type ${typeof connection}`)
  let url: URL
  try {
    url = new URL(connection)
  } catch {
    throw badConnection('not a URL')
  }
  if (!['postgres:', 'postgresql:'].includes(url.protocol))
    throw badConnection(`a URL that starts with ${url.protocol}`)
  // Otherwise pg would let them replace ours.
  const options = url.searchParams.get('options')
  if (options === null) return { connectionString: connection }
  url.searchParams.delete('options')
  return { connectionString: url.href, options }
}

export function checkConnections(connections: unknown): number {
  const isCount = Number.isSafeInteger(connections)
  if (isCount && (connections as number) >= fewest && (connections as number) <= most) return connections as number
  throw new HoldfastError('OPTION_INVALID', `connections is ${String(connections)}.`, {
    hint: `Give a whole number from ${fewest} to ${most}.`,
  })
}

function badConnection(what: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The connection of a PostgreSQL store is ${what}.`, {
    hint: 'Give postgres://user:password@host:port/database, with special characters encoded, or a configuration object of pg.',
  })
}
