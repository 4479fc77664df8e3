import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { Engine, EngineOptions } from '../../engine/process/engine.ts'
import { HoldfastError } from '../../errors.ts'
import { createOperator } from '../../operator/operator.ts'
import type { Projection } from '../../projection/projection.ts'
import { type Duration, toMs } from '../../runtime/duration.ts'
import { checkOptions } from '../../runtime/options.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'
import { createVirtualRuntime, type VirtualRuntime } from '../virtual.ts'
import { appendAll, type CatalogOf, checkList, type PlacedEvent, type TestEvent } from './events.ts'
import { createProcess, type TestProcess } from './process.ts'
import { heldLetters, rowsOf } from './look.ts'
import { createKitStore } from './store.ts'

export interface TestEngineOptions<S extends readonly (Consumer | Subscription)[]>
  extends Pick<EngineOptions, 'page' | 'cacheBytes' | 'logger' | 'retention'> {
  readonly subscriptions: S
  /** Creates the store with the given clock. Default: a new in-memory store. It is closed with the engine. */
  readonly store?: (runtime: Runtime) => Store | Promise<Store>
  /** The start time, in milliseconds since 1970. Default: 2026-01-01. */
  readonly now?: number
  /** The seed of all randomness, such as the jitter of retries. Default: 1. */
  readonly seed?: number
}

/** A whole app in a test: the real engine, on its own store, in virtual time. */
export interface TestEngine<C> extends AsyncDisposable {
  readonly store: Store
  readonly runtime: VirtualRuntime
  /** The running engine; `fix` replaces it. */
  readonly engine: Engine
  /** Each event is checked by its catalog, like any append. */
  append(events: readonly TestEvent<C>[]): Promise<readonly PlacedEvent[]>
  /** Runs until everything has its outcome, or until only time changes something. */
  settle(): Promise<void>
  /** Advances time, and runs everything that becomes due. */
  advance(duration: Duration): Promise<void>
  /** All rows of a projection, by key. */
  rows<Row, Columns>(projection: Projection<Row, Columns>): Promise<Record<string, Row>>
  /** The held letters of one subscription or of all. */
  letters(subscription?: string): Promise<readonly DeadLetter[]>
  /**
   * Deploys new code: each given subscription replaces the one with its name, and parked lanes of the replaced ones are redriven.
   * Without arguments it is a restart.
   */
  fix(...subscriptions: readonly (Consumer | Subscription)[]): Promise<void>
}

const optionNames = ['subscriptions', 'store', 'now', 'seed', 'page', 'cacheBytes', 'logger', 'retention']

export async function createTestEngine<const S extends readonly (Consumer | Subscription)[]>(
  options: TestEngineOptions<S>,
): Promise<TestEngine<CatalogOf<S[number]>>> {
  checkOptions(options, 'createTestEngine', optionNames)
  const { subscriptions: declared, store: open, now, seed, ...engineOptions } = options
  if (!Array.isArray(declared))
    throw new HoldfastError('OPTION_INVALID', 'createTestEngine needs an array of subscriptions.')
  const runtime = createVirtualRuntime({ ...(now !== undefined && { now }), ...(seed !== undefined && { seed }) })
  const store = await (open ? open({ ...runtime }) : createKitStore(runtime.clock))
  let subscriptions: readonly (Consumer | Subscription)[] = declared
  let process = begin()

  return {
    store,
    runtime,
    get engine() {
      return process.engine
    },
    append: async (events) => {
      checkList(events, 'append')
      return appendAll(store, runtime, subscriptions, events)
    },
    settle: () => process.settle(),
    advance: async (duration) => {
      await process.start()
      await runtime.advance(toMs(duration, 'The time to advance'))
    },
    rows: (projection) => rowsOf(store, projection),
    letters: (name) => heldLetters(store, name === undefined ? subscriptions.map((one) => one.name) : [name]),
    fix,
    [Symbol.asyncDispose]: async () => {
      await process.stop((ms) => runtime.advance(ms))
      await store.close()
    },
  }

  function begin(): TestProcess {
    return createProcess({ ...runtime, ...engineOptions, store, subscriptions })
  }

  async function fix(...fixed: readonly (Consumer | Subscription)[]): Promise<void> {
    const names = subscriptions.map(({ name }) => name)
    for (const { name } of fixed) {
      if (names.includes(name)) continue
      throw new HoldfastError(
        'SUBSCRIPTION_UNKNOWN',
        `This engine has no subscription ${JSON.stringify(name)} to fix.`,
        {
          hint: `Subscriptions: ${names.join(', ') || 'none'}.`,
        },
      )
    }
    await process.stop((ms) => runtime.advance(ms))
    subscriptions = subscriptions.map((old) => fixed.find(({ name }) => name === old.name) ?? old)
    for (const { name } of fixed) await letGo(name)
    process = begin()
    await process.settle()
  }

  async function letGo(name: string): Promise<void> {
    const letters = await heldLetters(store, [name])
    if (!letters.some(({ status }) => status === 'parked')) return
    const operator = createOperator({ ...runtime, store, subscriptions, by: 'a test' })
    await operator.redrive(name, { filter: { status: 'parked' } }, { reason: 'new code' })
  }
}
