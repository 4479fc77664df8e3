import { HoldfastError } from '../errors.ts'
import { highestSchemaVersion } from '../event/event.ts'
import { idLength, keyLength } from '../event/names.ts'
import { isStorable } from '../event/storable.ts'
import { printed } from '../failure/peek.ts'
import type { Lag, LogPage, LogStore, PageLimits } from '../log/log-store.ts'
import type { Share } from './share.ts'

/**
 * Where a subscription reads. A source returns events in order of position; batching, checkpoints, retries and holding are the
 * engine's job.
 */
export interface Source {
  readonly name: string
  /**
   * `contiguous`: the versions of a key come in order, each once, so nothing is checked. `unordered`: versions may repeat, come
   * late or be missing; the engine waits for a missing one and skips a repeated one. `none`: events have no versions; they are
   * applied in order of position, and repeats can't be detected.
   */
  readonly versions: 'contiguous' | 'unordered' | 'none'
  /** `by-key`: the source can be divided into any number of shares. Without it, the source is read as a whole. */
  readonly cut?: 'by-key'
  /**
   * All events directly after a position. A source that has deleted some of them throws `SOURCE_TRIMMED`, and the subscription
   * stops. Any other foreign error is retried.
   */
  read(after: number, limits: PageLimits, signal: AbortSignal, share: Share): Promise<SourcePage>
  /** The highest position that can be read now. */
  head(): Promise<number>
  /** The highest position that exists, if it can be above the head. A checkpoint above it means that events were lost. */
  end?(): Promise<number>
  lag(after: number, share: Share): Promise<Lag>
  onAppend(wake: () => void): () => void
}

/** The next events of a share. All events of the share up to `through` are included. */
export type SourcePage = LogPage

/**
 * Checks that a page keeps the promises of its source. If the order, identity or version of events is wrong, no single event can
 * be held; so the subscription stops before any event of the page is processed.
 */
export function checkPage({ name, versions }: Source, after: number, { events, through }: SourcePage): void {
  let last = after
  for (const record of events) {
    const { position, id, type, key, version, schemaVersion, time, body, metadata } = record
    const refuse = (what: string) =>
      new HoldfastError('SOURCE_INVALID', `The source ${name} returned an event after position ${last} ${what}.`, {
        hint: 'Fix the source; the checkpoint has not moved.',
      })
    if (!Number.isSafeInteger(position) || position <= last)
      throw refuse(`at position ${printed(position)}, which is not higher`)
    if (![id, type, key, time].every(isText)) throw refuse('whose id, type, key or time is not well-formed text')
    // An index has no room for a longer key, so a commit that holds the event would always fail.
    if (key.length > keyLength) throw refuse(`with a key of ${key.length} characters, more than ${keyLength}`)
    if (id.length > idLength) throw refuse(`with an id of ${id.length} characters, more than ${idLength}`)
    if (!(body instanceof Uint8Array) && !isWellFormed(body))
      throw refuse('whose body is neither well-formed text nor bytes')
    if (metadata !== undefined && !isWellFormed(metadata)) throw refuse('whose metadata is not well-formed text')
    if (!isCounting(schemaVersion) || schemaVersion > highestSchemaVersion)
      throw refuse(`with schema version ${printed(schemaVersion)}`)
    if (versions === 'none' ? version !== undefined : !isCounting(version)) {
      throw refuse(`with version ${printed(version)}, though its versions are '${versions}'`)
    }
    last = position
  }
  if (Number.isSafeInteger(through) && through >= last) return
  throw new HoldfastError(
    'SOURCE_INVALID',
    `The source ${name} returned a page through ${printed(through)} that contains position ${last}.`,
    {
      hint: 'Fix the source; the checkpoint has not moved.',
    },
  )
}

function isText(text: unknown): boolean {
  return typeof text === 'string' && text.length > 0 && isStorable(text)
}

function isWellFormed(text: unknown): text is string {
  return typeof text === 'string' && text.isWellFormed()
}

function isCounting(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1
}

export function logSource(log: LogStore): Source {
  return {
    name: 'log',
    versions: 'contiguous',
    cut: 'by-key',
    read: (after, limits, _signal, share) => log.readAll(after, limits, share),
    head: () => log.head(),
    end: () => log.end(),
    lag: (after, share) => log.lag(after, share),
    onAppend: (wake) => log.onAppend(wake),
  }
}
