import type { Json } from './json.ts'
import { parseJson } from './parse.ts'

/** Information about an event that is not part of its data. */
export interface Metadata {
  readonly correlationId?: string
  readonly causationId?: string
  readonly traceparent?: string
  readonly tenant?: string
  readonly actor?: string
  readonly [extra: string]: Json | undefined
}

/** An event as a consumer sees it: checked, upcast to the newest schema, typed. */
export interface Event<Type extends string = string, Data = unknown> {
  /** UUID v7, or the hash of the content for a foreign event without an id. */
  readonly id: string
  readonly type: Type
  /** The stream or aggregate; the events of one key are applied in order. */
  readonly key: string
  /** 1 for the first event of a key, then 2, 3, … Foreign events may have none. */
  readonly version?: number
  readonly data: Data
  readonly metadata: Metadata
  /** When it happened, in ISO 8601, UTC. */
  readonly time: string
}

/**
 * An event as a source returns it, unparsed, so that nothing is lost. `body` is the exact text of `data`, or its exact bytes if
 * the source can't guarantee text.
 */
export interface RecordedEvent {
  /** Its position in the source; strictly increasing within a partition. */
  readonly position: number
  readonly id: string
  readonly type: string
  readonly key: string
  readonly version: number | undefined
  readonly schemaVersion: number
  readonly time: string
  readonly body: string | Uint8Array
  /** The exact JSON text, or undefined. */
  readonly metadata: string | undefined
}

/** The highest value that every store supports. */
export const highestSchemaVersion = 2_147_483_647

const noMetadata: Metadata = Object.freeze({})

export function parseMetadata(text: string | undefined): Metadata {
  return text === undefined ? noMetadata : (parsed(text, 'metadata') as Metadata)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The parsed body. Throws if it is not UTF-8 or not JSON. */
export function parseBody(body: string | Uint8Array): unknown {
  return parsed(typeof body === 'string' ? body : utf8.decode(body), 'body')
}

/** V8 quotes the text in its message, and messages are logged: payload values must not appear there. */
function parsed(text: string, what: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    // oxlint-disable-next-line preserve-caught-error -- the cause contains the payload
    throw error instanceof SyntaxError ? new SyntaxError(`The ${what} of the event is not JSON.`) : error
  }
}
