import type { ArchivedSubscription } from '../archive/archive.ts'
import type { StoreChoice } from '../config/config.ts'
import { createEngine, type Engine } from '../engine/engine.ts'
import { createOperator, type Operator } from '../index.ts'
import { refuseBeside } from '../rebuild/live.ts'
import { nearest } from '../runtime/nearest.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Clock } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import { defineSubscription, type Subscription } from '../subscription/subscription.ts'
import { CommandError } from './errors.ts'
import type { Io } from './io.ts'
import type { Output } from './output/output.ts'
import { type GlobalFlags, readSettings, type Settings, storeHint } from './settings.ts'
import { type OpenMode, openStore } from './store.ts'

/** A subscription as the store has it, whether or not the configuration still names it. */
export type StoredSubscription = ArchivedSubscription

/** Whether the first signal is the command's own to answer. */
export interface Patience {
  isAsked: boolean
  readonly controller: AbortController
}

/**
 * What a command works with. Everything is opened when it is first asked for, and closed when the command is over: a command that was
 * called wrongly touches nothing.
 */
export class Context implements AsyncDisposable {
  readonly io: Io
  readonly out: Output
  /** Aborted when the person wants it to end. */
  readonly signal: AbortSignal
  readonly clock: Clock = systemRuntime.clock
  readonly #flags: GlobalFlags
  readonly #patience: Patience
  #settings: Promise<Settings> | undefined
  #store: Promise<Store> | undefined

  constructor(io: Io, out: Output, flags: GlobalFlags, signal: AbortSignal, patience: Patience) {
    this.io = io
    this.out = out
    this.#flags = flags
    this.signal = signal
    this.#patience = patience
  }

  /** From here on the first ^C aborts only this signal, for a command that has a way of its own to end. The second one ends it. */
  graceful(): AbortSignal {
    this.#patience.isAsked = true
    return this.#patience.controller.signal
  }

  settings(): Promise<Settings> {
    return (this.#settings ??= readSettings(this.io, this.#flags))
  }

  async choice(): Promise<{ readonly store: StoreChoice; readonly schema: string }> {
    const { store, schema } = await this.settings()
    if (store) return { store: store.value, schema: schema.value }
    throw new CommandError(
      'CONFIG_MISSING',
      'No store is named: there is no holdfast.config.ts in this folder that has one.',
      `Make a project with: holdfast init. ${storeHint}`,
    )
  }

  /** The store; how it is opened is decided by who asks first. */
  async store(mode: OpenMode = 'use'): Promise<Store> {
    const { store, schema } = await this.choice()
    return (this.#store ??= openStore(store, schema, mode))
  }

  async subscriptions(): Promise<readonly Subscription[]> {
    const { config } = await this.settings()
    return (config.subscriptions ?? []).map((declared) =>
      declared.kind === 'subscription' ? declared : defineSubscription(declared),
    )
  }

  /** One of the configuration: what runs code needs it. */
  async subscription(name: string): Promise<Subscription> {
    const all = await this.subscriptions()
    const found = all.find((subscription) => subscription.name === name)
    if (found) return found
    refuseBeside(name)
    throw unknownSubscription(
      name,
      all.map((subscription) => subscription.name),
      'The configuration',
    )
  }

  /** By name, all that the store has. Their owners are those who are alive. */
  async stored(): Promise<ReadonlyMap<string, StoredSubscription>> {
    const store = await this.store()
    return store.snapshot(async (moment) => {
      const found = new Map<string, StoredSubscription>()
      for await (const part of moment.archive()) {
        // Subscriptions come first, and what follows them is everything.
        if (part.part !== 'subscription') break
        found.set(part.subscription.name, part.subscription)
      }
      return found
    })
  }

  /** One that the store has; what only reads and marks needs no code. */
  async storedSubscription(name: string): Promise<StoredSubscription> {
    const stored = await this.stored()
    const found = stored.get(name)
    if (found) return found
    throw unknownSubscription(name, [...stored.keys()], 'The store')
  }

  /** One that is not started: it only looks. */
  async engine(): Promise<Engine> {
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
    return createEngine({ store: await this.store(), subscriptions: await this.subscriptions(), logger: silent })
  }

  /** Looks and acts in the name of the user. */
  async operator(): Promise<Operator> {
    return createOperator({
      store: await this.store(),
      subscriptions: await this.subscriptions(),
      by: await this.user(),
    })
  }

  async user(): Promise<string> {
    const { user } = await this.settings()
    if (user.value !== undefined) return user.value
    throw new CommandError('USAGE', 'It is not known who does this.', 'Say it with --as or HOLDFAST_USER.')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }
}

function unknownSubscription(name: string, known: readonly string[], who: string): CommandError {
  const meant = nearest(name, known)
  const list = known.length === 0 ? 'It has none.' : `It has ${known.join(', ')}.`
  return new CommandError(
    'NOT_FOUND',
    `${who} has no subscription ${JSON.stringify(name)}. ${list}`,
    meant === undefined ? 'See: holdfast subscriptions list' : `Did you mean ${meant}?`,
  )
}
