import { ExpectedVersionError, HoldfastError, InvalidEventError, StoreError } from '../errors.ts'
import type { EventCatalog } from '../event/catalog.ts'
import type { Event, Metadata } from '../event/event.ts'
import type { Admit, Draft } from '../log/admit.ts'
import { type Log, settle } from '../log/log.ts'
import type { LogStore, NewEvent } from '../log/log-store.ts'
import { readLogged } from '../log/logged.ts'
import type { Random, Timers } from '../runtime/ports.ts'
import { type Command, isWrittenBy, markMetadata } from './mark.ts'
import type { Retry } from './retry.ts'
import { eventOf, type Fold, Stream } from './stream.ts'

export interface Executor {
  readonly store: LogStore
  readonly log: Log<EventCatalog>
  readonly catalog: EventCatalog
  readonly fold: Fold
  readonly retry: Retry
  readonly admit: Admit
  readonly nextId: () => string
  readonly timers: Timers
  readonly random: Random
}

export interface Request {
  readonly key: string
  readonly decide: (state: unknown, context: { readonly key: string; readonly version: number }) => unknown
  readonly command: Command | undefined
  readonly signal: AbortSignal | undefined
  readonly metadata: Metadata
}

export interface Done {
  readonly outcome: 'executed' | 'unchanged' | 'repeated'
  readonly version: number
  readonly position: number
  readonly state: unknown
  readonly events: readonly Event[]
}

/** The state of one call. */
interface Call extends Request {
  readonly stream: Stream
  /** The ids of all events that it tried to append: an event with one of these ids is its own. */
  readonly sent: Set<string>
}

/** The decided events, and the result if they are appended. */
interface Decided {
  readonly news: readonly NewEvent[]
  readonly events: readonly Event[]
  readonly state: unknown
}

/**
 * `late`: another process appended first, and nothing was written. `in-doubt`: the store failed, and the events may have been
 * written, or may still be.
 */
type Tried =
  | { readonly tried: 'done'; readonly done: Done }
  | { readonly tried: 'late'; readonly error: ExpectedVersionError }
  | { readonly tried: 'in-doubt'; readonly error: StoreError; readonly decided: Decided }

/**
 *     load ──► decide ──► append ──► done
 *       ▲                  │ │ ▲
 *       └──── late: wait ──┘ └─┘ in doubt: wait
 *
 * The version that was read is the expected version, so of all decisions on one state only one can be appended. If an append is
 * in doubt, the same events are appended again with the same ids, until they are in the log or can't be: a new decision might
 * differ, and the first might still arrive.
 */
export async function execute(executor: Executor, request: Request): Promise<Done> {
  const { log, fold, retry, timers, random } = executor
  const { key, command, signal } = request
  const sent = new Set<string>()
  const isOurs = (event: Event) => sent.has(event.id) || (command !== undefined && isWrittenBy(event, command))
  const call: Call = { ...request, stream: new Stream(log, key, fold, isOurs), sent }
  let tried = await attempt(executor, call)
  for (let tries = 1; tried.tried !== 'done'; tries++) {
    if (tries > retry.times) return giveUp(executor, call, tried, tries)
    await timers.sleep(retry.delayMs(tries, random), signal)
    signal?.throwIfAborted()
    tried = tried.tried === 'late' ? await attempt(executor, call) : await append(executor, call, tried.decided)
  }
  return tried.done
}

async function attempt(executor: Executor, call: Call): Promise<Tried> {
  const { key, stream, signal } = call
  await stream.load(executor.timers, signal)
  if (stream.found) return { tried: 'done', done: doneBefore(call, stream.found) }
  const { version, position, state } = stream
  const drafts = readDecision(await call.decide(state, { key, version }))
  if (drafts.length === 0) {
    return { tried: 'done', done: { outcome: 'unchanged', version, position, state, events: [] } }
  }
  const decided = await foldAll(executor, call, await admitAll(executor, call, drafts))
  signal?.throwIfAborted()
  return append(executor, call, decided)
}

