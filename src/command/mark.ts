import { CommandConflictError, InvalidEventError } from '../errors.ts'
import type { Event, Metadata } from '../event/event.ts'
import { dataLimits, encodeJson } from '../event/json.ts'
import { parseJson } from '../event/parse.ts'
import { sha256Hex } from '../event/sha256.ts'

/** A command that runs once for its key. */
export interface Command {
  readonly id: string
  /** The hash of `content`. Without it, only the id identifies the command. */
  readonly fingerprint: string | undefined
}

// All of our metadata is under this name, so that `command` and other names are free for users.
const entry = 'holdfast'

/** The record of a command in the metadata of its event. It is written with the event. */
interface Mark {
  readonly id: string
  /**
   * The id of the event itself. Users copy metadata from one event to the next; a copied mark must not mean that the command has
   * run on another key.
   */
  readonly event: string
  readonly content?: string
}

/** The metadata of an event that a command writes. Replaces a mark that was copied from another event. */
export function markMetadata(
  metadata: Metadata,
  path: string,
  eventId: string,
  command: Command | undefined,
): Metadata {
  const { [entry]: ours, ...rest } = metadata
  if (ours !== undefined && !isMarked(ours)) {
    throw new InvalidEventError('EVENT_FIELD_INVALID', `${path}.${entry}`, `${path}.${entry} is reserved.`, {
      hint: 'Use another name.',
    })
  }
  if (!command) return rest
  const { id, fingerprint } = command
  const mark = { id, event: eventId, ...(fingerprint !== undefined && { content: fingerprint }) }
  return { ...rest, [entry]: { command: mark } }
}

/** Whether this command wrote this event. Throws if the id is the same but the content differs. */
export function isWrittenBy(event: Event, command: Command): boolean {
  const ours = event.metadata[entry]
  if (!isMarked(ours)) return false
  const { id, event: marked, content } = ours.command
  if (id !== command.id || marked !== event.id) return false
  const { fingerprint } = command
  if (content === undefined || fingerprint === undefined || content === fingerprint) return true
  throw new CommandConflictError(event.key, id, event.version as number)
}

function isMarked(value: unknown): value is { readonly command: Mark } {
  const { command } = (value ?? {}) as { command?: Partial<Mark> | null }
  return typeof command?.id === 'string' && typeof command.event === 'string'
}

/** Equal for equal JSON, regardless of the order of its keys. */
export function fingerprintOf(content: unknown): string {
  // Through its text, so that the hash is of the JSON value, and other values are refused.
  return sha256Hex(canonical(parseJson(encodeJson(content, 'content', dataLimits))))
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, child]) => `${JSON.stringify(key)}:${canonical(child)}`).join(',')}}`
}
