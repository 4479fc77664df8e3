import { EventIdConflictError, ExpectedVersionError, HoldfastError, InvalidEventError } from '../errors.ts'
import { type DataInput, type EventCatalog, type EventOf, readData, type TypeName } from '../event/catalog.ts'
import { type Event, type Metadata, parseBody, parseMetadata, type RecordedEvent } from '../event/event.ts'
import { createIds } from '../event/identity.ts'
import { checkJsonText, dataLimits, encodeJson, metadataLimits } from '../event/json.ts'
import { checkReadable, checkTypeName } from '../event/names.ts'
import { parseJson } from '../event/parse.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { ExpectedVersion, LogPage, LogStore, NewEvent, PageLimits } from './log-store.ts'

interface DraftFields {
  /** Give one to make a repeated append harmless; without it each call is a new event. */
  readonly id?: string
  readonly metadata?: Metadata
  readonly time?: string | Date
}

/** An event on its way in: `data`, or `json` with the exact text to keep (numbers beyond 2^53, for one). */
export type Draft<Type extends string = string, Data = unknown> = DraftFields & { readonly type: Type } & (
    | { readonly data: Data; readonly json?: never }
    | { readonly json: string; readonly data?: never }
  )

export type DraftOf<C> = [C] extends [EventCatalog]
  ? { [T in TypeName<C>]: Draft<T, DataInput<C, T>> }[TypeName<C>]
  : Draft

/** An event as it lies in the log: with its position, the schema version it was written with, and its exact text. */
export interface Logged {
  readonly position: number
  readonly version: number
  readonly schemaVersion: number
  readonly json: string
}

export interface Appended {
  /** The version of the key after this append. */
  readonly version: number
  /** The position of the last event of this append. */
  readonly position: number
  /** True when these events were there already, and nothing was written. */
  readonly repeated: boolean
}

export interface AppendOptions {
  readonly expectedVersion?: ExpectedVersion
  /**
   * Your own transaction: a `pg` client between BEGIN and COMMIT, or a `node:sqlite` database inside one, on the store's own
   * database. What else you write there and these events happen together or not at all.
   */
  readonly tx?: unknown
}

export interface ReadOptions {
  readonly after?: number
  readonly limit?: number
  readonly signal?: AbortSignal
}

export interface Log<C = undefined> {
  append(key: string, events: readonly DraftOf<C>[], options?: AppendOptions): Promise<Appended>
  /** The events of a key in order of version; `after` is a version. */
  readKey(key: string, options?: ReadOptions): AsyncIterable<LoggedOf<C>>
  /** All events in order of position; `after` is a position. Ends at the head. */
  readAll(options?: ReadOptions): AsyncIterable<LoggedOf<C>>
  /** The same log without the catalog: every event as it was written, whatever it is. */
  readonly raw: Log
}

export type LoggedOf<C> = ([C] extends [EventCatalog] ? EventOf<C> : Event) & Logged

export interface LogOptions<C> extends Partial<Runtime> {
  readonly store: { readonly log: LogStore }
  /** With a catalog, `data` is typed and checked both ways, and an unknown type is refused at the door. */
  readonly events?: C
}

const draftFields = new Set(['id', 'type', 'data', 'json', 'metadata', 'time'])
const textFields = ['correlationId', 'causationId', 'traceparent', 'tenant', 'actor']
const keyLength = 512
const idLength = 128
// All of it travels in one message, and stands in memory several times on the way.
const appendSize = 33_554_432
const page: PageLimits = { events: 1_000, bytes: 4_194_304 }

