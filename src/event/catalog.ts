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

/** Turns the data of one schema version into the data of the next. */
export type Upcast = (data: never) => unknown

/** A type of event whose schema has changed: the newest schema, and a step from each older version to the next. */
export interface EvolvedType<S extends StandardSchema = StandardSchema> {
  readonly schema: S
  readonly upcasts: readonly Upcast[]
}

export type EventTypes = Readonly<Record<string, StandardSchema | EvolvedType>>

/** Which types of events there are and what their data looks like. Made by `defineEvents`. */
export interface EventCatalog<Types extends EventTypes = EventTypes> {
  readonly types: Types
  /** How each type is read; undefined for a type the catalog doesn't know. */
  entry(type: string): CatalogEntry | undefined
}

export interface CatalogEntry {
  readonly schema: StandardSchema
  readonly upcasts: readonly Upcast[]
  /** The version that new events are written with: one more than there are upcasts. */
  readonly schemaVersion: number
}

type SchemaOf<T> = T extends EvolvedType<infer S> ? S : T
type TypesOf<C> = C extends EventCatalog<infer Types> ? Types : never

export type TypeName<C> = keyof TypesOf<C> & string
export type DataOf<C, Type extends TypeName<C>> = OutputOf<SchemaOf<TypesOf<C>[Type]>>
export type DataInput<C, Type extends TypeName<C>> = InputOf<SchemaOf<TypesOf<C>[Type]>>

/** The events of a catalog, as a union over its types. */
export type EventOf<C, Type extends TypeName<C> = TypeName<C>> = { [T in Type]: Event<T, DataOf<C, T>> }[Type]

/**
 * Declares the events of a domain by their schemas. From here `data` has its type everywhere, at the append, in folds and
 * in handlers, without a type argument.
 */
export function defineEvents<const Types extends EventTypes>(types: Types): EventCatalog<Types> {
  const entries = new Map<string, CatalogEntry>()
  for (const [type, declared] of Object.entries(types)) {
    checkTypeName(type, 'The type')
    // A program without types may give anything.
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
 * The newest schema of a type, with one step for each older version: the first turns version 1 into 2, the next 2 into 3. Old
 * events stay in the log as they are and pass through the steps whenever they are read, also when they were held meanwhile.
 */
export function evolved<S extends StandardSchema>(schema: S, upcasts: readonly Upcast[]): EvolvedType<S> {
  return { schema, upcasts }
}

/** The data of a recorded event, upcast and checked. A schema may be asynchronous; then so is the answer. */
export function readData(entry: CatalogEntry, schemaVersion: number, recorded: unknown): unknown {
  if (schemaVersion > entry.schemaVersion) {
    const message = `The event has schema version ${schemaVersion}, and this program knows versions up to ${entry.schemaVersion}.`
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
      throw new HoldfastError('EVENT_UPCAST', `The step from schema version ${version} to ${version + 1} threw.`, {
        cause,
      })
    }
    if (data instanceof Promise) {
      disarm(data)
      throw new HoldfastError(
        'EVENT_UPCAST',
        `The step from schema version ${version} to ${version + 1} is asynchronous.`,
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
    `The data doesn't fit its schema: ${describeIssues(result.issues)}.`,
  )
}

/** What a definition does with each type of event. A type that its events don't have would never be called, quietly. */
export function functionsOf<F>(name: string, events: EventCatalog, on: object): ReadonlyMap<string, F> {
  if (typeof events?.entry !== 'function' || typeof on !== 'object' || on === null) {
    throw new HoldfastError('OPTION_INVALID', `${name} needs events from defineEvents, and what they do in on.`)
  }
  const functions = new Map<string, F>()
  for (const [type, run] of Object.entries(on)) {
    if (!events.entry(type)) {
      throw new HoldfastError(
        'EVENT_TYPE_UNKNOWN',
        `${name} has a function for ${JSON.stringify(type)}, which its events don't have.`,
        {
          hint: 'Add the type to defineEvents, or mend its spelling.',
        },
      )
    }
    if (typeof run !== 'function') throw new HoldfastError('OPTION_INVALID', `${name}: on.${type} is not a function.`)
    functions.set(type, run as F)
  }
  return functions
}
