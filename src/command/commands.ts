import { HoldfastError } from '../errors.ts'
import { type EventCatalog, type EventOf, functionsOf } from '../event/catalog.ts'
import type { Metadata } from '../event/event.ts'
import { createIds } from '../event/identity.ts'
import { checkReadable } from '../event/names.ts'
import { checkKey, createAdmit, type DraftOf } from '../log/admit.ts'
import { createLog } from '../log/log.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Reducer } from '../projection/projection.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import { type Executor, execute, type Request } from './execute.ts'
import { fingerprintOf } from './mark.ts'
import { type CommandRetry, readRetry } from './retry.ts'
import type { ComparedReducers, StateReducers, StateResults } from './state-types.ts'

/** An event that `decide` returns. It has no id: use `idempotencyKey` to run a command once. */
export type DecidedEvent<C> = DraftOf<C> & { readonly id?: never }

/** The events to append, or nothing. */
export type Decided<C> = readonly DecidedEvent<C>[] | undefined

/** What `decide` gets besides the state. */
export interface DecideContext {
  readonly key: string
  /** The version of the state; 0 for a key without events. */
  readonly version: number
}

/** May be asynchronous. Runs again on a newer state if another process appended first, so it must have no side effects. */
export type Decide<C, State> = (state: Readonly<State>, context: DecideContext) => Decided<C> | Promise<Decided<C>>

export interface CommandsOptions<C extends EventCatalog, State, Reducers = StateReducers<C, State>>
  extends Partial<Runtime> {
  readonly store: { readonly log: LogStore }
  readonly events: C
  /** The state of a key before its first event. */
  readonly initial: (key: string) => State
  /**
   * How each event type changes the state. Pure, like the fold of a projection. The state consists of plain objects, arrays and
   * values, and is frozen; return a new one.
   */
  readonly on: Reducers
  /** Retries when another process appended first. Default: 3 times, after 50, 100 and 200 ms. */
  readonly retry?: CommandRetry | false
}

export interface ExecuteOptions {
  /**
   * The command runs once per key and `idempotencyKey`: the appended events carry it in their metadata. A command that decided
   * nothing leaves no trace, and decides again.
   */
  readonly idempotencyKey?: string
  /** The content of the request, as JSON: the same `idempotencyKey` with different content throws a `CommandConflictError`. */
  readonly content?: unknown
  /** Cancels waiting and reading. An append that has started is not cancelled. */
  readonly signal?: AbortSignal
  /** For every event of the command that has no metadata of its own. */
  readonly metadata?: Metadata
}

export interface Executed<C, State> {
  /**
   * `executed`: the events are in the log. `unchanged`: it decided nothing. `repeated`: it was executed before, and this is the
   * earlier result.
   */
  readonly outcome: 'executed' | 'unchanged' | 'repeated'
  /** Of the last event of the command; of the key, if it decided nothing. */
  readonly version: number
  readonly position: number
  /** The state at that version. */
  readonly state: Readonly<State>
  readonly events: readonly EventOf<C>[]
}

export interface Commands<C extends EventCatalog, State> {
  /**
   * Reads the events of a key, folds them, decides, and appends the decided events if no other process has appended in the
   * meantime.
   */
  execute(key: string, decide: Decide<C, State>, options?: ExecuteOptions): Promise<Executed<C, State>>
}

const optionNames = ['store', 'events', 'initial', 'on', 'retry', 'clock', 'timers', 'random']
const idLength = 512

export function createCommands<
  const C extends EventCatalog,
  State,
  // `const` keeps `status: 'placed'` from becoming a string before it is compared with the state.
  const Results extends StateResults<C>,
>(options: CommandsOptions<C, State, ComparedReducers<C, State, Results>>): Commands<C, State> {
  checkOptions(options, 'createCommands', optionNames)
  checkStore(options.store, 'createCommands')
  const { store, events: catalog, initial, on, retry = {} } = options
  const { clock = systemRuntime.clock, timers = systemRuntime.timers, random = systemRuntime.random } = options
  if (typeof initial !== 'function') throw invalid('initial must be a function.')
  const executor: Executor = {
    store: store.log,
    log: createLog<EventCatalog>({ store, events: catalog, clock, timers, random }),
    catalog,
    fold: { initial, reducers: functionsOf<Reducer>('createCommands', catalog, on) },
    retry: readRetry(retry),
    admit: createAdmit(clock, random),
    nextId: createIds(clock, random),
    timers,
    random,
  }
  return {
    execute: async (key, decide, asked = {}) => {
      const done = await execute(executor, readRequest(key, decide as Request['decide'], asked))
      // The state comes from `initial` and `on`, and the log read the events by the catalog.
      return done as Executed<C, State>
    },
  }
}

function readRequest(key: string, decide: Request['decide'], asked: ExecuteOptions): Request {
  checkOptions(asked, 'execute', ['idempotencyKey', 'content', 'signal', 'metadata'])
  const { idempotencyKey, content, signal, metadata = {} } = asked
  checkKey(key)
  if (typeof decide !== 'function') throw invalid('decide must be a function.')
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal must be an AbortSignal.')
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw invalid('metadata must be an object.')
  if (idempotencyKey === undefined) {
    if (content !== undefined) throw invalid('content needs an idempotencyKey.')
    return { key, decide, command: undefined, signal, metadata }
  }
  const id = checkReadable(idempotencyKey, 'idempotencyKey', idLength)
  const fingerprint = content === undefined ? undefined : fingerprintOf(content)
  return { key, decide, command: { id, fingerprint }, signal, metadata }
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', message)
}
