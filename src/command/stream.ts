import { HoldfastError } from '../errors.ts'
import type { EventCatalog } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import { disarm } from '../failure/failure.ts'
import type { Log } from '../log/log.ts'
import type { Logged } from '../log/logged.ts'
import type { Reducer } from '../projection/projection.ts'
import type { Timers } from '../runtime/ports.ts'
import { freezeState } from './freeze.ts'

export interface Fold {
  readonly initial: (key: string) => unknown
  readonly reducers: ReadonlyMap<string, Reducer>
}

// The stores answer without yielding to the event loop; other work must run while a long stream is folded.
const eventsPerTurn = 1_000

/**
 * The events of one key, folded as far as they were read. `load` continues from there, so that a command reads only new events
 * after a conflict. It keeps one state and the events that the command itself wrote: it stops after them, and `version`,
 * `position` and `state` are then the result of that run.
 */
export class Stream {
  readonly key: string
  version = 0
  position = 0
  state: unknown
  found: Event[] | undefined
  readonly #log: Log<EventCatalog>
  readonly #fold: Fold
  readonly #isOurs: (event: Event) => boolean

  constructor(log: Log<EventCatalog>, key: string, fold: Fold, isOurs: (event: Event) => boolean) {
    this.key = key
    this.#log = log
    this.#fold = fold
    this.#isOurs = isOurs
    this.state = fold.initial(key)
    freezeState(this.state)
  }

  async load(timers: Timers, signal: AbortSignal | undefined): Promise<void> {
    const reading = this.#log.readKey(this.key, { after: this.version, ...(signal && { signal }) })
    for await (const logged of reading) {
      const isFound = this.#isOurs(logged)
      // They were appended together, so they are adjacent.
      if (this.found && !isFound) return
      this.state = this.fold(this.state, logged)
      this.version = logged.version
      this.position = logged.position
      if (isFound) (this.found ??= []).push(eventOf(logged))
      if (this.version % eventsPerTurn === 0) await timers.yield()
    }
  }

  fold(state: unknown, event: Event): unknown {
    const reducer = this.#fold.reducers.get(event.type)
    if (!reducer) return state
    let after: unknown
    try {
      after = reducer(state, event)
    } catch (cause) {
      const where = `version ${event.version} of ${JSON.stringify(this.key)}, a ${event.type}`
      const why = cause instanceof Error ? cause.message : 'a value that is not an Error'
      const hint = 'Nothing was written.'
      throw new HoldfastError('FOLD_FAILED', `The fold threw at ${where}: ${why}.`, { cause, hint })
    }
    disarm(after)
    if (after !== state) freezeState(after)
    return after
  }
}

/** The event without its place in the log, which is known for an event that was read, and not for one that was just written. */
export function eventOf({ id, type, key, version, data, metadata, time }: Event & Logged): Event {
  return { id, type, key, version, data, metadata, time }
}
