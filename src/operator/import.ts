import { HoldfastError, InvalidEventError } from '../errors.ts'
import { highestSchemaVersion, parseMetadata } from '../event/event.ts'
import { checkJsonText, dataLimits, metadataLimits } from '../event/json.ts'
import { checkReadable, checkTypeName, idLength } from '../event/names.ts'
import type { NewEvent } from '../log/log-store.ts'
import { checkKey, parseTime } from '../log/admit.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import { type ExportedLine, invalid, readExport } from './export-format.ts'
import type { Store } from '../store.ts'
import type { OperatorParts } from './parts.ts'
import { importAct } from '../engine/process/imported.ts'

export interface ImportOptions {
  readonly reason: string
}

/** The result of an import. It imports original events; revisions are not imported. */
export interface Imported {
  readonly events: number
  /** How many of the events were letters, and how many of those had a revision. */
  readonly letters: number
  readonly revised: number
  /** Events that a log cannot contain: the body is not valid UTF-8, or not valid JSON. */
  readonly skipped: readonly { readonly line: number; readonly eventId: string; readonly why: string }[]
}

interface Arriving {
  readonly position: number
  readonly key: string
  readonly event: NewEvent
}

/**
 * Imports an export, to reproduce failures in another environment. All lines are read and checked first; then the events and the audit entry
 * are written in one transaction. The log must be empty: subscriptions of a log in use would process the events as new ones.
 * For the same reason no engine starts on the store without `allowEffects`; the audit entry is the mark.
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
    if (ids.has(read.event.id)) throw invalid(exported.line, 'has an event that an earlier line has already')
    ids.add(read.event.id)
    arriving.push(read)
    if (exported.isLetter) letters++
    if (exported.isRevised) revised++
  }
  const details = { events: arriving.length, letters, revised, skipped: skipped.length }
  const deed = parts.deed({ act: importAct, target: 'log', reason, details })
  const inOrder = arriving.toSorted((a, b) => a.position - b.position)
  const end = await log.end()
  if (end > 0) throw notEmpty(end)
  await refuseRunning(parts.store)
  if (!(await log.appendFirst(inOrder, deed))) throw notEmpty(await log.end())
  return { events: arriving.length, letters, revised, skipped }
}

/** An engine that runs already has seen a store without the mark, and would process the events. */
async function refuseRunning(store: Store): Promise<void> {
  for (const { name, partitions } of await store.subscriptions.list()) {
    const owner = partitions.find((partition) => partition.owner !== undefined)?.owner
    if (owner === undefined) continue
    throw new HoldfastError('STORE_IN_USE', `${owner} runs ${name}. Nothing was imported.`, {
      hint: 'Stop all engines of this store, and import again. If the process is dead, wait until its lease expires.',
    })
  }
}

function notEmpty(end: number): HoldfastError {
  return new HoldfastError(
    'STORE_NOT_EMPTY',
    `The log is not empty: it has events up to position ${end}. Nothing was imported.`,
    {
      hint: 'Import into a new store. To process held events of this store, redrive them.',
    },
  )
}

function arrivalOf({ line, event }: ExportedLine): Arriving | { readonly eventId: string; readonly why: string } {
  const { position, id, type, key, schemaVersion, time, body, base64, metadata } = event
  try {
    const eventId = checkReadable(id, 'event.id', idLength)
    if (typeof base64 === 'string') return { eventId, why: 'its body is not valid UTF-8' }
    const ms = typeof time === 'string' ? parseTime(time) : Number.NaN
    if (Number.isNaN(ms))
      throw new InvalidEventError('EVENT_FIELD_INVALID', 'event.time', 'event.time is not a valid time.')
    const place = { position: whole(position, 'event.position', 1, Number.MAX_SAFE_INTEGER), key: checkKey(key) }
    const name = checkTypeName(type, 'event.type')
    const version = whole(schemaVersion, 'event.schemaVersion', 1, highestSchemaVersion)
    const about = metadata === undefined ? undefined : checkMetadata(metadata)
    const fields = { id: eventId, type: name, schemaVersion: version, time: new Date(ms).toISOString() }
    const text = storable(body)
    if (text === undefined) return { eventId, why: 'its body is not JSON that a log accepts' }
    return { ...place, event: { ...fields, body: text, metadata: about } }
  } catch (error) {
    if (error instanceof HoldfastError) throw invalid(line, `has an invalid event: ${error.message}`, error)
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
