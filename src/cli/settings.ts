import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Config, defineConfig, type StoreChoice } from '../config/config.ts'
import { field, isA, printed } from '../failure/peek.ts'
import { CommandError, toTold } from './errors.ts'
import type { Io } from './io.ts'
import { withoutSecrets } from './output/escape.ts'

/** The options of all commands. */
export interface GlobalFlags {
  readonly config?: string
  readonly store?: string
  readonly schema?: string
  readonly as?: string
}

/** A value and its origin. Precedence: flag, environment, configuration file, default. */
export interface Setting<T> {
  readonly value: T
  readonly from: string
}

export interface Settings {
  /** The path of the configuration file; undefined if there is none. */
  readonly file: Setting<string | undefined>
  readonly config: Config
  readonly store: Setting<StoreChoice> | undefined
  readonly schema: Setting<string>
  readonly user: Setting<string | undefined>
  /** The name of the engine in this process. */
  readonly name: Setting<string | undefined>
}

const fileNames = ['holdfast.config.ts', 'holdfast.config.mts', 'holdfast.config.js', 'holdfast.config.mjs']
const byDefault = 'default'

export async function readSettings(io: Io, flags: GlobalFlags): Promise<Settings> {
  const file = findFile(io, flags)
  const config = file.value === undefined ? {} : await load(file.value)
  const inFile = 'holdfast.config'
  const filePostgres = typeof config.store === 'object' ? config.store.postgres : undefined
  const fileSchema = typeof filePostgres === 'object' ? filePostgres.schema : undefined
  return {
    file,
    config,
    store:
      given(flags.store, '--store', (text) => parseStore(text, io.cwd)) ??
      given(io.env['HOLDFAST_STORE'], 'HOLDFAST_STORE', (text) => parseStore(text, io.cwd)) ??
      given(io.env['DATABASE_URL'], 'DATABASE_URL', (text) => parseStore(text, io.cwd)) ??
      (config.store === undefined
        ? undefined
        : { value: placed(config.store, dirname(file.value ?? io.cwd)), from: inFile }),
    schema: given(flags.schema, '--schema') ??
      given(io.env['HOLDFAST_SCHEMA'], 'HOLDFAST_SCHEMA') ??
      given(fileSchema, inFile) ?? { value: 'holdfast', from: byDefault },
    user: given(flags.as, '--as') ??
      given(io.env['HOLDFAST_USER'], 'HOLDFAST_USER') ?? { value: io.osUser, from: 'the system' },
    name: given(io.env['HOLDFAST_NAME'], 'HOLDFAST_NAME') ??
      given(config.engine?.name, inFile) ?? { value: undefined, from: byDefault },
  }
}

/** The address of a store, without its password. */
export function describeStore(store: StoreChoice, schema: string): string {
  if (typeof store === 'function') return 'a function of the configuration'
  if (store.sqlite !== undefined) return `sqlite:${store.sqlite}`
  const { postgres } = store
  const connection = typeof postgres === 'string' ? postgres : postgres.connection
  if (typeof connection === 'string') return `${withoutSecrets(connection)} (schema ${schema})`
  const { host = 'localhost', port = 5432, database = '', user = '', connectionString } = connection
  const place =
    typeof connectionString === 'string'
      ? withoutSecrets(connectionString)
      : `postgres://${String(user)}@${String(host)}:${String(port)}/${String(database)}`
  return `${place} (schema ${schema})`
}

function given(value: string | undefined, from: string): Setting<string> | undefined
function given<T>(value: string | undefined, from: string, parse: (text: string) => T): Setting<T> | undefined
function given<T>(
  value: string | undefined,
  from: string,
  parse?: (text: string) => T,
): Setting<T | string> | undefined {
  // An empty variable counts as unset: some tools cannot unset one.
  if (value === undefined || value === '') return undefined
  return { value: parse ? parse(value) : value, from }
}

/** `postgres://…`, `sqlite:path`, or a path. */
function parseStore(text: string, cwd: string): StoreChoice {
  if (/^postgres(ql)?:/i.test(text)) return { postgres: text }
  const path = text.startsWith('sqlite:') ? text.slice('sqlite:'.length) : text
  if (path === '' || /^[a-z][a-z0-9+.-]+:\/\//i.test(path)) {
    throw new CommandError('USAGE', `${JSON.stringify(withoutSecrets(text))} is not a valid store.`, storeHint)
  }
  return { sqlite: resolve(cwd, path) }
}

const storeHint =
  'Give a file (sqlite:data/events.db) or postgres://user@host/database, with --store or HOLDFAST_STORE.'

function placed(store: StoreChoice, folder: string): StoreChoice {
  return typeof store === 'object' && store.sqlite !== undefined ? { sqlite: resolve(folder, store.sqlite) } : store
}

function findFile(io: Io, flags: GlobalFlags): Setting<string | undefined> {
  const named = given(flags.config, '--config') ?? given(io.env['HOLDFAST_CONFIG'], 'HOLDFAST_CONFIG')
  if (named) {
    const path = resolve(io.cwd, named.value)
    if (existsSync(path)) return { value: path, from: named.from }
    throw new CommandError(
      'CONFIG_MISSING',
      `The file ${path} does not exist.`,
      'Fix the path, or create one: holdfast init',
    )
  }
  const found = fileNames.map((name) => join(io.cwd, name)).find((path) => existsSync(path))
  return { value: found, from: found === undefined ? byDefault : 'the working directory' }
}

/** The nearest configuration in a folder above. It is suggested, not used: its store may not be the one that is meant. */
export function configAbove(cwd: string): string | undefined {
  for (let folder = dirname(cwd); ; folder = dirname(folder)) {
    const found = fileNames.map((name) => join(folder, name)).find((path) => existsSync(path))
    if (found !== undefined || folder === dirname(folder)) return found
  }
}

/** The file and line of a syntax error. Only its stack has them, before the message; the file may be one that the configuration imports. */
function placeOf(error: unknown): string {
  const stack = isA(error, SyntaxError) ? printed(field(error, 'stack')) : ''
  const [, file, line] = /^(file:\/\/\S+|\/\S+?):(\d+)\r?\n/.exec(stack) ?? []
  if (file === undefined) return ''
  return ` (${file.startsWith('file:') ? fileURLToPath(file) : file}, line ${line})`
}

function loadHint({ message }: { readonly message: string }): string {
  if (/import statement outside a module|Unexpected token 'export'/.test(message))
    return 'The configuration is an ES module. Run: npm pkg set type=module'
  return 'Fix the file. Node imports it directly.'
}

/** Node loads the file, so it may be TypeScript and may import modules of the application. */
async function load(path: string): Promise<Config> {
  let exported: unknown
  try {
    exported = ((await import(pathToFileURL(path).href)) as { default?: unknown }).default
  } catch (cause) {
    const { message } = toTold(cause)
    throw new CommandError(
      'CONFIG_INVALID',
      `${path} can't be loaded. ${message}${placeOf(cause)}`,
      loadHint({ message }),
      {
        cause,
      },
    )
  }
  if (exported === undefined) {
    throw new CommandError(
      'CONFIG_INVALID',
      `${path} has no default export.`,
      'Write: export default defineConfig({ store, subscriptions })',
    )
  }
  try {
    return defineConfig(exported as Config)
  } catch (cause) {
    const { message, hint } = toTold(cause)
    throw new CommandError('CONFIG_INVALID', `${path}: ${message}`, hint, { cause })
  }
}
