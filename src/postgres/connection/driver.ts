import { HoldfastError } from '../../errors.ts'

// The part of `pg` that we use, as our own types, so that public types don't depend on the installed version.

export interface PgResult {
  readonly command: string
  readonly rowCount: number | null
  readonly rows: unknown[]
}

export interface PgQuery {
  readonly text: string
  readonly values?: readonly unknown[]
  /** Prepared under this name, once for each connection. */
  readonly name?: string
  readonly types?: PgTypes
  readonly rowMode?: 'array'
}

export interface PgTypes {
  getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown
}

/** A connection: `pg.Client`, or a client of `pg.Pool`. */
export interface PgClient {
  query(query: PgQuery): Promise<PgResult>
  /** 'T' inside a transaction, 'E' inside a failed one, 'I' outside. Not all versions of pg have it. */
  getTransactionStatus?(): 'I' | 'T' | 'E' | null
  readonly processID?: number | null
}

export interface PgPooledClient extends PgClient {
  release(error?: Error | boolean): void
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
  off(event: 'end', listener: () => void): unknown
}

export interface PgPool {
  connect(): Promise<PgPooledClient>
  end(): Promise<void>
  on(event: 'error' | 'connect', listener: (value: never) => void): unknown
}

/** A separate connection, for work that outlasts single queries. */
export interface PgSession extends PgClient {
  connect(): Promise<unknown>
  end(): Promise<void>
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
  on(event: 'notification', listener: (message: { channel: string; payload?: string }) => void): unknown
}

export interface PgConfig {
  readonly connectionString?: string
  readonly application_name?: string
  readonly [option: string]: unknown
}

export interface PgDriver {
  readonly Pool: new (config: PgConfig) => PgPool
  readonly Client: new (config: PgConfig) => PgSession
}

/** `pg` is an optional peer: SQLite users don't need it. */
export async function loadDriver(): Promise<PgDriver> {
  try {
    const module = (await import('pg')) as unknown as { default?: PgDriver } & PgDriver
    return module.default ?? module
  } catch (cause) {
    throw new HoldfastError('DRIVER_MISSING', 'The package pg is not installed.', {
      cause,
      hint: 'Install it: npm install pg',
    })
  }
}

const int8 = 20
const json = 114
const asText = (value: string) => value

/**
 * Our own parsers: a bigint as a number (positions, versions and counts stay below 2^53), every other type except numbers and
 * booleans as text, because pg would parse JSON and lose what JSON.parse loses.
 */
const parsers = new Map<number, (value: string) => unknown>([
  [16, (value) => value === 't'],
  [17, (value) => Buffer.from(value.slice(2), 'hex')],
  [21, Number],
  [23, Number],
  [26, Number],
  [int8, Number],
  [700, Number],
  [701, Number],
  [1700, Number],
  [json, asText],
])

export const types: PgTypes = {
  getTypeParser: (oid, format) => {
    if (format === 'binary') throw new HoldfastError('INTERNAL', 'PostgreSQL answered in binary.')
    return parsers.get(oid) ?? asText
  },
}

const numeric = 1700

/** For user values, which must be exact: numbers that a JavaScript number can't represent stay text. */
export const exactTypes: PgTypes = {
  getTypeParser: (oid, format) => {
    if (oid === int8) return (value) => (Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value))
    return oid === numeric ? asText : types.getTypeParser(oid, format)
  },
}
