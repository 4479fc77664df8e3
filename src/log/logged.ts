import { HoldfastError, InvalidEventError } from '../errors.ts'
import { type EventCatalog, type EventOf, readData } from '../event/catalog.ts'
import { type Event, parseBody, parseMetadata, type RecordedEvent } from '../event/event.ts'

/** An event of the log: with its position, the schema version it was written with, and its exact text. */
export interface Logged {
  readonly position: number
  readonly version: number
  readonly schemaVersion: number
  readonly json: string
}

export type LoggedOf<C> = ([C] extends [EventCatalog] ? EventOf<C> : Event) & Logged

/** Reads an event of the log: with a catalog, upcast to the newest schema and checked. */
export async function readLogged(record: RecordedEvent, catalog: EventCatalog | undefined): Promise<Event & Logged> {
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
      throw new InvalidEventError(code, 'data', message, { cause, hint: 'Use log.raw to read it as it was written.' })
    }
  }
  const version = record.version as number
  return { id, type, key, version, data, metadata: parseMetadata(record.metadata), time, position, schemaVersion, json }
}
