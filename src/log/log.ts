import { checkDeed, type Deed } from '../audit/audit.ts'
import { EventIdConflictError, ExpectedVersionError, HoldfastError } from '../errors.ts'
import type { EventCatalog } from '../event/catalog.ts'
import { printed } from '../failure/peek.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import { checkKey, createAdmit, type DraftOf } from './admit.ts'
import type { ExpectedVersion, LogPage, LogStore, PageLimits } from './log-store.ts'
import { type LoggedOf, readLogged } from './logged.ts'

export interface Appended {
  /** The version of the key after this append. */
  readonly version: number
  /** The position of the last event of this append. */
  readonly position: number
  /** True if these events already existed, and nothing was written. */
  readonly repeated: boolean
}

export interface AppendOptions {
  readonly expectedVersion?: ExpectedVersion
  /**
   * Your own transaction: a `pg` client between BEGIN and COMMIT, or a `node:sqlite` database inside one, on the store's
   * database. These events are committed together with your other writes.
   */
  readonly tx?: unknown
  /**
   * The author and the reason of a manual append: recorded in the audit in the same transaction, unless these events already
   * existed.
   */
  readonly deed?: Deed
}

export interface ReadOptions {
  readonly after?: number
  readonly limit?: number
  readonly signal?: AbortSignal
}

export interface Log<C = undefined> {
  append(key: string, events: readonly DraftOf<C>[], options?: AppendOptions): Promise<Appended>
  /** The events of a key in order of version; `after` is a version. */
  readKey(key: string, options?: ReadOptions): AsyncIterable<LoggedOf<C>>
  /** All events in order of position; `after` is a position. Ends at the head. */
  readAll(options?: ReadOptions): AsyncIterable<LoggedOf<C>>
  /** The same log without the catalog: every event as it was written. */
  readonly raw: Log
}

export interface LogOptions<C> extends Partial<Runtime> {
  readonly store: { readonly log: LogStore }
  /** With a catalog, `data` is typed and checked on write and read, and an unknown type is refused. */
  readonly events?: C
}

const page: PageLimits = { events: 1_000, bytes: 4_194_304 }

export function createLog<const C extends EventCatalog | undefined = undefined>(options: LogOptions<C>): Log<C> {
  checkOptions(options, 'createLog', ['store', 'events', 'clock', 'timers', 'random'])
  checkStore(options.store, 'createLog')
  const { store, events: catalog, clock = systemRuntime.clock, random = systemRuntime.random } = options
  const admit = createAdmit(clock, random)

  return makeLog<C>(catalog)

  function makeLog<K extends EventCatalog | undefined>(known: K | undefined): Log<K> {
    return {
      append: async (key, drafts, appendOptions = {}) => {
        checkOptions(appendOptions, 'append', ['expectedVersion', 'tx', 'deed'])
        const { expectedVersion = 'any', tx, deed } = appendOptions
        checkKey(key)
        checkExpected(expectedVersion)
        if (deed) checkDeed(deed)
        // Synchronous unless a schema is asynchronous, so that appends reach the store in the order of the calls.
        const { events, pending } = admit(drafts, known)
        if (pending.length > 0) await Promise.all(pending)
        const outcome = await store.log.append(key, events, expectedVersion, { tx: checkTx(tx), deed })
        return settle(key, expectedVersion, outcome)
      },
      readKey: (key, read = {}) =>
        pages(checkRead(read), known, async (after, limits) => {
          const events = await store.log.readKey(key, after, limits)
          return { events, through: events.at(-1)?.version ?? after }
        }),
      readAll: (read = {}) => pages(checkRead(read), known, (after, limits) => store.log.readAll(after, limits)),
      get raw() {
        return makeLog<undefined>(undefined)
      },
    }
  }
}

function checkExpected(expected: ExpectedVersion): void {
  if (expected === 'any' || expected === 'new') return
  if (isCount(expected)) return
  throw new HoldfastError('OPTION_INVALID', `expectedVersion is ${printed(expected)}.`, {
    hint: "Give 'any', 'new', or the version that you read (a whole number from 0).",
  })
}

/** An invalid transaction, such as a client that was not awaited, must not become an append without a transaction. */
function checkTx(tx: unknown): unknown {
  if (tx === undefined || (typeof tx === 'object' && tx !== null && !('then' in tx))) return tx
  throw new HoldfastError(
    'TRANSACTION_INVALID',
    `tx is ${tx === null ? 'null' : typeof tx === 'object' ? 'a promise' : typeof tx}.`,
    {
      hint: 'Pass the client of your transaction; check that it is awaited.',
    },
  )
}

/** Converts the outcome of an append into a result or an error. */
export function settle(
  key: string,
  expected: ExpectedVersion,
  result: Awaited<ReturnType<LogStore['append']>>,
): Appended {
  switch (result.outcome) {
    case 'appended':
    case 'repeated':
      return { version: result.version, position: result.position, repeated: result.outcome === 'repeated' }
    case 'version-conflict':
      throw new ExpectedVersionError(key, expected as 'new' | number, result.actual)
    case 'id-conflict':
      throw new EventIdConflictError(result.id, result.why)
    default:
      return result satisfies never
  }
}

/** An invalid position, such as NaN, would find nothing and look like the end of the log. */
function checkRead(read: ReadOptions): ReadOptions {
  checkOptions(read, 'Reading', ['after', 'limit', 'signal'])
  const { after = 0, limit = 0 } = read
  if (!isCount(after)) throw badRead('after', after)
  if (!isCount(limit) && limit !== Number.POSITIVE_INFINITY) throw badRead('limit', limit)
  return read
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function badRead(option: string, value: unknown): HoldfastError {
  const message = `${option} is ${printed(value)}.`
  return new HoldfastError('OPTION_INVALID', message, { hint: 'Give a whole number from 0.' })
}

async function* pages<C extends EventCatalog | undefined>(
  { after: begin = 0, limit = Number.POSITIVE_INFINITY, signal }: ReadOptions,
  catalog: C | undefined,
  readPage: (after: number, limits: PageLimits) => Promise<LogPage>,
): AsyncGenerator<LoggedOf<C>> {
  let left = limit
  let after = begin
  while (left > 0) {
    signal?.throwIfAborted()
    const { events, through } = await readPage(after, { ...page, events: Math.min(page.events, left) })
    if (through === after) return
    for (const record of events) {
      signal?.throwIfAborted()
      yield (await readLogged(record, catalog)) as LoggedOf<C>
    }
    left -= events.length
    after = through
  }
}
