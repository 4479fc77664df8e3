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

/** One call, as far as it has come. */
interface Call extends Request {
  readonly stream: Stream
  /** The ids of all events that it tried to append: what is found under one of them is its own doing. */
  readonly sent: Set<string>
  /** An append of it may be in the log, or may not. */
  isInDoubt: boolean
}

/** `missed`: nothing is known to be written, and it may go better the next time. */
type Tried = { readonly done: Done } | { readonly missed: HoldfastError }

/**
 *     load ──► decide ──► fold what was decided ──► append ──► done
 *       ▲                                             │
 *       └─── wait ◄─── somebody else was first, or nobody knows whether it was appended
 *
 * The version that was read is the version that is expected. Of all that decide on one state only one can append, also if it is
 * still on its way when nobody waits for it any more; so the whole of it can be done again.
 */
export async function execute(executor: Executor, request: Request): Promise<Done> {
  const { log, fold, retry, timers, random } = executor
  const { key, command, signal } = request
  const sent = new Set<string>()
  const isOurs = (event: Event) => sent.has(event.id) || (command !== undefined && isWrittenBy(event, command))
  const call: Call = { ...request, stream: new Stream(log, key, fold, isOurs), sent, isInDoubt: false }
  for (let tries = 1; ; tries++) {
    const tried = await attempt(executor, call)
    if ('done' in tried) return tried.done
    if (tries > retry.times) return giveUp(executor, call, tried.missed, tries)
    await timers.sleep(retry.delayMs(tries, random), signal)
  }
}

async function attempt(executor: Executor, call: Call): Promise<Tried> {
  const { key, stream, signal } = call
  try {
    await stream.load(executor.timers, signal)
  } catch (error) {
    if (call.isInDoubt && isPassing(error)) return { missed: error }
    throw error
  }
  if (stream.found) return { done: doneBefore(call, stream.found) }
  const { version, position, state } = stream
  // Not in any try of ours: what it throws is the caller's, even if it looks like a conflict, because it runs a command itself.
  const drafts = readDecision(await call.decide(state, { key, version }))
  if (drafts.length === 0) return { done: { outcome: 'unchanged', version, position, state, events: [] } }
  return append(executor, call, await admitAll(executor, call, drafts))
}

async function append(executor: Executor, call: Call, events: readonly NewEvent[]): Promise<Tried> {
  const { key, stream, sent, signal } = call
  const written: Event[] = []
  let { state } = stream
  // Before they are written: events that its own fold can't take would stop every later command of the key.
  for (const [i, event] of events.entries()) {
    const place = { key, version: stream.version + i + 1, position: 0 }
    const logged = await readLogged({ ...event, ...place }, executor.catalog)
    state = stream.fold(state, logged)
    written.push(eventOf(logged))
  }
  signal?.throwIfAborted()
  for (const { id } of events) sent.add(id)
  const expected = stream.version === 0 ? 'new' : stream.version
  try {
    const { version, position } = settle(key, expected, await executor.store.append(key, events, expected))
    return { done: { outcome: 'executed', version, position, state, events: written } }
  } catch (error) {
    if (error instanceof ExpectedVersionError) return { missed: error }
    if (!isPassing(error)) throw error
    call.isInDoubt = true
    return { missed: error }
  }
}

/** Tells how it was, unless it turns out that all is well: whoever was first may have been the same command, asked for twice. */
async function giveUp({ timers }: Executor, call: Call, missed: HoldfastError, tries: number): Promise<Done> {
  const { key, stream, command, isInDoubt, signal } = call
  if (command || isInDoubt) {
    await stream.load(timers, signal).catch((error: unknown) => {
      if (!isPassing(error)) throw error
    })
    if (stream.found) return doneBefore(call, stream.found)
  }
  if (missed instanceof ExpectedVersionError) throw new ExpectedVersionError(key, missed.expected, missed.actual, tries)
  throw missed
}

function doneBefore({ stream, sent }: Call, events: readonly Event[]): Done {
  const { version, position, state } = stream
  const isOwn = events.some(({ id }) => sent.has(id))
  return { outcome: isOwn ? 'executed' : 'repeated', version, position, state, events }
}

/** After these it isn't known whether what was asked for is done: a store may have tried more than once, and lost one answer. */
function isPassing(error: unknown): error is StoreError {
  return error instanceof StoreError && (error.code === 'STORE_UNAVAILABLE' || error.code === 'STORE_BUSY')
}

function readDecision(decided: unknown): readonly Draft[] {
  if (decided === undefined) return []
  if (Array.isArray(decided)) return decided
  const what = decided === null ? 'null' : `something of type ${typeof decided}`
  throw new HoldfastError('OPTION_INVALID', `decide returned ${what}.`, {
    hint: 'Return a list of events, or nothing.',
  })
}

async function admitAll(executor: Executor, call: Call, drafts: readonly Draft[]): Promise<readonly NewEvent[]> {
  const marked = drafts.map((draft, i) => mark(draft, `events[${i}]`, executor.nextId(), call))
  const { events, pending } = executor.admit(marked, executor.catalog)
  await Promise.all(pending)
  return events
}

function mark(draft: Draft, path: string, id: string, { command, metadata: shared }: Call): Draft {
  // What is no event, the door refuses; and says why.
  if (typeof draft !== 'object' || draft === null) return draft
  if (draft.id !== undefined) {
    throw new InvalidEventError('EVENT_FIELD_INVALID', `${path}.id`, `${path}.id is not for a command to give.`, {
      hint: 'Give execute an idempotencyKey to run a command once.',
    })
  }
  const { metadata: own = {} } = draft
  if (typeof own !== 'object' || own === null || Array.isArray(own)) return draft
  return { ...draft, id, metadata: markMetadata({ ...shared, ...own }, `${path}.metadata`, id, command) }
}
