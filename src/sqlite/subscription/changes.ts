import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { RowChange } from '../../subscription/subscription-store.ts'
import { quote } from '../connection/identifier.ts'

type Value = string | number | bigint | Uint8Array | null
/** Undefined if the change does not include the column. */
type Values = readonly (Value | undefined)[]

interface Change {
  readonly table: string
  readonly isKey: readonly boolean[]
  readonly old: Values | undefined
  readonly new: Values | undefined
}

const insert = 18
const update = 23

/**
 * The rows that a session has seen change, before and after. Inside the transaction that changed them. A session does not see
 * tables without a primary key.
 */
export function rowChanges(db: DatabaseSync, changeset: Uint8Array): RowChange[] {
  return [...changesOf(changeset)].map(({ table, isKey, old, new: now }) => {
    const columns = (
      db.prepare(`SELECT name FROM pragma_table_info(?) ORDER BY cid`).all(table) as { name: string }[]
    ).map(({ name }) => name)
    const named = (values: Values | undefined) =>
      Object.fromEntries(columns.map((name, i) => [name, values?.[i]]).filter(([, value]) => value !== undefined))
    if (!old || !now) return { table, before: old && named(old), after: now && named(now) }
    // An update contains the key and the changed columns; the other columns are unchanged.
    const keys = columns.flatMap((name, i) => (isKey[i] ? [[name, old[i] as SQLInputValue] as const] : []))
    const where = keys.map(([name]) => `${quote(name)} IS ?`).join(' AND ')
    const after = db.prepare(`SELECT * FROM ${quote(table)} WHERE ${where}`).get(...keys.map(([, value]) => value))
    return { table, before: { ...after, ...named(old) }, after: { ...after } }
  })
}

/** https://sqlite.org/session/sqlite3changeset_new.html describes the format: tables, each followed by its changes. */
function* changesOf(changeset: Uint8Array): Generator<Change> {
  const reader = new ChangesetReader(changeset)
  let table = ''
  let isKey: boolean[] = []
  while (!reader.isAtEnd) {
    const kind = reader.byte()
    if (kind === 0x54) {
      isKey = Array.from({ length: reader.varint() }, () => false).map(() => reader.byte() !== 0)
      table = reader.name()
      continue
    }
    reader.byte()
    const old = kind === insert ? undefined : reader.values(isKey.length)
    const now = kind === insert || kind === update ? reader.values(isKey.length) : undefined
    yield { table, isKey, old, new: now }
  }
}

class ChangesetReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  byte(): number {
    return this.#view.getUint8(this.#at++)
  }

  /** Seven bits per byte, the highest first. No length here needs more than five bytes. */
  varint(): number {
    let value = 0
    for (;;) {
      const byte = this.byte()
      value = value * 128 + (byte & 0x7f)
      if (byte < 0x80) return value
    }
  }

  name(): string {
    const end = this.#bytes.indexOf(0, this.#at)
    const name = Buffer.from(this.#bytes.subarray(this.#at, end)).toString()
    this.#at = end + 1
    return name
  }

  values(count: number): Values {
    return Array.from({ length: count }, () => this.#value())
  }

  #value(): Value | undefined {
    switch (this.byte()) {
      case 1:
        return this.#integer()
      case 2:
        this.#at += 8
        return this.#view.getFloat64(this.#at - 8)
      case 3:
        return Buffer.from(this.#take(this.varint())).toString()
      case 4:
        return this.#take(this.varint())
      case 5:
        return null
      default:
        return undefined
    }
  }

  #integer(): number | bigint {
    const value = this.#view.getBigInt64(this.#at)
    this.#at += 8
    return BigInt(Number(value)) === value && Number.isSafeInteger(Number(value)) ? Number(value) : value
  }

  #take(length: number): Uint8Array {
    const taken = this.#bytes.slice(this.#at, this.#at + length)
    this.#at += length
    return taken
  }
}
