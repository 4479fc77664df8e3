import type { Classified } from './classify.ts'
import type { FailureClass } from './failure.ts'
import { field } from './peek.ts'

/** https://www.postgresql.org/docs/current/errcodes-appendix.html, and other databases with SQLSTATE. */
export const sqlStates: Readonly<Record<string, FailureClass>> = {
  '25006': 'infrastructure', // read-only transaction: the server is not the primary
  '25P03': 'transient', // idle in a transaction for too long
  '25P04': 'transient', // the transaction took too long
  '40001': 'transient', // serialization failure
  '40003': 'transient', // whether the statement was completed is unknown
  '40P01': 'transient', // deadlock
  '55006': 'transient', // the object is in use
  '55P03': 'transient', // the lock is not available
  '57014': 'transient', // canceled: statement_timeout
  '57P05': 'transient', // idle for too long
  XX001: 'infrastructure', // damaged data
  XX002: 'infrastructure', // a damaged index
}

/** By prefix of the SQLSTATE, if the full code is not listed. */
export const sqlStateClasses: Readonly<Record<string, FailureClass>> = {
  '08': 'infrastructure', // connection
  '28': 'infrastructure', // authorization: a password is being changed, a server is being set up
  '3D': 'infrastructure', // no such database (yet)
  '53': 'infrastructure', // resources: disk full, out of memory, too many connections
  '57P': 'infrastructure', // shutting down, starting up
  '58': 'infrastructure', // I/O errors of the server
  F0: 'infrastructure', // configuration of the server
  '0A': 'permanent', // not supported
  '21': 'permanent', // cardinality
  '22': 'permanent', // data
  '23': 'permanent', // constraint violation
  '2F': 'permanent', // SQL routine
  '38': 'permanent', // external routine
  '39': 'permanent', // external routine
  '3F': 'permanent', // no such schema
  '42': 'permanent', // syntax, names, permissions
  '44': 'permanent', // with check option
  '54': 'permanent', // too complex
  P0: 'permanent', // PL/pgSQL: RAISE in user code
}

/** https://sqlite.org/rescode.html: the low byte of an extended code is the primary code. */
export const sqliteCodes: Readonly<Record<string, readonly [number, FailureClass]>> = {
  ERROR: [1, 'permanent'],
  BUSY: [5, 'transient'],
  LOCKED: [6, 'transient'],
  NOMEM: [7, 'infrastructure'],
  READONLY: [8, 'infrastructure'],
  INTERRUPT: [9, 'transient'],
  IOERR: [10, 'infrastructure'],
  CORRUPT: [11, 'infrastructure'],
  FULL: [13, 'infrastructure'],
  CANTOPEN: [14, 'infrastructure'],
  PROTOCOL: [15, 'transient'],
  SCHEMA: [17, 'transient'],
  TOOBIG: [18, 'permanent'],
  CONSTRAINT: [19, 'permanent'],
  MISMATCH: [20, 'permanent'],
  MISUSE: [21, 'permanent'],
  AUTH: [23, 'permanent'],
  RANGE: [25, 'permanent'],
  NOTADB: [26, 'infrastructure'],
}

/**
 * PostgreSQL and similar databases. EPERM and EBUSY also have five characters, so a code without further evidence is accepted
 * only if it is listed; otherwise the error must look like a database error.
 */
export function bySqlState(error: unknown): Classified | undefined {
  const code = field(error, 'code')
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) return undefined
  const looksLikeOne = typeof field(error, 'severity') === 'string' || typeof field(error, 'routine') === 'string'
  const exact = own(sqlStates, code)
  if (!exact && !looksLikeOne) return undefined
  return {
    class: exact ?? own(sqlStateClasses, code.slice(0, 3)) ?? own(sqlStateClasses, code.slice(0, 2)) ?? 'unknown',
    rule: 'sqlstate',
    evidence: `SQLSTATE ${code}`,
  }
}

/** `node:sqlite` has the number, other drivers the name: `SQLITE_BUSY_SNAPSHOT`. */
export function bySqlite(error: unknown): Classified | undefined {
  const code = field(error, 'code')
  if (typeof code !== 'string') return undefined
  const number = code === 'ERR_SQLITE_ERROR' ? field(error, 'errcode') : undefined
  const name =
    typeof number === 'number'
      ? Object.keys(sqliteCodes).find((known) => sqliteCodes[known]?.[0] === (number & 0xff))
      : /^SQLITE_([A-Z]{1,16})(?:_|$)/.exec(code)?.[1]
  const known = name === undefined ? undefined : own(sqliteCodes, name)
  return known && { class: known[1], rule: 'sqlite', evidence: `SQLITE_${name}` }
}

/** Own properties only: `code` may be anything, also `toString`. */
function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
