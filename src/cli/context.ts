import { join, relative } from 'node:path'
import type { StoreChoice } from '../config/config.ts'
import { createEngine, type Engine } from '../engine/process/engine.ts'
import { createOperator, type Operator } from '../index.ts'
import { refuseBeside } from '../rebuild/live.ts'
import { nearest } from '../runtime/nearest.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Clock } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import { defineSubscription, type Subscription } from '../subscription/subscription.ts'
import type { StoredSubscription } from '../subscription/subscription-store.ts'
import { globalOptions } from './again.ts'
import { CommandError } from './errors.ts'
import type { Io } from './io.ts'
import type { Output } from './output/output.ts'
import { shellWord } from './output/words.ts'
import { configAbove, type GlobalFlags, readSettings, type Settings } from './settings.ts'
import { type OpenMode, openStore } from './store.ts'

/** A subscription as it is stored. The configuration may no longer declare it. */

type Again = (more: string, without?: ReadonlySet<string>) => string

/** Set when a command handles the first signal itself. */
export interface Patience {
  isAsked: boolean
  readonly controller: AbortController
}

/**
 * The resources of a command. Each one is opened at its first use and closed when the command ends, so a command with a usage error
 * opens nothing.
 */
export class Context implements AsyncDisposable {
  readonly io: Io
  readonly out: Output
  /** Aborted when the user interrupts the command. */
  readonly signal: AbortSignal
  readonly clock: Clock = systemRuntime.clock
  readonly #flags: GlobalFlags
  readonly #patience: Patience
  readonly #again: Again
  #settings: Promise<Settings> | undefined
  #store: Promise<Store> | undefined

  /** `again`: all that was typed, for hints; see `typedAgain`. */
  constructor(io: Io, out: Output, flags: GlobalFlags, signal: AbortSignal, patience: Patience, again: Again) {
    this.io = io
    this.out = out
    this.#flags = flags
    this.signal = signal
    this.#patience = patience
    this.#again = again
  }

  /** This command line without some options (default: those of a dry run), and with others. */
  again(more: string, without?: ReadonlySet<string>): string {
    return this.#again(more, without)
  }

  /** For a command that shuts down by itself: from now on the first ^C aborts only this signal, and the second ends the command. */
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
      'No store is configured: this folder has no holdfast.config.ts with a store.',
      this.#aboveHint() ??
        `${this.#with('--store events.db')}, or --store postgres://user@host/database. To create a project: holdfast init`,
    )
  }

  /** The store. The first call opens it; the mode of later calls is ignored. */
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

  /** A subscription that the configuration declares, for commands that run its code. */
  async subscription(name: string): Promise<Subscription> {
    const all = await this.subscriptions()
    const found = all.find((subscription) => subscription.name === name)
    if (found) return found
    refuseBeside(name)
    await this.#checkDeclared(all)
    throw unknownSubscription(
      name,
      all.map((subscription) => subscription.name),
      'The configuration',
    )
  }

  /** All subscriptions that the configuration declares, for commands that run their code: at least one. */
  async declared(): Promise<readonly Subscription[]> {
    const all = await this.subscriptions()
    await this.#checkDeclared(all)
    return all
  }

  /** For a command that is run in a subfolder of the project. */
  #aboveHint(): string | undefined {
    const above = configAbove(this.io.cwd)
    if (above === undefined) return undefined
    return `A folder above has a configuration. To use it: ${this.#with(`--config ${shellWord(relative(this.io.cwd, above))}`)}`
  }

  /** This command line with a global option. `Output.hint` adds the global options that were given. */
  #with(option: string): string {
    return this.#again(option, globalOptions)
  }

  async #checkDeclared(all: readonly Subscription[]): Promise<void> {
    if (all.length > 0) return
    const { file } = await this.settings()
    throw new CommandError(
      'CONFIG_MISSING',
      file.value === undefined
        ? `${join(this.io.cwd, 'holdfast.config.ts')} does not exist: this command runs the code of the subscriptions that it declares.`
        : `${file.value} declares no subscriptions: this command runs their code.`,
      file.value === undefined
        ? (this.#aboveHint() ??
            `Run it in the folder of the project, or: ${this.#with('--config path/to/holdfast.config.ts')}. To create a project: holdfast init`)
        : 'Add subscriptions: [...] to defineConfig.',
    )
  }

  /** All stored subscriptions by name. `owner` is set only for processes that are alive. */
  async stored(): Promise<ReadonlyMap<string, StoredSubscription>> {
    const { subscriptions } = await this.store()
    return new Map((await subscriptions.list()).map((stored) => [stored.name, stored]))
  }

  /** A stored subscription, for commands that do not run its code. */
  async storedSubscription(name: string): Promise<StoredSubscription> {
    const stored = await this.stored()
    const found = stored.get(name)
    if (found) return found
    throw unknownSubscription(name, [...stored.keys()], 'The store')
  }

  /** An engine for reads. It is not started. */
  async engine(): Promise<Engine> {
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
    return createEngine({ store: await this.store(), subscriptions: await this.subscriptions(), logger: silent })
  }

  /** An operator that acts in the name of the user. */
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
    throw new CommandError('USAGE', 'The user is unknown.', 'Give a name with --as or HOLDFAST_USER.')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }
}

function unknownSubscription(name: string, known: readonly string[], who: string): CommandError {
  const meant = nearest(name, known)
  const list = known.length === 0 ? 'It has none.' : `Known: ${known.join(', ')}.`
  return new CommandError(
    'NOT_FOUND',
    `${who} has no subscription ${JSON.stringify(name)}. ${list}`,
    meant === undefined ? 'holdfast subscriptions list' : `Did you mean ${meant}?`,
  )
}
