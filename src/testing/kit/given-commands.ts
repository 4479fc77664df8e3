import type { Commands, Decide, DecidedEvent, ExecuteOptions } from '../../command/commands.ts'
import { HoldfastError } from '../../errors.ts'
import { diffJson } from '../../event/diff.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Event } from '../../event/event.ts'
import { createLog } from '../../log/log.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import { createVirtualRuntime } from '../virtual.ts'
import { Claim, firstDifference, shown } from './claim.ts'
import { titleOf, type TestEvent } from './events.ts'
import { checkExpectedError, type ExpectedError, isExpectedError, named, traitsOf } from './expected-error.ts'
import { checkExpected, notAwaitable } from './not-awaitable.ts'
import { explain, OutsideWatch } from './outside.ts'
import { createKitStore } from './store.ts'
import { watched } from './watched.ts'

/** The options that a test passes to `createCommands`. */
export interface CommandParts extends Runtime {
  readonly store: Store
}

export interface WhenOptions extends Pick<ExecuteOptions, 'idempotencyKey' | 'content' | 'metadata'> {
  /** Default: the key of the given events, if they have one key; any key, if there are none. */
  readonly key?: string
}

export class GivenCommands<C extends EventCatalog, State> {
  readonly #make: (parts: CommandParts) => Commands<C, State>
  readonly #past: readonly TestEvent[]

  constructor(make: (parts: CommandParts) => Commands<C, State>, past: readonly TestEvent[]) {
    this.#make = make
    this.#past = past
  }

  when(decide: Decide<C, State>, options: WhenOptions = {}): WhenDecided<C> {
    // Otherwise the command would be refused, as the test may even expect.
    if (typeof decide !== 'function')
      throw new HoldfastError('OPTION_INVALID', 'given(…).when(…) of commands needs a decide function.', {
        hint: 'Give a function that takes the state and returns events, such as (state) => [{ type, data }].',
      })
    const key = options.key ?? this.#onlyKey()
    return new WhenDecided(async (watch) => {
      const runtime = createVirtualRuntime()
      await using store = await createKitStore(runtime.clock)
      const { key: _, ...asked } = options
      const commands = watch.run(() => this.#make({ ...runtime, store }))
      for (const [i, event] of this.#past.entries()) await happen(watch, commands, event, titleOf(this.#past, i))
      const { events, version } = await watch.run(() => commands.execute(key, watched(decide, watch), asked))
      // As written, like in the test; a schema may change it when it is read.
      const written: Written[] = []
      const place = { after: version - events.length, limit: events.length }
      for await (const event of createLog({ store }).readKey(key, place)) written.push(event)
      return written
    })
  }

  #onlyKey(): string {
    const keys = new Set(this.#past.map(({ key }) => key))
    const [first = 'some-key', second] = keys
    if (second === undefined) return first
    throw new HoldfastError('OPTION_INVALID', `The given events have ${keys.size} keys.`, {
      hint: 'Select the key of the command: .when(decide, { key }).',
    })
  }
}

/** Appended by the commands, since only they know the catalog. */
async function happen<C extends EventCatalog, State>(
  watch: OutsideWatch,
  commands: Commands<C, State>,
  { key, ...draft }: TestEvent,
  title: string,
): Promise<void> {
  try {
    await watch.run(() => commands.execute(key, () => [draft as unknown as DecidedEvent<C>]))
  } catch (cause) {
    throw new PremiseError(`${title} can't be given: ${named(traitsOf(cause))}`, { cause })
  }
}

class PremiseError extends Error {}

export class WhenDecided<C extends EventCatalog> {
  readonly #execute: (watch: OutsideWatch) => Promise<readonly Written[]>

  constructor(execute: (watch: OutsideWatch) => Promise<readonly Written[]>) {
    this.#execute = execute
  }

  /** Expects exactly these events in this order; `[]` for a command that changes nothing. */
  // oxlint-disable-next-line unicorn/no-thenable -- it ends the sentence; an early await throws
  then(events: readonly DecidedEvent<C>[]): Promise<void> {
    notAwaitable(events, 'given(…).when(decide)', 'the events')
    checkExpected(events, 'then', 'an array of events, [] for none', true)
    return this.#checkEvents(new Claim('then'), events as readonly DecidedEvent<EventCatalog>[])
  }

  /** Expects an error: its `code`, the name of its class, or a pattern for its message. */
  thenRefused(error: ExpectedError): Promise<void> {
    checkExpectedError(error)
    return this.#checkRefused(new Claim('thenRefused'), error)
  }

  async #checkEvents(claim: Claim, events: readonly DecidedEvent<EventCatalog>[]): Promise<void> {
    const done = await this.#run(claim)
    if ('refused' in done)
      claim.fail([`The command was refused: ${named(traitsOf(done.refused))}`], {
        actual: done.refused,
        expected: events,
      })
    const expected = events.map(writtenForm)
    // Of the metadata, only the fields that the test expects.
    const actual = done.events.map(({ type, data, metadata }, i) => {
      const wanted = Object.keys(expected[i]?.metadata ?? {})
      return { type, data, metadata: Object.fromEntries(wanted.map((name) => [name, metadata[name]])) }
    })
    if (diffJson(expected, actual).length === 0) return
    const lines = [`  Decided   ${shown(actual)}`, `  expected  ${shown(expected)}`]
    claim.fail([`The command decided something else: ${firstDifference(expected, actual)}.`, ...lines], {
      actual,
      expected,
    })
  }

  async #checkRefused(claim: Claim, expected: ExpectedError): Promise<void> {
    const done = await this.#run(claim)
    if (!('refused' in done)) {
      const decided = done.events.map(({ type, data }) => ({ type, data }))
      claim.fail([`Expected the command to be refused with ${shown(expected)}, but it decided ${shown(decided)}.`], {
        actual: decided,
        expected,
      })
    }
    const traits = traitsOf(done.refused)
    if (!isExpectedError(traits, expected))
      claim.fail(
        [`Expected the command to be refused with ${shown(expected)}, but it was refused with ${named(traits)}`],
        {
          actual: done.refused,
          expected,
        },
      )
  }

  async #run(claim: Claim): Promise<Decision> {
    using watch = new OutsideWatch()
    let done: Decision
    try {
      done = { events: await this.#execute(watch) }
    } catch (refused) {
      if (refused instanceof PremiseError) claim.fail([refused.message])
      done = { refused }
    }
    if (watch.calls.length > 0)
      claim.fail(['The decision depends on more than its arguments.', ...explain(watch.calls, 'decision')])
    return done
  }
}

type Written = Pick<Event, 'type' | 'data' | 'metadata'>

type Decision = { readonly events: readonly Written[] } | { readonly refused: unknown }

function writtenForm({ type, data, json, metadata = {} }: DecidedEvent<EventCatalog>): Written {
  return { type, data: JSON.parse(json ?? JSON.stringify(data)) as unknown, metadata }
}
