import { HoldfastError, StoreError } from '../errors.ts'

/**
 * What an error of PostgreSQL or of the way to it means, by its code. `again`: the statement can be tried at once, nothing was
 * done. `lost`: the connection is gone, and whether the last statement was done is not known. `down`: it was refused for a
 * reason that lies in the server and passes. `refused`: the statement itself is wrong, or not allowed.
 */
export type Trouble = 'again' | 'lost' | 'down' | 'corrupt' | 'refused'

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const byState = new Map<string, Trouble>([
  ['40001', 'again'], // serialization_failure
  ['40P01', 'again'], // deadlock_detected
  ['55P03', 'again'], // lock_not_available: lock_timeout
  ['57014', 'again'], // query_canceled: statement_timeout
  ['25P03', 'lost'], // idle_in_transaction_session_timeout
  ['25P04', 'lost'], // transaction_timeout
  ['57P01', 'lost'], // admin_shutdown
  ['57P02', 'lost'], // crash_shutdown
  ['57P03', 'down'], // cannot_connect_now
  ['57P05', 'lost'], // idle_session_timeout
  ['25006', 'down'], // read_only_sql_transaction
  ['55000', 'refused'], // object_not_in_prerequisite_state
  ['XX001', 'corrupt'], // data_corrupted
  ['XX002', 'corrupt'], // index_corrupted
])

const byClass = new Map<string, Trouble>([
  ['08', 'lost'], // connection exception
  ['53', 'down'], // insufficient resources: disk full, out of memory, too many connections
  ['58', 'down'], // system error: the server's own input and output
  ['28', 'down'], // invalid authorization: a password that is being changed, a server that is being set up
  ['3D', 'down'], // no such database (yet)
])

const network = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
  'EACCES',
])

export function isSqlState(code: unknown): code is string {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !network.has(code)
}

/** Undefined for what comes neither from PostgreSQL nor from the network: somebody's own mistake. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, errors } = error as { code?: unknown; errors?: unknown[] }
  if (isSqlState(code) && 'severity' in error) return byState.get(code) ?? byClass.get(code.slice(0, 2)) ?? 'refused'
  if (typeof code === 'string' && network.has(code)) return 'lost'
  // Several addresses were tried.
  if (error instanceof AggregateError && errors?.length) return troubleOf(errors[0])
  return undefined
}

/**
 * An error of our own statements, for whoever called the store. What a driver throws without any code (it does so when the
 * connection ends under a query) can only be about the connection: our statements have no other way to fail.
 */
export function storeError(cause: unknown, where: string): unknown {
  if (cause instanceof HoldfastError) return cause
  const trouble = troubleOf(cause) ?? 'lost'
  const { message = String(cause), code } = cause as { message?: string; code?: unknown }
  const what = isSqlState(code) ? `${message} (${code})` : message
  switch (trouble) {
    case 'again':
      return new StoreError('STORE_BUSY', `${where} is busy: ${what}.`, { cause, hint: 'Try again; the engine does.' })
    case 'lost':
      return new StoreError('STORE_UNAVAILABLE', `The connection to ${where} was lost: ${what}.`, {
        cause,
        hint: 'It is made anew when the server answers.',
      })
    case 'down':
      return new StoreError('STORE_UNAVAILABLE', `${where} can't be used now: ${what}.`, {
        cause,
        hint: 'Nothing was lost; mend the server.',
      })
    case 'corrupt':
      return new StoreError('STORE_CORRUPT', `${where} reports damaged data: ${what}.`, {
        cause,
        hint: 'Restore it from a backup.',
      })
    case 'refused':
      return new StoreError('STORE_REFUSED', `${where} refused a statement: ${what}.`, { cause })
    default:
      return trouble satisfies never
  }
}

// Query builders wrap what the driver throws, and we do.
const deepestCause = 8

/** The error of PostgreSQL itself in what was thrown. */
export function serverErrorOf(error: unknown): ServerError | undefined {
  let cause = error
  for (let depth = 0; depth < deepestCause && cause instanceof Error; depth++) {
    if ('severity' in cause && 'code' in cause && isSqlState(cause.code)) return cause as ServerError
    cause = cause.cause
  }
  return undefined
}

export interface ServerError extends Error {
  readonly code: string
  readonly schema?: string
  readonly table?: string
}

export function sqlStateOf(error: unknown): string | undefined {
  return serverErrorOf(error)?.code
}
