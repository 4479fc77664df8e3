import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { Engine, EngineOptions } from '../../engine/engine.ts'
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
  /** Where to keep everything, if it is not to be in a store of its own: make it with this clock. It is closed with the engine. */
  readonly store?: (runtime: Runtime) => Store | Promise<Store>
  /** When it begins, in milliseconds since 1970. The first of January 2026 unless you say otherwise. */
  readonly now?: number
  /** For everything that is left to chance, such as the jitter of retries. 1 unless you say otherwise. */
  readonly seed?: number
}

/** A whole app in a test: the real engine, on a store of its own, in a time that goes on only when it is told to. */
export interface TestEngine<C> extends AsyncDisposable {
  readonly store: Store
  readonly runtime: VirtualRuntime
  /** The one that runs now; `fix` makes another. */
  readonly engine: Engine
  /** Each is checked by its catalog, like any append. */
  append(events: readonly TestEvent<C>[]): Promise<readonly PlacedEvent[]>
  /** Lets it work until everything has its outcome, or until only time can bring that about. */
  settle(): Promise<void>
  /** Lets time go on, and everything that becomes due meanwhile be done. */
  advance(duration: Duration): Promise<void>
  /** All rows of a projection, by key. */
  rows<Row, Columns>(projection: Projection<Row, Columns>): Promise<Record<string, Row>>
  /** What is held, by one subscription or by all. */
  letters(subscription?: string): Promise<readonly DeadLetter[]>
  /**
   * Deploys new code: what is given takes the place of that which has its name, and what that had parked is let go. Without anything given it is
   * a restart.
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
    throw new HoldfastError('OPTION_INVALID', 'createTestEngine needs a list of subscriptions.')
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
          hint: `It has ${names.join(', ') || 'none'}.`,
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
