import { HoldfastError, StoreError } from '../errors.ts'

// https://sqlite.org/rescode.html: the low byte of an extended code is the primary code.
const primary = { busy: 5, locked: 6, readonly: 8, ioerr: 10, corrupt: 11, full: 13, cantopen: 14, notadb: 26 } as const

/** Says what an error of SQLite means to us, by its code. What is not SQLite's goes through as it is. */
export function storeError(cause: unknown, file: string): unknown {
  if (cause instanceof HoldfastError) return cause
  const { code, errcode, message } = cause as { code?: unknown; errcode?: unknown; message?: string }
  if (code === 'ERR_INVALID_STATE') return new StoreError('STORE_CLOSED', `The store ${file} is closed.`, { cause })
  if (code !== 'ERR_SQLITE_ERROR' || typeof errcode !== 'number') return cause
  switch (errcode & 0xff) {
    case primary.busy:
    case primary.locked:
      return new StoreError('STORE_BUSY', `${file} is locked by another process.`, {
        cause,
        hint: 'It is tried again.',
      })
    case primary.full:
      return new StoreError('STORE_UNAVAILABLE', `The disk of ${file} is full.`, {
        cause,
        hint: 'Make room; nothing was lost.',
      })
    case primary.readonly:
      return new StoreError('STORE_UNAVAILABLE', `${file} can't be written.`, {
        cause,
        hint: 'Check its permissions and those of its folder.',
      })
    case primary.cantopen:
      return new StoreError('STORE_UNAVAILABLE', `${file} can't be opened.`, {
        cause,
        hint: 'Check that its folder exists and may be written.',
      })
    case primary.ioerr:
      return new StoreError('STORE_UNAVAILABLE', `The disk of ${file} reports an error (${message}).`, { cause })
    case primary.corrupt:
    case primary.notadb:
      return new StoreError('STORE_CORRUPT', `${file} is damaged or is no SQLite database (${message}).`, {
        cause,
        hint: 'Restore it from a backup. Nothing is written to it meanwhile.',
      })
    default:
      return new StoreError('STORE_REFUSED', `SQLite refused a statement on ${file}: ${message}.`, { cause })
  }
}

export function isBusy(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'STORE_BUSY'
}
