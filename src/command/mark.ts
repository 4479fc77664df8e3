import { CommandConflictError, InvalidEventError } from '../errors.ts'
import type { Event, Metadata } from '../event/event.ts'
import { dataLimits, encodeJson } from '../event/json.ts'
import { parseJson } from '../event/parse.ts'
import { sha256Hex } from '../event/sha256.ts'

/** A command that is to run once for its key. */
export interface Command {
  readonly id: string
  /** Of what the caller says the command is about. Without it, the id alone says which command it is. */
  readonly fingerprint: string | undefined
}

// Whatever of ours travels with an event is under this one name, so that `command` and the like stay free for users.
const entry = 'holdfast'

/** What an event tells of the command that wrote it. It is written with the event, so it is there exactly when the event is. */
interface Mark {
  readonly id: string
  /**
   * The id of the event itself. People hand metadata on from one event to the next; a mark that was copied along must not say that
   * the command has run on another key.
   */
  readonly event: string
  readonly content?: string
}

/** The metadata of an event that a command writes. A mark that came along from another event makes way. */
export function markMetadata(
  metadata: Metadata,
  path: string,
  eventId: string,
  command: Command | undefined,
): Metadata {
  const { [entry]: ours, ...rest } = metadata
  if (ours !== undefined && !isMarked(ours)) {
    throw new InvalidEventError('EVENT_FIELD_INVALID', `${path}.${entry}`, `${path}.${entry} is taken: it is ours.`, {
      hint: 'Give it another name.',
    })
  }
  if (!command) return rest
  const { id, fingerprint } = command
  const mark = { id, event: eventId, ...(fingerprint !== undefined && { content: fingerprint }) }
  return { ...rest, [entry]: { command: mark } }
}

/** Whether this command wrote this event. Throws when it was one of the same id, but about something else. */
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

/** Equal for equal JSON, in whatever order its keys were written. */
export function fingerprintOf(content: unknown): string {
  // Through its text, so that what is fingerprinted is what JSON makes of it, or a refusal.
  return sha256Hex(canonical(parseJson(encodeJson(content, 'content', dataLimits))))
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, child]) => `${JSON.stringify(key)}:${canonical(child)}`).join(',')}}`
}
