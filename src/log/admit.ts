import { EventIdConflictError, HoldfastError, InvalidEventError } from '../errors.ts'
import { type DataInput, type EventCatalog, readData, type TypeName } from '../event/catalog.ts'
import { type Metadata, parseMetadata } from '../event/event.ts'
import { createIds } from '../event/identity.ts'
import { checkJsonText, dataLimits, encodeJson, metadataLimits } from '../event/json.ts'
import { checkReadable, checkTypeName, idLength, keyLength } from '../event/names.ts'
import { parseJson } from '../event/parse.ts'
import { isA, messageOf } from '../failure/peek.ts'
import { count, many } from '../runtime/count.ts'
import type { Clock, Random } from '../runtime/ports.ts'
import type { NewEvent } from './log-store.ts'

interface DraftFields {
  /** Makes a repeated append harmless; without it each call appends a new event. */
  readonly id?: string
  readonly metadata?: Metadata
  readonly time?: string | Date
}

/** An event to append: `data`, or `json` with the exact text to store (for example, for numbers beyond 2^53). */
export type Draft<Type extends string = string, Data = unknown> = DraftFields & { readonly type: Type } & (
    | { readonly data: Data; readonly json?: never }
    | { readonly json: string; readonly data?: never }
  )

export type DraftOf<C> = [C] extends [EventCatalog]
  ? { [T in TypeName<C>]: Draft<T, DataInput<C, T>> }[TypeName<C>]
  : Draft

const draftFields = new Set(['id', 'type', 'data', 'json', 'metadata', 'time'])
const textFields = ['correlationId', 'causationId', 'traceparent', 'tenant', 'actor']
// The whole append is sent in one message and copied in memory several times.
const appendSize = 33_554_432

/** The checked events; `pending` are the results of asynchronous schemas to wait for. */
export interface Admitted {
  readonly events: readonly NewEvent[]
  readonly pending: readonly Promise<unknown>[]
}

export type Admit = (drafts: readonly Draft[], catalog: EventCatalog | undefined) => Admitted

/** Validates events before anything is written, so that an append is written completely or not at all. */
export function createAdmit(clock: Clock, random: Random): Admit {
  const nextId = createIds(clock, random)

  return (drafts, catalog) => {
    const pending: Promise<unknown>[] = []
    const events = reading('events', () => {
      checkDrafts(drafts)
      return Array.from(drafts, (draft, i) =>
        reading(`events[${i}]`, () => admit(draft, `events[${i}]`, catalog, pending)),
      )
    })
    checkBatch(events)
    return { events, pending }
  }

  function admit(draft: Draft, path: string, known: EventCatalog | undefined, pending: Promise<unknown>[]): NewEvent {
    if (typeof draft !== 'object' || draft === null) throw badField(path, 'is not an event')
    for (const field of Object.keys(draft)) {
      if (!draftFields.has(field)) throw badField(`${path}.${field}`, 'is not a field of an event')
    }
    if (draft.json !== undefined && draft.data !== undefined)
      throw badField(`${path}.json`, 'cannot be combined with data; give one of the two')
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

  /** The given value is stored, not the output of the schema; so the text that will be read is checked. */
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
      const what = messageOf(cause) ?? 'a value that is not an Error'
      const why = isA(cause, HoldfastError) ? what : `Its schema threw: ${what}`
      throw new InvalidEventError('EVENT_SCHEMA', `${path}.data`, `${path} (${type}) is refused. ${why}`, { cause })
    }
    try {
      const checked = readData(entry, entry.schemaVersion, parseJson(body))
      if (!(checked instanceof Promise)) return entry.schemaVersion
      const answer = checked.catch(refuse)
      // If another event of this append is refused first, this result is not awaited.
      answer.catch(() => undefined)
      pending.push(answer)
    } catch (cause) {
      refuse(cause)
    }
    return entry.schemaVersion
  }

  function readTime(time: string | Date | undefined, path: string): string {
    if (time === undefined) return new Date(clock.now()).toISOString()
    // Not by its own getTime, which may return something else than a number.
    const ms =
      typeof time === 'string' ? parseTime(time) : time instanceof Date ? Date.prototype.getTime.call(time) : Number.NaN
    if (Number.isNaN(ms)) throw badField(`${path}.time`, 'is not a time; give ISO 8601 with a time zone, or a Date')
    return new Date(ms).toISOString()
  }
}

/** A getter or a proxy may throw: a value that can't be read is refused like any other invalid event. */
function reading<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (isA(cause, HoldfastError)) throw cause
    throw new InvalidEventError('EVENT_FIELD_INVALID', path, `${path} can't be read: it throws.`, { cause })
  }
}

function checkDrafts(drafts: unknown): void {
  if (Array.isArray(drafts) && drafts.length > 0) return
  throw new HoldfastError('OPTION_INVALID', 'An append needs a list of at least one event.')
}

export function checkKey(key: unknown): string {
  return checkReadable(key, 'key', keyLength)
}

function checkBatch(events: readonly NewEvent[]): void {
  const size = events.reduce((sum, { body, metadata = '' }) => sum + body.length + metadata.length, 0)
  if (size > appendSize) {
    const message = `This append has ${count(size)} characters, in ${many(events.length, 'event')}.`
    throw new InvalidEventError('EVENT_TOO_LARGE', 'events', message, { hint: `Append up to ${appendSize} at a time.` })
  }
  const ids = new Set<string>()
  for (const { id } of events) {
    if (ids.has(id)) throw new EventIdConflictError(id, 'it occurs twice in one append')
    ids.add(id)
  }
}

// A year has four digits, or a sign and six, so that a distant Date is read back unchanged. Date.parse alone would read 'order
// 12' as a day in 2001, and a time without a zone differently on every machine.
const isoTime = /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)(T(?:[01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

/** In milliseconds since 1970; NaN if it is not a time. */
export function parseTime(time: string): number {
  const [, year, month, day] = isoTime.exec(time) ?? []
  // Date.parse would turn February 30 into March 2.
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
  // Checks the written text, so that a getter can't return different values to the check and to the writer.
  const written = parseMetadata(text)
  for (const field of textFields) {
    if (Object.hasOwn(written, field)) checkReadable(written[field], `${path}.${field}`, keyLength)
  }
  return text
}

function badField(path: string, what: string): InvalidEventError {
  return new InvalidEventError('EVENT_FIELD_INVALID', path, `${path} ${what}.`)
}
