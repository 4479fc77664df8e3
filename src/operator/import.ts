import { HoldfastError, InvalidEventError } from '../errors.ts'
import { highestSchemaVersion, parseMetadata } from '../event/event.ts'
import { checkJsonText, dataLimits, metadataLimits } from '../event/json.ts'
import { checkReadable, checkTypeName, idLength } from '../event/names.ts'
import type { NewEvent } from '../log/log-store.ts'
import { checkKey, parseTime } from '../log/admit.ts'
import { checkOptions } from '../runtime/options.ts'
import { type ExportedLine, invalid, readExport } from './export-format.ts'
import { type OperatorParts, whole } from './parts.ts'

export interface ImportOptions {
  readonly reason: string
}

/** What an import did. Revisions are never taken over: what came is imported as it came. */
export interface Imported {
  readonly events: number
  /** How many of them were letters, and how many of those had a revision, which stays in the file. */
  readonly letters: number
  readonly revised: number
  /** What can't be in a log: bytes that are no text, or a text that is no JSON. */
  readonly skipped: readonly { readonly line: number; readonly eventId: string; readonly why: string }[]
}

interface Arriving {
  readonly position: number
  readonly key: string
  readonly event: NewEvent
}

/**
 * To see elsewhere what failed here. Everything is read and checked before anything is written, then it is written with its deed in one
 * transaction, and the log must be empty: in one that is in use, every subscription would take the events for new ones, and with them do
 * everything again.
 */
export async function importLetters(
  parts: OperatorParts,
  lines: AsyncIterable<string> | Iterable<string>,
  options: ImportOptions,
): Promise<Imported> {
  checkOptions(options, 'importLetters', ['reason'])
  const reason = parts.reasonOf(options.reason)
  const { log } = parts.store
  const arriving: Arriving[] = []
  const skipped: Imported['skipped'][number][] = []
  const ids = new Set<string>()
  let letters = 0
  let revised = 0
  for await (const exported of readExport(lines)) {
    const read = arrivalOf(exported)
    if ('why' in read) {
      skipped.push({ line: exported.line, ...read })
      continue
    }
    if (ids.has(read.event.id)) throw invalid(exported.line, 'has an event that stands there twice')
    ids.add(read.event.id)
    arriving.push(read)
    if (exported.isLetter) letters++
    if (exported.isRevised) revised++
  }
  const details = { events: arriving.length, letters, revised, skipped: skipped.length }
  const deed = parts.deed({ act: 'letters.import', target: 'log', reason, details })
  const inOrder = arriving.toSorted((a, b) => a.position - b.position)
  if (!(await log.appendFirst(inOrder, deed))) throw notEmpty(await log.end())
  return { events: arriving.length, letters, revised, skipped }
}

function notEmpty(end: number): HoldfastError {
  return new HoldfastError(
    'STORE_NOT_EMPTY',
    `The log has events up to position ${end} already. Nothing was imported.`,
    {
      hint: 'Import into a new store; what is held here is redriven, not imported.',
    },
  )
}

function arrivalOf({ line, event }: ExportedLine): Arriving | { readonly eventId: string; readonly why: string } {
  const { position, id, type, key, schemaVersion, time, body, base64, metadata } = event
  try {
    const eventId = checkReadable(id, 'event.id', idLength)
    if (typeof base64 === 'string') return { eventId, why: 'its bytes are no text' }
    const ms = typeof time === 'string' ? parseTime(time) : Number.NaN
    if (Number.isNaN(ms)) throw new InvalidEventError('EVENT_FIELD_INVALID', 'event.time', 'event.time is no time.')
    const place = { position: whole(position, 'event.position', 1, Number.MAX_SAFE_INTEGER), key: checkKey(key) }
    const name = checkTypeName(type, 'event.type')
    const version = whole(schemaVersion, 'event.schemaVersion', 1, highestSchemaVersion)
    const about = metadata === undefined ? undefined : checkMetadata(metadata)
    const fields = { id: eventId, type: name, schemaVersion: version, time: new Date(ms).toISOString() }
    const text = storable(body)
    if (text === undefined) return { eventId, why: 'its body is no JSON that a log takes' }
    return { ...place, event: { ...fields, body: text, metadata: about } }
  } catch (error) {
    if (error instanceof HoldfastError) throw invalid(line, `has an event that no log takes: ${error.message}`, error)
    throw error
  }
}

function storable(body: unknown): string | undefined {
  try {
    return checkJsonText(body, 'event.body', dataLimits)
  } catch {
    return undefined
  }
}

function checkMetadata(metadata: unknown): string {
  const text = checkJsonText(metadata, 'event.metadata', metadataLimits)
  const value: unknown = parseMetadata(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text
  throw new InvalidEventError('EVENT_FIELD_INVALID', 'event.metadata', 'event.metadata is not an object.')
}
