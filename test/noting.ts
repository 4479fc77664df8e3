import {
  createLog,
  defineHandler,
  type Engine,
  type EngineEventName,
  type EngineEvents,
  type EngineOptions,
  type HandlerContext,
  type HandlerDefinition,
  type Store,
  StoreError,
} from '../src/index.ts'
import { bank, credited, type World } from './fixtures.ts'

// A handler that notes what it is called with, and a world around it that fails as told. The tests of several parts share them.

export interface Call {
  readonly key: string
  readonly amount: number
  readonly id: string
  /** In milliseconds since the test began. */
  readonly at: number
  readonly ctx: HandlerContext
}

export type Options = Partial<HandlerDefinition<typeof bank>> & { readonly name?: string }

/** Notes each call, and then does what `act` says. */
export function noting(world: World, act: (call: Call) => unknown = () => undefined, options: Options = {}) {
  const { name = 'notify', ...definition } = options
  const calls: Call[] = []
  const handler = defineHandler(name, {
    events: bank,
    on: {
      Credited: (event, ctx) => {
        const at = world.runtime.clock.mono()
        const call = { key: event.key, amount: event.data.amount, id: event.id, at, ctx }
        calls.push(call)
        return act(call)
      },
    },
    ...definition,
  })
  return {
    handler,
    calls,
    callsOf: (key: string) => calls.filter((call) => call.key === key).map(({ amount }) => amount),
  }
}

/** So many events for each key, turn by turn, with 1, 2, 3, … as amounts. */
export async function fill(world: World, keys: readonly string[], events: number): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  for (let i = 1; i <= events; i++) for (const key of keys) await log.append(key, [credited(i)])
}

export function keysOf(count: number, name = 'key'): string[] {
  return Array.from({ length: count }, (_, i) => `${name}-${i}`)
}

export async function run(world: World, engine: Engine, ms: number): Promise<void> {
  await engine.start()
  await world.runtime.advance(ms)
}

/**
 * For hours and days: no process polls, renews or looks around more often than every ten minutes, or at the breakers that lanes wait for more
 * often than every half minute. How often they do can't be set; several times a second for a day is what takes the time of such a test, and
 * says nothing in it.
 */
export function calm({ runtime }: World): Partial<EngineOptions> {
  const calmed = new Map([
    [250, 600_000],
    [500, 30_000],
  ])
  const { timers } = runtime
  return {
    poll: '10m',
    lease: '30m',
    timers: { ...timers, sleep: (ms, signal) => timers.sleep(calmed.get(ms) ?? ms, signal) },
  }
}

/** Everything an engine tells under some names, in order. */
export function heard<Name extends EngineEventName>(engine: Engine, ...names: Name[]) {
  const all: ({ readonly name: Name } & EngineEvents[Name])[] = []
  for (const name of names) engine.on(name, (event) => all.push({ name, ...event }))
  return all
}

export type Fault = 'before' | 'after' | undefined

/** The real store, whose commits fail as told: before anything reached it, or after all of it did, so that the caller can't know. */
export function faulty(store: Store, next: () => Fault): Store {
  const { subscriptions } = store
  return {
    ...store,
    subscriptions: {
      ...subscriptions,
      commit: async (commit) => {
        const fault = next()
        if (fault === 'before') throw away()
        const outcome = await subscriptions.commit(commit)
        if (fault === 'after') throw away()
        return outcome
      },
    },
  }
}

/** The real store, none of whose parts answers while it is down. */
export function unreachable(store: Store, isDown: () => boolean): Store {
  const cut = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function' || name === 'onAppend' || name === 'onRelease') return member
        return async (...args: unknown[]) => {
          if (isDown()) throw away()
          return (member as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    })
  const { log, subscriptions, letters, rows, inbox, breakers } = store
  return {
    ...store,
    log: cut(log),
    subscriptions: cut(subscriptions),
    letters: cut(letters),
    rows: cut(rows),
    inbox: cut(inbox),
    breakers: cut(breakers),
  }
}

export function away(): StoreError {
  return new StoreError('STORE_UNAVAILABLE', 'The test took the store away.')
}

export async function stateOf(engine: Engine, name = 'notify') {
  const { subscriptions } = await engine.status()
  return subscriptions.find((subscription) => subscription.name === name)?.state
}
