import {
  type Clock,
  createEngine,
  type Engine,
  type EngineOptions,
  type Operator,
  type Projection,
  type Store,
} from 'holdfast'
import { createTemporaryStore, createVirtualRuntime, type VirtualRuntime } from 'holdfast/testing'
import { z } from 'zod'
import { defineEvents, defineProjection } from '../src/index.ts'
import { operatorOf } from './acts.ts'

// A small bank that the tests of several parts share.

export const bank = defineEvents({
  Credited: z.object({ amount: z.number() }),
  Debited: z.object({ amount: z.number() }),
  Renamed: z.object({ owner: z.string() }),
})

/** Debits below zero throw: such an event is poison. Renamed is known but not subscribed to. */
export const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0, seen: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount, seen: row.seen + 1 }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance) throw new RangeError(`can not take ${data.amount} from ${row.balance}`)
      return { balance: row.balance - data.amount, seen: row.seen + 1 }
    },
  },
  columns: { balance: 'real' },
})

export const credited = (amount: number) => ({ type: 'Credited', data: { amount } }) as const
export const debited = (amount: number) => ({ type: 'Debited', data: { amount } }) as const

export interface World extends AsyncDisposable {
  readonly store: Store & { readonly file: string }
  readonly runtime: VirtualRuntime
  /** An engine in virtual time; started and drained by `settle`. */
  engine(subscriptions?: EngineOptions['subscriptions'], options?: Partial<EngineOptions>): Engine
  /** Of the same store, under the name `test`. */
  operator(subscriptions?: EngineOptions['subscriptions']): Operator
  /** Starts an engine if it isn't, and lets it work until nothing is left to do. */
  settle(engine: Engine): Promise<void>
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

export async function createWorld(clock?: Clock): Promise<World> {
  const runtime = createVirtualRuntime()
  const store = await createTemporaryStore({ clock: clock ?? runtime.clock })
  const engines = new Set<Engine>()
  const started = new Set<Engine>()
  return {
    store,
    runtime,
    engine: (subscriptions = [balances], options = {}) => {
      const engine = createEngine({ store, subscriptions, logger: silent, ...runtime, ...options })
      engines.add(engine)
      return engine
    },
    operator: (subscriptions = [balances]) => operatorOf(store, subscriptions, runtime),
    settle: async (engine) => {
      if (!started.has(engine)) await engine.start()
      started.add(engine)
      await engine.drain()
    },
    [Symbol.asyncDispose]: async () => {
      const stopping = Promise.all(Array.from(engines, (engine) => engine.stop()))
      // One whose store is away waits for it until its time is up.
      await runtime.advance(10_000)
      await stopping
      await store.close()
    },
  }
}

/** The row of a key in a projection, without its key. */
export async function rowOf(engine: Engine, key: string, projection: Projection = balances) {
  const row = await engine.read(projection).get(key)
  return row && { version: row.version, data: row.data }
}

export async function countsOf(engine: Engine, name = 'balances') {
  const { subscriptions } = await engine.status()
  return subscriptions.find((subscription) => subscription.name === name)?.stored?.counts
}

export async function heldOf(engine: Engine, subscription = 'balances') {
  const letters = await engine.letters({ subscription, limit: 10_000 })
  return letters.filter(({ endedAt }) => endedAt === undefined)
}
