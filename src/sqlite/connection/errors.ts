import { HoldfastError, StoreError } from '../../errors.ts'

// https://sqlite.org/rescode.html: the low byte of an extended code is the primary code.
const primary = {
  busy: 5,
  locked: 6,
  nomem: 7,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  constraint: 19,
  auth: 23,
  notadb: 26,
} as const

// `locked` is not included: it is a conflict of two statements on the same connection, caused by user code.
const storesFault: readonly number[] = [
  primary.busy,
  primary.nomem,
  primary.readonly,
  primary.ioerr,
  primary.corrupt,
  primary.full,
  primary.cantopen,
  primary.notadb,
]

// Query builders wrap driver errors.
const deepestCause = 8

/** Converts an error of SQLite by its code. Other errors are returned unchanged. */
export function storeError(cause: unknown, file: string): unknown {
  if (cause instanceof HoldfastError) return cause
  const { code, message } = fieldsOf(cause)
  if (code === 'ERR_INVALID_STATE') return new StoreError('STORE_CLOSED', `The store ${file} is closed.`, { cause })
  switch (primaryCode(cause)) {
    case undefined:
      return cause
    case primary.busy:
    case primary.locked:
      return new StoreError('STORE_BUSY', `${file} is locked by another process.`, {
        cause,
        hint: 'The operation is retried.',
      })
    case primary.full:
      return new StoreError('STORE_UNAVAILABLE', `The disk of ${file} is full.`, {
        cause,
        hint: 'Free some space; nothing was lost.',
      })
    case primary.readonly:
      return new StoreError('STORE_UNAVAILABLE', `${file} can't be written.`, {
        cause,
        hint: 'Check the permissions of the file and its folder.',
      })
    case primary.cantopen:
      return new StoreError('STORE_UNAVAILABLE', `${file} can't be opened.`, {
        cause,
        hint: 'Check that its folder exists and is writable.',
      })
    case primary.ioerr:
      return new StoreError('STORE_UNAVAILABLE', `The disk of ${file} reports an error (${message}).`, { cause })
    case primary.corrupt:
    case primary.notadb:
      return new StoreError('STORE_CORRUPT', `${file} is damaged or is not a SQLite database (${message}).`, {
        cause,
        hint: 'Restore it from a backup. Nothing is written to it until then.',
      })
    default:
      return new StoreError('STORE_REFUSED', `SQLite refused a statement on ${file}: ${message}.`, { cause })
  }
}

export function isBusy(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'STORE_BUSY'
}

/** A constraint is violated: a check, a unique index, a trigger that raises. */
export function isConstraint(error: unknown): boolean {
  return primaryCode(error) === primary.constraint
}

/** The store error behind a failed user statement, if no event is to blame. */
export function storeFault(error: unknown, file: string): StoreError | undefined {
  const found = findCause(error, (code) => storesFault.includes(code))
  return found === undefined ? undefined : (storeError(found, file) as StoreError)
}

/** Whether SQLite refused to prepare a statement because the authorizer denied it. */
export function isDenied(error: unknown): boolean {
  return findCause(error, (code) => code === primary.auth) !== undefined
}

function findCause(error: unknown, isMeant: (code: number) => boolean): unknown {
  let cause = error
  for (let depth = 0; depth < deepestCause && cause instanceof Error; depth++) {
    const code = primaryCode(cause)
    if (code !== undefined) return isMeant(code) ? cause : undefined
    cause = cause.cause
  }
  return undefined
}

function primaryCode(error: unknown): number | undefined {
  const { code, errcode } = fieldsOf(error)
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode & 0xff : undefined
}

// Any value can be thrown, also null.
function fieldsOf(error: unknown): { code?: unknown; errcode?: unknown; message?: string } {
  return error ?? {}
}