export function createLog<const C extends EventCatalog | undefined = undefined>(options: LogOptions<C>): Log<C> {
  checkOptions(options, 'createLog', ['store', 'events', 'clock', 'timers', 'random'])
  checkStore(options.store, 'createLog')
  const { store, events: catalog, clock = systemRuntime.clock, random = systemRuntime.random } = options
  const nextId = createIds(clock, random)

  return makeLog<C>(catalog)

  function makeLog<K extends EventCatalog | undefined>(known: K | undefined): Log<K> {
    return {
      append: async (key, drafts, appendOptions = {}) => {
        checkOptions(appendOptions, 'append', ['expectedVersion', 'tx'])
        const { expectedVersion = 'any', tx } = appendOptions
        checkReadable(key, 'key', keyLength)
        checkExpected(expectedVersion)
        checkDrafts(drafts)
        const events: NewEvent[] = []
        const pending: Promise<unknown>[] = []
        // Everything is checked before anything is written: an append goes in whole or not at all. And without a wait where no
        // schema asks for one, so that appends reach the store in the order in which they were called.
        for (const [i, draft] of drafts.entries()) events.push(admit(draft, `events[${i}]`, known, pending))
        checkBatch(events)
        if (pending.length > 0) await Promise.all(pending)
        return settle(key, expectedVersion, await store.log.append(key, events, expectedVersion, checkTx(tx)))
      },
      readKey: (key, read = {}) =>
        pages(checkRead(read), known, async (after, limits) => {
          const events = await store.log.readKey(key, after, limits)
          return { events, through: events.at(-1)?.version ?? after }
        }),
      readAll: (read = {}) => pages(checkRead(read), known, (after, limits) => store.log.readAll(after, limits)),
      get raw() {
        return makeLog<undefined>(undefined)
      },
    }
  }

  function admit(draft: Draft, path: string, known: EventCatalog | undefined, pending: Promise<unknown>[]): NewEvent {
    if (typeof draft !== 'object' || draft === null) throw badField(path, 'is not an event')
    for (const field of Object.keys(draft)) {
      if (!draftFields.has(field)) throw badField(`${path}.${field}`, 'is not a field of an event')
    }
    if (draft.json !== undefined && draft.data !== undefined)
      throw badField(`${path}.json`, 'stands beside data; give one of the two')
    const type = checkTypeName(draft.type, `${path}.type`)
    const body =
      draft.json === undefined
        ? encodeJson(draft.data, `${path}.data`, dataLimits)
        : checkJsonText(draft.json, `${path}.json`, dataLimits)
    const schemaVersion = known ? checkAgainst(known, type, body, path, pending) : 1
    return {
      id: draft.id === undefined ? nextId() : checkReadable(draft.id, `${path}.id`, idLength),
      type,
      schemaVersion,
      time: readTime(draft.time, path),
      body,
      metadata: readMetadata(draft.metadata, `${path}.metadata`),
    }
  }

  /** What is stored is what was given, not what the schema makes of it; so the check is of the text that will be read. */
  function checkAgainst(
    known: EventCatalog,
    type: string,
    body: string,
    path: string,
    pending: Promise<unknown>[],
  ): number {
    const entry = known.entry(type)
    if (!entry) {
      throw new InvalidEventError(
        'EVENT_TYPE_UNKNOWN',
        `${path}.type`,
        `The catalog has no type ${JSON.stringify(type)}.`,
        {
          hint: 'Add it to defineEvents, or append through log.raw.',
        },
      )
    }
    const refuse = (cause: unknown): never => {
      const what = cause instanceof Error ? cause.message : 'something that is no error'
      const why = cause instanceof HoldfastError ? what : `Its schema threw: ${what}`
      throw new InvalidEventError('EVENT_SCHEMA', `${path}.data`, `${path} (${type}) is refused. ${why}`, { cause })
    }
    try {
      const checked = readData(entry, entry.schemaVersion, parseJson(body))
      if (!(checked instanceof Promise)) return entry.schemaVersion
      const answer = checked.catch(refuse)
      // If another event of this append is refused first, nobody waits for this answer any more.
      answer.catch(() => undefined)
      pending.push(answer)
    } catch (cause) {
      refuse(cause)
    }
    return entry.schemaVersion
  }

  function readTime(time: string | Date | undefined, path: string): string {
    if (time === undefined) return new Date(clock.now()).toISOString()
    const ms = typeof time === 'string' ? parseTime(time) : time instanceof Date ? time.getTime() : Number.NaN
    if (Number.isNaN(ms)) throw badField(`${path}.time`, 'is not a time; give ISO 8601 with its zone, or a Date')
    return new Date(ms).toISOString()
  }
}

