import { type Engine, type EngineOptions, engineOptionNames } from '../engine/process/engine.ts'
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

/** The store: an SQLite file, a PostgreSQL schema, or the store that a function opens. */
export type StoreChoice =
  | { readonly sqlite: string; readonly postgres?: never }
  | { readonly postgres: string | PostgresChoice; readonly sqlite?: never }
  | (() => Store | Promise<Store>)

/** The dialect of the SQL projections that a store accepts. The dialect of a function's store may be unknown. */
type DialectOfChoice<Choice> = Choice extends { readonly sqlite: string }
  ? 'sqlite'
  : Choice extends { readonly postgres: string | PostgresChoice }
    ? 'postgres'
    : Choice extends () => infer Opened
      ? Awaited<Opened> extends { readonly dialect: infer Dialect extends string }
        ? Dialect
        : string
      : string

/** Options of `createEngine` that are options of the configuration itself, not of its `engine`. */
const saidElsewhere = {
  store: 'Move it to the top level: { store, engine }.',
  subscriptions: 'Move them to the top level: { subscriptions, engine }.',
  logger: 'Move it to the top level: { logger, engine }.',
} satisfies Partial<Record<keyof EngineOptions, string>>

/** The options of `createEngine`, except those that the configuration itself has. */
export interface ConfigEngineOptions extends Omit<EngineOptions, keyof typeof saidElsewhere> {}

/** The configuration in `holdfast.config.ts`. All commands read it; `holdfast start` runs its subscriptions. */
export interface Config<Choice extends StoreChoice = StoreChoice> {
  /** The path of an SQLite file is relative to the configuration file. */
  readonly store?: Choice
  /** Projections and handlers, or subscriptions made with `defineSubscription`. SQL projections must be written for the store. */
  readonly subscriptions?: readonly (Consumer<DialectOfChoice<Choice>> | Subscription<DialectOfChoice<Choice>>)[]
  /** The catalog for `holdfast events append`. Default: the catalogs of the subscriptions. */
  readonly events?: EventCatalog
  /** The logger of `holdfast start`. Default: stderr. */
  readonly logger?: Logger
  /** Options for the engine of `holdfast start`, see `createEngine`. */
  readonly engine?: ConfigEngineOptions
  /** Called with the engine before `holdfast start` starts it, for example to add listeners. */
  readonly onEngine?: (engine: Engine) => unknown
}

const optionNames = ['store', 'subscriptions', 'events', 'logger', 'engine', 'onEngine']
const engineNames = engineOptionNames.filter((name) => !Object.hasOwn(saidElsewhere, name))

/** Types the default export of `holdfast.config.ts` and rejects unknown options. */
export function defineConfig<const Choice extends StoreChoice>(config: Config<Choice>): Config {
  try {
    check(config)
    return config
  } catch (cause) {
    if (isA(cause, HoldfastError)) throw cause
    throw refused('reading one of its properties throws', undefined, cause)
  }
}

function check(config: Config): void {
  checkOptions(config, 'defineConfig', optionNames)
  const { store, subscriptions, events, logger, engine, onEngine } = config
  if (store !== undefined) checkStoreChoice(store)
  if (subscriptions !== undefined && !(Array.isArray(subscriptions) && areConsumers(subscriptions)))
    throw refused('subscriptions is not a list of projections, handlers and subscriptions')
  if (events !== undefined && typeof events?.entry !== 'function') throw refused('events is not made by defineEvents')
  if (logger !== undefined && !isLogger(logger)) throw refused('logger must have the functions info, warn and error')
  if (onEngine !== undefined && typeof onEngine !== 'function') throw refused('onEngine is not a function')
  if (engine !== undefined) checkEngine(engine)
}

function checkEngine(engine: ConfigEngineOptions): void {
  const misplaced = Object.entries(saidElsewhere).find(([name]) => field(engine, name) !== undefined)
  if (misplaced) throw refused(`engine has ${misplaced[0]}`, misplaced[1])
  checkOptions(engine, 'engine of defineConfig', engineNames)
}

function checkStoreChoice(store: unknown): void {
  if (typeof store === 'function') return
  const hint =
    "Give { sqlite: 'file.db' }, { postgres: 'postgres://…' }, { postgres: { connection, schema } } or a function."
  if (typeof store !== 'object' || store === null) throw refused('store is neither an object nor a function', hint)
  checkOptions(store, 'store of defineConfig', ['sqlite', 'postgres'])
  const { sqlite, postgres } = store as { sqlite?: unknown; postgres?: unknown }
  if ((sqlite === undefined) === (postgres === undefined))
    throw refused(
      `store needs exactly one of sqlite and postgres, and has ${sqlite === undefined ? 'neither' : 'both'}`,
      hint,
    )
  if (sqlite !== undefined && (typeof sqlite !== 'string' || sqlite === ''))
    throw refused('store.sqlite is not a path', hint)
  if (postgres === undefined || typeof postgres === 'string') return
  checkOptions(postgres, 'store.postgres', ['connection', 'schema'])
  const { connection, schema } = postgres as { connection?: unknown; schema?: unknown }
  const isConnection = typeof connection === 'string' || (typeof connection === 'object' && connection !== null)
  if (!isConnection || (schema !== undefined && typeof schema !== 'string'))
    throw refused('store.postgres has no connection, or its schema is not a string', hint)
}

/** Not with `every`, which ignores holes in a sparse array. */
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

function refused(what: string, hint = 'See docs/reference/cli.md for the options.', cause?: unknown): HoldfastError {
  const details = cause === undefined ? { hint } : { hint, cause }
  return new HoldfastError('OPTION_INVALID', `The configuration can't be used: ${what}.`, details)
}
