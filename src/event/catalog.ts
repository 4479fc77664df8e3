import { HoldfastError, InvalidEventError } from '../errors.ts'
import { disarm } from '../failure/failure.ts'
import type { Event } from './event.ts'
import { checkTypeName } from './names.ts'
import {
  describeIssues,
  type InputOf,
  isStandardSchema,
  issuePath,
  type OutputOf,
  type SchemaResult,
  type StandardSchema,
} from './standard-schema.ts'

/** Converts data of one schema version to the next. */
export type Upcast = (data: never) => unknown

/** An event type whose schema has changed: the newest schema, and an upcast from each older version to the next. */
export interface EvolvedType<S extends StandardSchema = StandardSchema> {
  readonly schema: S
  readonly upcasts: readonly Upcast[]
}

export type EventTypes = Readonly<Record<string, StandardSchema | EvolvedType>>

/** The event types and the shape of their data. Created by `defineEvents`. */
export interface EventCatalog<Types extends EventTypes = EventTypes> {
  readonly types: Types
  /** How a type is read; undefined for a type that is not in the catalog. */
  entry(type: string): CatalogEntry | undefined
}

export interface CatalogEntry {
  readonly schema: StandardSchema
  readonly upcasts: readonly Upcast[]
  /** The version of new events: the number of upcasts plus 1. */
  readonly schemaVersion: number
}

type SchemaOf<T> = T extends EvolvedType<infer S> ? S : T
type TypesOf<C> = C extends EventCatalog<infer Types> ? Types : never

export type TypeName<C> = keyof TypesOf<C> & string
export type DataOf<C, Type extends TypeName<C>> = OutputOf<SchemaOf<TypesOf<C>[Type]>>
export type DataInput<C, Type extends TypeName<C>> = InputOf<SchemaOf<TypesOf<C>[Type]>>

/** The events of a catalog, as a union over its types. */
export type EventOf<C, Type extends TypeName<C> = TypeName<C>> = { [T in Type]: Event<T, DataOf<C, T>> }[Type]

/** One of them by its name; never for a name that the catalog does not have. */
export type EventNamed<C, Type> = Type extends TypeName<C> ? Event<Type, DataOf<C, Type>> : never

/**
 * Declares the events of a domain by their schemas. `data` is typed from here in appends, folds and handlers, without type
 * arguments.
 */
export function defineEvents<const Types extends EventTypes>(types: Types): EventCatalog<Types> {
  const entries = new Map<string, CatalogEntry>()
  for (const [type, declared] of Object.entries(types)) {
    checkTypeName(type, 'The type')
    // A JavaScript program may pass anything.
    const evolving = (declared ?? {}) as Partial<EvolvedType>
    const { schema, upcasts } = isStandardSchema(declared) ? { schema: declared, upcasts: [] } : evolving
    if (!isStandardSchema(schema) || !Array.isArray(upcasts) || upcasts.some((step) => typeof step !== 'function')) {
      throw new HoldfastError('OPTION_INVALID', `The type ${type} has no schema.`, {
        hint: 'Give a Standard Schema (zod, valibot, arktype, …), or evolved(schema, upcasts).',
      })
    }
    entries.set(type, { schema, upcasts, schemaVersion: upcasts.length + 1 })
  }
  return { types, entry: (type) => entries.get(type) }
}

/**
 * The newest schema of a type, with one upcast for each older version: the first converts version 1 to 2, the next 2 to 3. Old
 * events stay unchanged in the log and are upcast whenever they are read, also after they were held.
 */
export function evolved<S extends StandardSchema>(schema: S, upcasts: readonly Upcast[]): EvolvedType<S> {
  return { schema, upcasts }
}

/** The data of a recorded event, upcast and checked. Asynchronous if the schema is. */
export function readData(entry: CatalogEntry, schemaVersion: number, recorded: unknown): unknown {
  if (schemaVersion > entry.schemaVersion) {
    const message = `The event has schema version ${schemaVersion}, but this program knows versions up to ${entry.schemaVersion}.`
    throw new HoldfastError('EVENT_SCHEMA_NEWER', message, { hint: 'A newer program wrote it: update this one.' })
  }
  const result = entry.schema['~standard'].validate(upcast(entry, schemaVersion, recorded))
  return 'then' in result ? Promise.resolve(result).then(accept) : accept(result)
}

function upcast(entry: CatalogEntry, schemaVersion: number, recorded: unknown): unknown {
  let data = recorded
  for (let version = schemaVersion; version < entry.schemaVersion; version++) {
    try {
      data = (entry.upcasts[version - 1] as (data: unknown) => unknown)(data)
    } catch (cause) {
      throw new HoldfastError('EVENT_UPCAST', `The upcast from schema version ${version} to ${version + 1} threw.`, {
        cause,
      })
    }
    if (data instanceof Promise) {
      disarm(data)
      throw new HoldfastError(
        'EVENT_UPCAST',
        `The upcast from schema version ${version} to ${version + 1} is asynchronous.`,
      )
    }
  }
  return data
}

function accept(result: SchemaResult<unknown>): unknown {
  if (result.issues === undefined) return result.value
  throw new InvalidEventError(
    'EVENT_SCHEMA',
    issuePath(result.issues, 'data'),
    `The data does not match its schema: ${describeIssues(result.issues)}.`,
  )
}

/** The functions of a definition by event type. A function for a type that the catalog does not have would never be called. */
export function functionsOf<F>(name: string, events: EventCatalog, on: object): ReadonlyMap<string, F> {
  if (typeof events?.entry !== 'function' || typeof on !== 'object' || on === null) {
    throw new HoldfastError('OPTION_INVALID', `${name} needs events from defineEvents, and a function for each in on.`)
  }
  const functions = new Map<string, F>()
  for (const [type, run] of Object.entries(on)) {
    if (!events.entry(type)) {
      throw new HoldfastError(
        'EVENT_TYPE_UNKNOWN',
        `${name} has a function for ${JSON.stringify(type)}, which its events don't have.`,
        {
          hint: 'Add the type to defineEvents, or correct its spelling.',
        },
      )
    }
    if (typeof run !== 'function') throw new HoldfastError('OPTION_INVALID', `${name}: on.${type} must be a function.`)
    functions.set(type, run as F)
  }
  return functions
}
