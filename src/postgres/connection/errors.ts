import { HoldfastError, StoreError } from '../../errors.ts'
import { isHandshakeFault } from './handshake.ts'

/**
 * The meaning of an error of PostgreSQL or of the connection, by its code. `again`: the statement can be retried at once, nothing
 * was done. `lost`: the connection is gone, and the outcome of the last statement is unknown. `down`: refused for a temporary
 * reason in the server. `denied`: the server does not accept the role, its password or the database, or the connection can't be set up. `refused`: the statement is
 * wrong or not allowed.
 */
export type Trouble = 'again' | 'lost' | 'down' | 'denied' | 'corrupt' | 'refused'

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
  ['58', 'down'], // system error: I/O errors of the server
  ['28', 'denied'], // invalid authorization
  ['3D', 'denied'], // no such database
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

/** With these codes no connection was made. */
const unreached = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'EACCES'])

/** The statements of the store name only what its migrations create. */
const missing = new Set(['3F000', '42P01', '42703', '42883'])

const insufficientPrivilege = '42501'

export const migrateHint = 'run: holdfast migrate'

export function isSqlState(code: unknown): code is string {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !network.has(code)
}

/** Undefined for an error that comes neither from PostgreSQL nor from the network: an error of user code. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if (isHandshakeFault(error)) return 'denied'
  const { code, errors } = error as { code?: unknown; errors?: unknown[] }
  if (isSqlState(code) && 'severity' in error) return byState.get(code) ?? byClass.get(code.slice(0, 2)) ?? 'refused'
  if (typeof code === 'string' && network.has(code)) return 'lost'
  // Several addresses were tried.
  if (error instanceof AggregateError && errors?.length) return troubleOf(errors[0])
  return undefined
}

/**
 * Converts an error of the store's own statements for its caller. A driver error without a code (when the connection ends during a query)
 * must be about the connection: these statements can't fail otherwise.
 */
export function storeError(cause: unknown, where: string): unknown {
  if (cause instanceof HoldfastError) return cause
  const trouble = troubleOf(cause) ?? 'lost'
  const { code } = cause as { code?: unknown }
  const message = messageOf(cause)
  keepPrivate(cause)
  const what = isSqlState(code) ? `${message} (${code})` : message
  switch (trouble) {
    case 'again':
      return new StoreError('STORE_BUSY', `${where} is busy: ${what}.`, {
        cause,
        hint: 'Try again; the engine retries.',
      })
    case 'lost':
      if (typeof code === 'string' && unreached.has(code))
        return new StoreError('STORE_UNAVAILABLE', `${where} can't be reached: ${what}.`, {
          cause,
          hint: 'Is the server running, and are host and port right?',
        })
      return new StoreError('STORE_UNAVAILABLE', `The connection to ${where} was lost: ${what}.`, {
        cause,
        hint: 'It is opened again when the server answers.',
      })
    case 'down':
      return new StoreError('STORE_UNAVAILABLE', `${where} is unavailable: ${what}.`, {
        cause,
        hint: 'Nothing was lost; fix the server.',
      })
    case 'denied':
      if (isHandshakeFault(cause))
        return new StoreError('STORE_MISCONFIGURED', `The connection to ${where} can't be set up: ${what}.`, {
          cause,
          hint: 'Give the password (in the connection, or as PGPASSWORD) and the sslmode that the server needs; `holdfast config` shows where the connection comes from.',
        })
      return new StoreError('STORE_MISCONFIGURED', `${where} rejected the connection: ${what}.`, {
        cause,
        hint: 'Correct the role, the password or the database of the connection; `holdfast config` shows where it comes from.',
      })
    case 'corrupt':
      return new StoreError('STORE_CORRUPT', `${where} reports damaged data: ${what}.`, {
        cause,
        hint: 'Restore it from a backup.',
      })
    case 'refused':
      return new StoreError('STORE_REFUSED', `${where} refused a statement: ${what}.`, {
        cause,
        ...hintOf(code),
      })
    default:
      return trouble satisfies never
  }
}

function hintOf(code: unknown): { readonly hint?: string } {
  if (typeof code !== 'string') return {}
  if (missing.has(code)) return { hint: `The schema is missing or not up to date; ${migrateHint}` }
  if (code === insufficientPrivilege)
    return {
      hint: 'Grant the role of the connection what it lacks, as the owner of the schema (`rolesSql` of holdfast/postgres has the statements), or connect as another role.',
    }
  return {}
}

/** If several addresses were tried, the error itself has no message. */
function messageOf(cause: unknown): string {
  const { message = String(cause) } = cause as { message?: string }
  if (message !== '' || !(cause instanceof AggregateError)) return message
  return cause.errors.map(messageOf).join('; ')
}

// `Key (email)=(ada@example.com) already exists.`, and the statement with its parameters.
const withValues = ['detail', 'where', 'internalQuery', 'parameters']

/** Hides fields with event values from loggers. They stay readable for programs. */
function keepPrivate(error: unknown): void {
  if (typeof error !== 'object' || error === null || Object.isFrozen(error)) return
  for (const name of withValues) {
    const known = Object.getOwnPropertyDescriptor(error, name)
    if (known?.configurable) Object.defineProperty(error, name, { ...known, enumerable: false })
  }
}

// Query builders wrap driver errors, and so does the store.
const deepestCause = 8

/** The error of PostgreSQL inside a thrown value. */
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
