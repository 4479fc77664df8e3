import { contentId } from '../event/identity.ts'
import type { RecordedEvent } from '../event/event.ts'
import type { Source } from '../source/source.ts'

/** An event of a scripted source; other fields are generated. `body` is the text that a consumer parses. */
export interface ScriptedEvent {
  readonly key: string
  readonly type: string
  readonly version?: number
  readonly data?: unknown
  readonly body?: string | Uint8Array
  readonly id?: string
  readonly schemaVersion?: number
  readonly metadata?: string
  readonly time?: string
  /** Another position than the next one, for a source that breaks its promise. */
  readonly position?: number
}

export interface ScriptedSource extends Source {
  /** Delivers these events next, in this order, with any versions. */
  deliver(...events: ScriptedEvent[]): void
}

/** A source that repeats, reorders and delays events, as the test scripts it. */
export function createScriptedSource(name = 'scripted'): ScriptedSource {
  const records: RecordedEvent[] = []
  const listeners = new Set<() => void>()
  return {
    name,
    versions: 'unordered',
    read: async (after, { events, bytes }) => {
      const page: RecordedEvent[] = []
      let size = 0
      for (const record of records.slice(after, after + events)) {
        size += record.body.length
        if (size > bytes && page.length > 0) break
        page.push(record)
      }
      return { events: page, through: page.at(-1)?.position ?? after }
    },
    head: async () => records.length,
    lag: async (after) => {
      const first = records[after]
      return { events: records.length - after, since: first && Date.parse(first.time) }
    },
    onAppend: (wake) => {
      listeners.add(wake)
      return () => void listeners.delete(wake)
    },
    deliver: (...events) => {
      for (const event of events) records.push(toRecord(event, records.length + 1))
      for (const wake of listeners) wake()
    },
  }
}

function toRecord(scripted: ScriptedEvent, position: number): RecordedEvent {
  const {
    key,
    type,
    version,
    data = {},
    body = JSON.stringify(data),
    schemaVersion = 1,
    metadata,
    time = '2026-01-01T00:00:00.000Z',
  } = scripted
  const event = { key, type, version, time, body }
  return {
    ...event,
    position: scripted.position ?? position,
    id: scripted.id ?? contentId(event),
    schemaVersion,
    metadata,
  }
}
