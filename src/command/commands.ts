import { HoldfastError } from '../errors.ts'
import { type DataOf, type EventCatalog, type EventOf, functionsOf, type TypeName } from '../event/catalog.ts'
import type { Event, Metadata } from '../event/event.ts'
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

/** An event that a decision asks for. Its id is ours to give: an `idempotencyKey` is what makes a command run once. */
export type DecidedEvent<C> = DraftOf<C> & { readonly id?: never }

/** The events to append, or nothing. */
export type Decided<C> = readonly DecidedEvent<C>[] | undefined

/** What a decision knows beside the state. */
export interface DecideContext {
  readonly key: string
  /** Of the state; 0 for a key without events. */
  readonly version: number
}

/**
 * May be asynchronous, and runs again, on a newer state, when somebody else appended first. So it should do nothing that can't be done
 * twice.
 */
export type Decide<C, State> = (state: Readonly<State>, context: DecideContext) => Decided<C> | Promise<Decided<C>>

export interface CommandsOptions<C extends EventCatalog, State> extends Partial<Runtime> {
  readonly store: { readonly log: LogStore }
  readonly events: C
  /** The state of a key before its first event. */
  readonly initial: (key: string) => State
  /**
   * What each type of event does to the state. Pure, like the fold of a projection. The state is plain objects, lists and values, and is
   * frozen; return a new one.
   */
  readonly on: {
    readonly [T in TypeName<C>]?: (state: NoInfer<Readonly<State>>, event: Event<T, DataOf<C, T>>) => NoInfer<State>
  }
  /** What to do when somebody else appended first. 3 times after 50 ms, 100 ms and 200 ms unless you say otherwise. */
  readonly retry?: CommandRetry | false
}

export interface ExecuteOptions {
  /**
   * The command runs once for its key, however often it is asked for under this name: the events it appends carry the name, so they
   * are there together. One that decided nothing leaves no trace, and decides again.
   */
  readonly idempotencyKey?: string
  /** What the command is about, as JSON: the same `idempotencyKey` for something else is then a `CommandConflictError`. */
  readonly content?: unknown
  /** Ends the waiting and the reading. What is being appended then is appended. */
  readonly signal?: AbortSignal
  /** For every event of the command that doesn't say otherwise. */
  readonly metadata?: Metadata
}

export interface Executed<C, State> {
  /**
   * `executed`: its events are in the log. `unchanged`: it decided nothing. `repeated`: it was executed before, and this is what it came
   * to then.
   */
  readonly outcome: 'executed' | 'unchanged' | 'repeated'
  /** Of the last event of the command; of the key, where it decided nothing. */
  readonly version: number
  readonly position: number
  /** At that version. */
  readonly state: Readonly<State>
  readonly events: readonly EventOf<C>[]
}

export interface Commands<C extends EventCatalog, State> {
  /** Reads the events of a key, folds them, decides, and appends what was decided if nobody else has appended meanwhile. */
  execute(key: string, decide: Decide<C, State>, options?: ExecuteOptions): Promise<Executed<C, State>>
}

const optionNames = ['store', 'events', 'initial', 'on', 'retry', 'clock', 'timers', 'random']
const idLength = 512

export function createCommands<const C extends EventCatalog, State>(
  options: CommandsOptions<C, State>,
): Commands<C, State> {
  checkOptions(options, 'createCommands', optionNames)
  checkStore(options.store, 'createCommands')
  const { store, events: catalog, initial, on, retry = {} } = options
  const { clock = systemRuntime.clock, timers = systemRuntime.timers, random = systemRuntime.random } = options
  if (typeof initial !== 'function') throw invalid('initial is not a function.')
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
      // The fold made the state of `initial` and `on`, and the log read the events by the catalog.
      return done as Executed<C, State>
    },
  }
}

function readRequest(key: string, decide: Request['decide'], asked: ExecuteOptions): Request {
  checkOptions(asked, 'execute', ['idempotencyKey', 'content', 'signal', 'metadata'])
  const { idempotencyKey, content, signal, metadata = {} } = asked
  checkKey(key)
  if (typeof decide !== 'function') throw invalid('decide is not a function.')
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal is no AbortSignal.')
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw invalid('metadata is not an object.')
  if (idempotencyKey === undefined) {
    if (content !== undefined) throw invalid('content says what an idempotencyKey stands for, and there is none.')
    return { key, decide, command: undefined, signal, metadata }
  }
  const id = checkReadable(idempotencyKey, 'idempotencyKey', idLength)
  const fingerprint = content === undefined ? undefined : fingerprintOf(content)
  return { key, decide, command: { id, fingerprint }, signal, metadata }
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', message)
}
