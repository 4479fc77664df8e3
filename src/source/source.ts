import { HoldfastError } from '../errors.ts'
import { highestSchemaVersion } from '../event/event.ts'
import { idLength, keyLength } from '../event/names.ts'
import { printed } from '../failure/peek.ts'
import type { Lag, LogPage, LogStore, PageLimits } from '../log/log-store.ts'
import type { Share } from './share.ts'

/**
 * Where a subscription reads. A source gives events in order of position and nothing else: batching, checkpoints, retries and
 * holding are the engine's job.
 */
export interface Source {
  readonly name: string
  /**
   * `contiguous`: the versions of a key come one after the other, each once, so there is nothing to check. `unordered`: they may
   * repeat, come late or be missing; the engine waits for a missing one and skips a repeated one. `none`: its events have no
   * versions; they are taken in order of position, and a repeat can't be told.
   */
  readonly versions: 'contiguous' | 'unordered' | 'none'
  /** `by-key`: it can be cut into any number of shares. Without it, it is read as a whole. */
  readonly cut?: 'by-key'
  /**
   * All there is after a position, and only what follows on it: a source that has dropped some of that throws `SOURCE_TRIMMED`, and the
   * subscription stops. Any other error that is not ours is waited for.
   */
  read(after: number, limits: PageLimits, signal: AbortSignal, share: Share): Promise<SourcePage>
  /** As far as can be read now. */
  head(): Promise<number>
  /** The highest position there is, where that can be above the head. A checkpoint beyond it means that events were lost. */
  end?(): Promise<number>
  lag(after: number, share: Share): Promise<Lag>
  onAppend(wake: () => void): () => void
}

/** The next events of a share, and how far they reach: all there is of it up to `through`. */
export type SourcePage = LogPage

/**
 * Checks that a page keeps what its source promised. A page that doesn't can't be held event by event, because it is the order,
 * the identity or the version of its events that is wrong; so the subscription stops, before anything of the page is taken.
 */
export function checkPage({ name, versions }: Source, after: number, { events, through }: SourcePage): void {
  let last = after
  for (const record of events) {
    const { position, id, type, key, version, schemaVersion, time, body, metadata } = record
    const refuse = (what: string) =>
      new HoldfastError('SOURCE_INVALID', `The source ${name} gave an event after position ${last} ${what}.`, {
        hint: 'Mend the source; the checkpoint has not moved.',
      })
    if (!Number.isSafeInteger(position) || position <= last)
      throw refuse(`at position ${printed(position)}, which is not higher`)
    if (![id, type, key, time].every(isText)) throw refuse('whose id, type, key or time is no text that can be stored')
    // Held, it would be in an index that has no room for it, and the commit would fail for ever.
    if (key.length > keyLength) throw refuse(`with a key of ${key.length} characters, more than ${keyLength}`)
    if (id.length > idLength) throw refuse(`with an id of ${id.length} characters, more than ${idLength}`)
    if (!(body instanceof Uint8Array) && !isWellFormed(body))
      throw refuse('whose body is neither well-formed text nor bytes')
    if (metadata !== undefined && !isWellFormed(metadata)) throw refuse('whose metadata is no well-formed text')
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
    `The source ${name} says that its page reaches ${printed(through)}, and it has ${last}.`,
    {
      hint: 'Mend the source; the checkpoint has not moved.',
    },
  )
}

function isText(text: unknown): boolean {
  return isWellFormed(text) && text.length > 0 && !text.includes('\0')
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
