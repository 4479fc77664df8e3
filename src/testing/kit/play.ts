import { isDeepStrictEqual } from 'node:util'
import { HoldfastError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Handler } from '../../handler/handler.ts'
import type { Projection } from '../../projection/projection.ts'
import type { Store } from '../../store.ts'
import { defineSubscription } from '../../subscription/subscription.ts'
import { Mortality } from '../mortal.ts'
import { createVirtualRuntime, type VirtualRuntime } from '../virtual.ts'
import { appendAll, type PlacedEvent, type TestEvent } from './events.ts'
import { dueLanes, heldLetters, rowsOf } from './look.ts'
import { type OutsideCall, OutsideWatch } from './outside.ts'
import { createProcess, type TestProcess, turns } from './process.ts'
import { randomBy } from './seed.ts'
import { createKitStore } from './store.ts'
import { watchedHandler, watchedProjection } from './watched.ts'
import { reached, type Subject, type World } from './world.ts'

/** Where the first process dies: after a call to the outside had its effect, or before its n-th commit. Both start at 1. */
export type Death = { readonly after: 'call' | 'commits'; readonly number: number }

export interface Play<D> {
  readonly subject: Subject<EventCatalog, D>
  readonly events: readonly TestEvent[]
  readonly world: (() => World<D>) | undefined
  /** How the events arrive: each after the previous one is done, or all before the first one starts. */
  readonly come: 'one by one' | 'at once'
  readonly death?: Death
  /** Delays answers from outside by a random number of turns, from this seed. */
  readonly lateSeed?: number
}

/** The result of one run. */
export interface Played {
  readonly name: string
  /** By key: its row, or its observed effects. */
  readonly seen: Readonly<Record<string, unknown>>
  /** By lane: why it is held. */
  readonly held: Readonly<Record<string, string>>
  /** The calls to the outside, in order. */
  readonly calls: readonly string[]
  /** The commits before which a death causes repeated work. */
  readonly commits: readonly number[]
  /** The indices of events that were handled when the process died, and were handled again by the next one. */
  readonly repeated: readonly number[]
  readonly outside: readonly OutsideCall[]
  /** The number of applied events; for a fold, the number of rows. */
  readonly applied: number
}

const leaseMs = 10_000
// A policy may retry forever; the state after this many retries is compared.
const mostRetries = 50

/** Runs a consumer over events until nothing is left to do, with at most one death. */
export async function play<D>(options: Play<D>): Promise<Played> {
  const { subject, events, come, death } = options
  const runtime = createVirtualRuntime()
  await using store = await createKitStore(runtime.clock)
  using watch = new OutsideWatch()
  const world = options.world?.()
  const late = options.lateSeed === undefined ? () => undefined : delays(options.lateSeed)
  const calls: string[] = []
  const commits: number[] = []

  const begin = (canDie: boolean) => {
    const mortality = new Mortality()
    const called = (name: string) => {
      calls.push(name)
      if (canDie && death?.after === 'call' && calls.length === death.number) mortality.die()
    }
    const dependencies = reached(world?.dependencies as D, { mortality, called, late })
    const consumer = watched(typeof subject === 'function' ? madeHandler(subject(dependencies)) : subject, watch)
    let count = 0
    const committing = () => {
      count++
      if (canDie && death?.after === 'commits' && count === death.number) mortality.die()
      else if (consumer.kind === 'fold' || process.unwritten.size > 0) commits.push(count)
      return !mortality.isDead
    }
    const process: TestProcess = createProcess({
      ...runtime,
      timers: mortality.timers(runtime.timers),
      store: mortality.guard(told(store, committing)),
      // One partition in any store: the order of the events is what is tested.
      subscriptions: [defineSubscription(consumer, { partitions: 1 })],
      lease: leaseMs,
    })
    return { consumer, process, mortality }
  }

  const first = begin(true)
  let last = first
  const isOver = () => last.mortality.isDead
  /** If the process dies, another one continues. */
  const settle = async (how: (process: TestProcess) => Promise<void>) => {
    await how(last.process)
    if (!isOver()) return
    // Its partitions were not released.
    await runtime.advance(leaseMs + 1_000)
    last = begin(false)
    await how(last.process)
  }
  const placed: PlacedEvent[] = []
  try {
    for (const batch of come === 'at once' ? [events] : events.map((event) => [event])) {
      placed.push(...(await appendAll(store, runtime, [last.consumer], batch)))
      await settle((process) => process.settle(isOver))
    }
    await settle((process) => finish(process, store, runtime, last.consumer.name, isOver))
    const seen = await observe(store, last.consumer, events, world)
    return {
      name: last.consumer.name,
      seen,
      held: await heldIn(store, last.consumer.name),
      calls,
      commits,
      repeated: last === first ? [] : repeatedIn(placed, first.process, last.process),
      outside: watch.calls,
      applied: last.consumer.kind === 'fold' ? Object.keys(seen).length : last.process.written.size,
    }
  } finally {
    if (!isOver()) await last.process.stop((ms) => runtime.advance(ms))
  }
}