// Date.parse alone would take 'order 12' for a day in 2001, and a time without a zone for another moment on every machine.
const isoTime = /^(\d{4})-(\d\d)-(\d\d)(T(?:[01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

function parseTime(time: string): number {
  const [, year, month, day] = isoTime.exec(time) ?? []
  // Date.parse would make the 2nd of March of a 30th of February.
  if (
    day === undefined ||
    new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() !== Number(day)
  )
    return Number.NaN
  return Date.parse(time)
}

function readMetadata(metadata: Metadata | undefined, path: string): string | undefined {
  if (metadata === undefined) return undefined
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw badField(path, 'is not an object')
  const text = encodeJson(metadata, path, metadataLimits)
  if (text === '{}') return undefined
  // Checked as it will be read, so that a getter can't give one answer here and another to the writer.
  const written = parseMetadata(text)
  for (const field of textFields) {
    if (Object.hasOwn(written, field)) checkReadable(written[field], `${path}.${field}`, keyLength)
  }
  return text
}

function checkExpected(expected: ExpectedVersion): void {
  if (expected === 'any' || expected === 'new') return
  if (isCount(expected)) return
  throw new HoldfastError('OPTION_INVALID', `expectedVersion is ${String(expected)}.`, {
    hint: "Give 'any', 'new', or the version you read (a whole number from 0).",
  })
}

/** A transaction that was meant and isn't there, such as a client that nobody waited for, must not become a plain append. */
function checkTx(tx: unknown): unknown {
  if (tx === undefined || (typeof tx === 'object' && tx !== null && !('then' in tx))) return tx
  throw new HoldfastError(
    'TRANSACTION_INVALID',
    `tx is ${tx === null ? 'null' : typeof tx === 'object' ? 'a promise' : typeof tx}.`,
    {
      hint: 'Give the client of your own transaction; mind the await.',
    },
  )
}

function checkDrafts(drafts: unknown): void {
  if (Array.isArray(drafts) && drafts.length > 0) return
  throw new HoldfastError('OPTION_INVALID', 'An append needs a list of at least one event.')
}

function checkBatch(events: readonly NewEvent[]): void {
  const size = events.reduce((sum, { body, metadata = '' }) => sum + body.length + metadata.length, 0)
  if (size > appendSize) {
    const message = `This append has ${size} characters, in ${events.length} events.`
    throw new InvalidEventError('EVENT_TOO_LARGE', 'events', message, { hint: `Append up to ${appendSize} at a time.` })
  }
  const ids = new Set<string>()
  for (const { id } of events) {
    if (ids.has(id)) throw new EventIdConflictError(id, 'it stands twice in one append')
    ids.add(id)
  }
}

function settle(key: string, expected: ExpectedVersion, result: Awaited<ReturnType<LogStore['append']>>): Appended {
  switch (result.outcome) {
    case 'appended':
    case 'repeated':
      return { version: result.version, position: result.position, repeated: result.outcome === 'repeated' }
    case 'version-conflict':
      throw new ExpectedVersionError(key, expected as 'new' | number, result.actual)
    case 'id-conflict':
      throw new EventIdConflictError(result.id, result.why)
    default:
      return result satisfies never
  }
}

/** A place that is none, such as NaN, would find nothing, and look like the end of the log. */
function checkRead(read: ReadOptions): ReadOptions {
  checkOptions(read, 'Reading', ['after', 'limit', 'signal'])
  const { after = 0, limit = 0 } = read
  if (!isCount(after)) throw badRead('after', after)
  if (!isCount(limit) && limit !== Number.POSITIVE_INFINITY) throw badRead('limit', limit)
  return read
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function badRead(option: string, value: unknown): HoldfastError {
  const message = `${option} is ${String(value)}.`
  return new HoldfastError('OPTION_INVALID', message, { hint: 'Give a whole number from 0.' })
}

async function* pages<C extends EventCatalog | undefined>(
  { after: begin = 0, limit = Number.POSITIVE_INFINITY, signal }: ReadOptions,
  catalog: C | undefined,
  readPage: (after: number, limits: PageLimits) => Promise<LogPage>,
): AsyncGenerator<LoggedOf<C>> {
  let left = limit
  let after = begin
  while (left > 0) {
    signal?.throwIfAborted()
    const { events, through } = await readPage(after, { ...page, events: Math.min(page.events, left) })
    if (through === after) return
    for (const record of events) {
      signal?.throwIfAborted()
      yield (await readLogged(record, catalog)) as LoggedOf<C>
    }
    left -= events.length
    after = through
  }
}

async function readLogged(record: RecordedEvent, catalog: EventCatalog | undefined): Promise<Event & Logged> {
  const { position, id, type, key, schemaVersion, time } = record
  const json = record.body as string
  let data: unknown = parseBody(json)
  if (catalog) {
    const entry = catalog.entry(type)
    try {
      if (!entry) throw new HoldfastError('EVENT_TYPE_UNKNOWN', `The catalog has no type ${JSON.stringify(type)}.`)
      data = await readData(entry, schemaVersion, data)
    } catch (cause) {
      const code = cause instanceof HoldfastError ? cause.code : 'EVENT_SCHEMA'
      const message = `The event ${id} at position ${position} can't be read: ${cause instanceof Error ? cause.message : 'its schema threw'}`
      throw new InvalidEventError(code, 'data', message, { cause, hint: 'log.raw reads it as it was written.' })
    }
  }
  const version = record.version as number
  return { id, type, key, version, data, metadata: parseMetadata(record.metadata), time, position, schemaVersion, json }
}

function badField(path: string, what: string): InvalidEventError {
  return new InvalidEventError('EVENT_FIELD_INVALID', path, `${path} ${what}.`)
}