/** Before they are written: events that the fold can't process would break every later command of the key. */
async function foldAll({ catalog }: Executor, call: Call, news: readonly NewEvent[]): Promise<Decided> {
  const { key, stream } = call
  const events: Event[] = []
  let { state } = stream
  for (const [i, event] of news.entries()) {
    const place = { key, version: stream.version + i + 1, position: 0 }
    const logged = await readLogged({ ...event, ...place }, catalog)
    state = stream.fold(state, logged)
    events.push(eventOf(logged))
  }
  return { news, events, state }
}

async function append({ store }: Executor, call: Call, decided: Decided): Promise<Tried> {
  const { key, stream, sent } = call
  const { news, events, state } = decided
  for (const { id } of news) sent.add(id)
  const expected = stream.version === 0 ? 'new' : stream.version
  try {
    const { version, position } = settle(key, expected, await store.append(key, news, expected))
    return { tried: 'done', done: { outcome: 'executed', version, position, state, events } }
  } catch (error) {
    if (error instanceof ExpectedVersionError) return { tried: 'late', error }
    if (isPassing(error)) return { tried: 'in-doubt', error, decided }
    throw error
  }
}

/** Throws, unless the process that was first executed the same command. */
async function giveUp(
  { timers }: Executor,
  call: Call,
  { tried, error }: Exclude<Tried, { tried: 'done' }>,
  tries: number,
): Promise<Done> {
  const { key, stream, command, signal } = call
  if (command || tried === 'in-doubt') {
    await stream.load(timers, signal).catch((failed: unknown) => {
      if (!isPassing(failed)) throw failed
    })
    if (stream.found) return doneBefore(call, stream.found)
  }
  if (tried === 'in-doubt') throw error
  throw new ExpectedVersionError(key, error.expected, error.actual, tries)
}

function doneBefore({ stream, sent }: Call, events: readonly Event[]): Done {
  const { version, position, state } = stream
  const isOwn = events.some(({ id }) => sent.has(id))
  return { outcome: isOwn ? 'executed' : 'repeated', version, position, state, events }
}

/** After these errors the outcome is unknown: a store may have tried more than once and lost an answer. */
function isPassing(error: unknown): error is StoreError {
  return error instanceof StoreError && (error.code === 'STORE_UNAVAILABLE' || error.code === 'STORE_BUSY')
}

function readDecision(decided: unknown): readonly Draft[] {
  if (decided === undefined) return []
  if (Array.isArray(decided)) return decided
  const what = decided === null ? 'null' : `a value of type ${typeof decided}`
  throw new HoldfastError('OPTION_INVALID', `decide returned ${what}.`, {
    hint: 'Return an array of events, or nothing.',
  })
}

async function admitAll(executor: Executor, call: Call, drafts: readonly Draft[]): Promise<readonly NewEvent[]> {
  const marked = drafts.map((draft, i) => mark(draft, `events[${i}]`, executor.nextId(), call))
  const { events, pending } = executor.admit(marked, executor.catalog)
  await Promise.all(pending)
  return events
}

function mark(draft: Draft, path: string, id: string, { command, metadata: shared }: Call): Draft {
  // The log refuses a value that is not an event, with the reason.
  if (typeof draft !== 'object' || draft === null) return draft
  if (draft.id !== undefined) {
    throw new InvalidEventError('EVENT_FIELD_INVALID', `${path}.id`, `${path}.id can't be set by a command.`, {
      hint: 'Give execute an idempotencyKey to run a command once.',
    })
  }
  const { metadata: own = {} } = draft
  if (typeof own !== 'object' || own === null || Array.isArray(own)) return draft
  return { ...draft, id, metadata: markMetadata({ ...shared, ...own }, `${path}.metadata`, id, command) }
}