/** Whether two runs have the same result. */
export function isSame(one: Played, other: Played): boolean {
  return isDeepStrictEqual(one.seen, other.seen) && isDeepStrictEqual(one.held, other.held)
}

/** The first key with different results. */
export function differingKey(one: Played, other: Played): string | undefined {
  const keys = (part: 'seen' | 'held') =>
    [...new Set([...Object.keys(one[part]), ...Object.keys(other[part])])].find(
      (key) => !isDeepStrictEqual(one[part][key], other[part][key]),
    )
  return keys('seen') ?? keys('held')
}

/** The result of a key, with why it is held. */
export function madeOf({ seen, held }: Played, key: string): unknown {
  return Object.hasOwn(held, key) ? { is: seen[key], held: held[key] } : seen[key]
}

function madeHandler(made: unknown): Handler {
  if ((made as Partial<Handler> | null | undefined)?.kind === 'handler') return made as Handler
  throw new HoldfastError('OPTION_INVALID', 'The function that should create a handler returned something else.', {
    hint: 'Give a function such as (mailer) => defineHandler(…).',
  })
}

function watched(consumer: Projection | Handler, watch: OutsideWatch): Projection | Handler {
  return consumer.kind === 'fold' ? watchedProjection(consumer, watch) : watchedHandler(consumer, watch)
}

/** The same store; each commit first asks whether it may be made. If not, its answer never arrives. */
function told(store: Store, committing: () => boolean): Store {
  const { subscriptions } = store
  const commit: typeof subscriptions.commit = (...args) =>
    committing() ? subscriptions.commit(...args) : new Promise(() => undefined)
  return { ...store, subscriptions: { ...subscriptions, commit } }
}

/** Until time alone changes nothing any more. */
async function finish(
  process: TestProcess,
  store: Store,
  runtime: VirtualRuntime,
  subscription: string,
  isOver: () => boolean,
): Promise<void> {
  await process.settle(isOver)
  for (let i = 0; i < mostRetries && !isOver(); i++) {
    const due = [...(await dueLanes(store, subscription)).values()]
    for (const { state } of (await process.engine.status()).subscriptions)
      if (state.state === 'blocked' && state.retryAt !== undefined) due.push(state.retryAt)
    if (due.length === 0) return
    await runtime.advance(Math.max(1, Math.min(...due) - runtime.clock.now()))
    await process.settle(isOver)
  }
}

async function observe<D>(
  store: Store,
  consumer: Projection | Handler,
  events: readonly TestEvent[],
  world: World<D> | undefined,
): Promise<Record<string, unknown>> {
  if (consumer.kind === 'fold') return rowsOf(store, consumer)
  if (typeof (world as Partial<World<D>> | undefined)?.observe !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'The world has no observe function.', {
      hint: 'Give world: () => ({ dependencies, observe }), where observe(key) returns the effects for the key.',
    })
  const keys = new Set(events.map(({ key }) => key))
  const seen: [string, unknown][] = []
  for (const key of keys) {
    const observed = await world?.observe(key)
    try {
      // The next world may use the same objects.
      seen.push([key, structuredClone(observed)])
    } catch (cause) {
      const message = `The result of observe for ${key} can't be cloned.`
      throw new HoldfastError('OPTION_INVALID', message, {
        hint: 'Return plain values: strings, numbers, arrays, objects.',
        cause,
      })
    }
  }
  return Object.fromEntries(seen)
}

async function heldIn(store: Store, subscription: string): Promise<Record<string, string>> {
  const held: Record<string, string> = {}
  for (const { lane, status, failure, attempts } of await heldLetters(store, [subscription])) {
    const last = attempts.at(-1)?.failure ?? failure
    if (!Object.hasOwn(held, lane)) held[lane] = last ? `${status}: ${last.errorType}: ${last.message}` : status
  }
  return held
}

function repeatedIn(placed: readonly PlacedEvent[], first: TestProcess, next: TestProcess): number[] {
  return placed.flatMap(({ position }, i) => (first.attempts.has(position) && next.attempts.has(position) ? [i] : []))
}

function delays(seed: number): () => Promise<void> {
  const random = randomBy(seed)
  return () => turns(random.below(4))
}
