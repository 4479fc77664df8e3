import {
  type Breaker,
  type BreakerEntry,
  type BreakerState,
  type BreakerStore,
  type CreateBreakerOptions,
  createBreaker,
  createOperator,
  type Operator,
  type Runtime,
  type Store,
  StoreError,
} from 'holdfast'
import { createMemoryBreakerStore, createVirtualRuntime } from 'holdfast/testing'
import { expect } from 'vitest'

/** Fails before its effect, after it (so that nobody knows), or never answers. */
export type Outage = 'before' | 'after' | 'hang' | undefined

export interface BreakerProcess {
  readonly breaker: Breaker
  /** Such as `closed → open`. */
  readonly changes: string[]
  readonly errors: unknown[]
  /** What it asked of the store. */
  readonly calls: { load: number; save: number }
  outage: Outage
  /** Of calls that were let through: 'closed', 'probe', or 'open'. */
  readonly fail: (times?: number) => Promise<string[]>
  readonly succeed: (times?: number) => Promise<string[]>
  /** What an operator in this process does. */
  readonly isolate: () => Promise<void>
  readonly reset: () => Promise<void>
}

/** An operator of a store that has breakers and nothing else. */
export function operatorOf(breakers: BreakerStore, runtime: Partial<Runtime> = {}): Operator {
  const store = { breakers, log: undefined } as unknown as Store
  return createOperator({ store, subscriptions: [], by: 'ada', ...runtime })
}

/** Processes that share a store in memory, and the time. */
export function createBreakerWorld(shared: Partial<CreateBreakerOptions> = {}) {
  const runtime = createVirtualRuntime()
  const memory = createMemoryBreakerStore(runtime)
  /** What the shared one was, and from when on. */
  const history: { readonly at: number; readonly state: BreakerState['state'] }[] = [{ at: 0, state: 'closed' }]
  const store: BreakerStore = {
    ...memory,
    save: async (record, revision) => {
      const isSaved = await memory.save(record, revision)
      if (isSaved) history.push({ at: runtime.clock.now(), state: record.state.state })
      return isSaved
    },
  }

  function start(processId: string, options: Partial<CreateBreakerOptions> = {}): BreakerProcess {
    const calls = { load: 0, save: 0 }
    const changes: string[] = []
    const errors: unknown[] = []
    const through = async <T>(ask: () => Promise<T>): Promise<T> => {
      if (started.outage === 'hang') await new Promise(() => undefined)
      if (started.outage === 'before') throw new StoreError('STORE_UNAVAILABLE', 'It is down.')
      const answer = await ask()
      if (started.outage === 'after') throw new StoreError('STORE_UNAVAILABLE', 'It went down.')
      return answer
    }
    const own: BreakerStore = {
      load: (names) => {
        calls.load++
        return through(() => store.load(names))
      },
      save: (record, revision) => {
        calls.save++
        return through(() => store.save(record, revision))
      },
      list: () => store.list(),
    }
    const breaker = createBreaker({
      name: 'mail',
      store: { breakers: own },
      processId,
      onChange: (_, ...states) => changes.push(states.map((state?: BreakerState) => state?.state).join(' → ')),
      onStoreError: (_, error) => errors.push(error),
      ...runtime,
      ...shared,
      ...options,
    })
    const end =
      (succeeded: boolean) =>
      async (times = 1) => {
        const entries: string[] = []
        for (let i = 0; i < times; i++) {
          const entry = await breaker.enter()
          entries.push(entry.entry)
          await breaker.report(entry, succeeded)
        }
        return entries
      }
    const operator = operatorOf(own, runtime)
    const started: BreakerProcess = {
      breaker,
      changes,
      errors,
      calls,
      outage: undefined,
      fail: end(false),
      succeed: end(true),
      isolate: () => operator.isolateBreaker(breaker.name, 'maintenance', { new: true }),
      reset: () => operator.resetBreaker(breaker.name, 'it is over'),
    }
    return started
  }

  return { runtime, store, history, start, advance: (ms: number) => runtime.advance(ms) }
}

export async function entryOf(breaker: Breaker): Promise<string> {
  return (await breaker.enter()).entry
}

export async function probeOf(breaker: Breaker): Promise<BreakerEntry> {
  const entry = await breaker.enter()
  expect(entry.entry).toBe('probe')
  return entry
}
