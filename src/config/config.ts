import type { Engine, EngineOptions } from '../engine/engine.ts'
import type { Logger } from '../engine/events.ts'
import { HoldfastError } from '../errors.ts'
import type { EventCatalog } from '../event/catalog.ts'
import { field, isA } from '../failure/peek.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Store } from '../store.ts'
import type { Consumer, Subscription } from '../subscription/subscription.ts'

/** A configuration of `pg`, without its types. */
export interface PostgresChoice {
  readonly connection: string | Readonly<Record<string, unknown>>
  readonly schema?: string
}

/** Where everything is kept: a file, a PostgreSQL schema, or whatever the function opens. */
export type StoreChoice =
  | { readonly sqlite: string; readonly postgres?: never }
  | { readonly postgres: string | PostgresChoice; readonly sqlite?: never }
  | (() => Store | Promise<Store>)

/** What `holdfast.config.ts` says: all commands read it, and `holdfast start` runs it. */
export interface Config {
  /** The path of a file is taken from where the configuration lies. */
  readonly store?: StoreChoice
  /** Projections and handlers, or subscriptions made with `defineSubscription`. */
  readonly subscriptions?: readonly (Consumer | Subscription)[]
  /** What `holdfast events append` may append; without it, it takes the catalog of the subscriptions that know the type. */
  readonly events?: EventCatalog
  /** Where the lines of `holdfast start` go; stderr unless you say otherwise. */
  readonly logger?: Logger
  /** How `holdfast start` runs the engine, see `createEngine`. */
  readonly engine?: Pick<EngineOptions, 'name' | 'lease' | 'poll' | 'beat' | 'page' | 'cacheBytes'>
  /** Called with the engine before `holdfast start` starts it, such as to listen to it. */
  readonly onEngine?: (engine: Engine) => unknown
}

const optionNames = ['store', 'subscriptions', 'events', 'logger', 'engine', 'onEngine']
const engineNames = ['name', 'lease', 'poll', 'beat', 'page', 'cacheBytes']

/** Types what `holdfast.config.ts` exports by default, and refuses what nobody would read. */
export function defineConfig(config: Config): Config {
  try {
    check(config)
    return config
  } catch (cause) {
    if (isA(cause, HoldfastError)) throw cause
    throw refused('something in it throws when it is read', undefined, cause)
  }
}

function check(config: Config): void {
  checkOptions(config, 'defineConfig', optionNames)
  const { store, subscriptions, events, logger, engine, onEngine } = config
  if (store !== undefined) checkStoreChoice(store)
  if (subscriptions !== undefined && !(Array.isArray(subscriptions) && areConsumers(subscriptions)))
    throw refused('subscriptions is no list of projections, handlers and subscriptions')
  if (events !== undefined && typeof events?.entry !== 'function') throw refused('events is not made by defineEvents')
  if (logger !== undefined && !isLogger(logger)) throw refused('logger has not all of info, warn and error')
  if (onEngine !== undefined && typeof onEngine !== 'function') throw refused('onEngine is no function')
  if (engine !== undefined) checkOptions(engine, 'engine of defineConfig', engineNames)
}

function checkStoreChoice(store: unknown): void {
  if (typeof store === 'function') return
  const hint =
    "Give { sqlite: 'file.db' }, { postgres: 'postgres://…' }, { postgres: { connection, schema } } or a function."
  if (typeof store !== 'object' || store === null) throw refused('store is no choice of a store', hint)
  checkOptions(store, 'store of defineConfig', ['sqlite', 'postgres'])
  const { sqlite, postgres } = store as { sqlite?: unknown; postgres?: unknown }
  if ((sqlite === undefined) === (postgres === undefined)) throw refused('store names not exactly one store', hint)
  if (sqlite !== undefined && (typeof sqlite !== 'string' || sqlite === ''))
    throw refused('store.sqlite is no path', hint)
  if (postgres === undefined || typeof postgres === 'string') return
  checkOptions(postgres, 'store.postgres', ['connection', 'schema'])
  const { connection, schema } = postgres as { connection?: unknown; schema?: unknown }
  const isConnection = typeof connection === 'string' || (typeof connection === 'object' && connection !== null)
  if (!isConnection || (schema !== undefined && typeof schema !== 'string'))
    throw refused('store.postgres has no connection, or a schema that is no text', hint)
}

/** Not by `every`, which passes over what is not in a list at all. */
function areConsumers(list: readonly unknown[]): boolean {
  for (const each of list) if (!isConsumer(each)) return false
  return true
}

function isConsumer(value: unknown): boolean {
  const kind: unknown = typeof value === 'object' && value !== null && 'kind' in value ? value.kind : undefined
  return ['fold', 'sql', 'handler', 'subscription'].includes(String(kind))
}

function isLogger(value: unknown): boolean {
  return ['info', 'warn', 'error'].every((level) => typeof field(value, level) === 'function')
}

function refused(what: string, hint = 'See docs/reference/cli.md for what it can be.', cause?: unknown): HoldfastError {
  const details = cause === undefined ? { hint } : { hint, cause }
  return new HoldfastError('OPTION_INVALID', `The configuration can't be used: ${what}.`, details)
}
