import { EventIdConflictError, HoldfastError, InvalidEventError } from '../errors.ts'
import { type DataInput, type EventCatalog, readData, type TypeName } from '../event/catalog.ts'
import { type Metadata, parseMetadata } from '../event/event.ts'
import { createIds } from '../event/identity.ts'
import { checkJsonText, dataLimits, encodeJson, metadataLimits } from '../event/json.ts'
import { checkReadable, checkTypeName, idLength, keyLength } from '../event/names.ts'
import { parseJson } from '../event/parse.ts'
import { isA, messageOf } from '../failure/peek.ts'
import type { Clock, Random } from '../runtime/ports.ts'
import type { NewEvent } from './log-store.ts'

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

const draftFields = new Set(['id', 'type', 'data', 'json', 'metadata', 'time'])
const textFields = ['correlationId', 'causationId', 'traceparent', 'tenant', 'actor']
// All of it travels in one message, and stands in memory several times on the way.
const appendSize = 33_554_432

/** Events that may go in, once `pending`, the answers of asynchronous schemas, are all there. */
export interface Admitted {
  readonly events: readonly NewEvent[]
  readonly pending: readonly Promise<unknown>[]
}

export type Admit = (drafts: readonly Draft[], catalog: EventCatalog | undefined) => Admitted

/** The door of the log: everything is checked before anything is written, so that an append goes in whole or not at all. */
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
      const what = messageOf(cause) ?? 'something that is no error'
      const why = isA(cause, HoldfastError) ? what : `Its schema threw: ${what}`
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
    // Not by its own getTime, which may say something else than a number.
    const ms =
      typeof time === 'string' ? parseTime(time) : time instanceof Date ? Date.prototype.getTime.call(time) : Number.NaN
    if (Number.isNaN(ms)) throw badField(`${path}.time`, 'is not a time; give ISO 8601 with its zone, or a Date')
    return new Date(ms).toISOString()
  }
}

/** A getter or a proxy may throw whatever it likes: what can't be read is refused like all else that is no event. */
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
    const message = `This append has ${size} characters, in ${events.length} events.`
    throw new InvalidEventError('EVENT_TOO_LARGE', 'events', message, { hint: `Append up to ${appendSize} at a time.` })
  }
  const ids = new Set<string>()
  for (const { id } of events) {
    if (ids.has(id)) throw new EventIdConflictError(id, 'it stands twice in one append')
    ids.add(id)
  }
}

// Years have four digits, or a sign and six: so a Date that is far away comes back as it was.
// Date.parse alone would take 'order 12' for a day in 2001, and a time without a zone for another moment on every machine.
const isoTime = /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)(T(?:[01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

/** In milliseconds since 1970; NaN for what is no time. */
export function parseTime(time: string): number {
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

function badField(path: string, what: string): InvalidEventError {
  return new InvalidEventError('EVENT_FIELD_INVALID', path, `${path} ${what}.`)
}
