import { type ErrorDetails, HoldfastError, InvalidEventError } from '../errors.ts'
import { isA } from '../failure/peek.ts'
import { parseJson } from './parse.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export interface JsonLimits {
  readonly bytes: number
  readonly depth: number
  readonly keys: number
}

export const dataLimits: JsonLimits = { bytes: 1_048_576, depth: 64, keys: 10_000 }
export const metadataLimits: JsonLimits = { bytes: 65_536, depth: 8, keys: 200 }

/** The length of a text in UTF-8. A UTF-16 unit has at most three bytes, so most texts need no counting. */
export function utf8Length(text: string, enough: number): number {
  return text.length * 3 <= enough ? text.length : new TextEncoder().encode(text).length
}

/**
 * Writes a value as JSON, or refuses it. Checking and writing are one pass, so a getter can't return different values to both.
 * Values that `JSON.stringify` would change are kept (-0) or refused (undefined, NaN, dates, class instances, `toJSON`). Lone
 * surrogates and U+0000 are escaped, so that every store can hold them.
 */
export function encodeJson(value: unknown, path: string, limits: JsonLimits): string {
  const writer: Writer = { text: '', keys: 0, limits, root: path }
  try {
    write(writer, value, path, 0)
  } catch (cause) {
    // A getter or a proxy may throw anything.
    if (isA(cause, HoldfastError)) throw cause
    throw new InvalidEventError('EVENT_NOT_JSON', path, `${path} can't be read: it throws.`, { cause })
  }
  checkSize(writer.text, path, limits)
  return writer.text
}

/** Checks a JSON text. It is stored unchanged: spaces, 2^53+1, repeated keys. */
export function checkJsonText(text: unknown, path: string, limits: JsonLimits): string {
  if (typeof text !== 'string' || !text.isWellFormed()) {
    throw new InvalidEventError('EVENT_NOT_JSON', path, `${path} is not a well-formed string.`, {
      hint: 'Escape a lone surrogate as \\udXXX.',
    })
  }
  checkSize(text, path, limits)
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    // The fallback parser is recursive and has less room.
    if (cause instanceof RangeError) throw tooDeep(path, limits.depth, { cause })
    throw new InvalidEventError('EVENT_NOT_JSON', path, `${path} is not JSON.`, { cause })
  }
  measure({ keys: 0, limits, root: path }, value, path, 0)
  return text
}

interface Walk {
  keys: number
  readonly limits: JsonLimits
  readonly root: string
}

interface Writer extends Walk {
  text: string
}

function write(out: Writer, value: unknown, path: string, depth: number): void {
  switch (typeof value) {
    case 'string':
      // With escapes it may be six times as long, and longer than the maximum string length.
      if (value.length > out.limits.bytes) throw tooLarge(out.root, out.limits)
      out.text += JSON.stringify(value)
      break
    case 'number':
      if (!Number.isFinite(value)) throw notJson(path, String(value))
      out.text += Object.is(value, -0) ? '-0' : String(value)
      break
    case 'boolean':
      out.text += value ? 'true' : 'false'
      break
    case 'object':
      if (value === null) out.text += 'null'
      else if (Array.isArray(value)) writeArray(out, value, path, enter(out, path, depth))
      else writeObject(out, value, path, enter(out, path, depth))
      break
    default:
      throw notJson(path, typeof value === 'bigint' ? 'a bigint' : typeof value)
  }
  // Stops a hostile value while it grows, not after it has filled the memory.
  if (out.text.length > out.limits.bytes) throw tooLarge(out.root, out.limits)
}

function writeArray(out: Writer, array: readonly unknown[], path: string, depth: number): void {
  if (!isPlainArray(array)) throw notJson(path, `an instance of ${className(array)}`)
  out.text += '['
  for (let i = 0; i < array.length; i++) {
    if (i > 0) out.text += ','
    write(out, array[i], `${path}[${i}]`, depth)
  }
  // Checked last, when its length is known to be within the limit: an array with additional keys, such as the match of a regular
  // expression.
  if (Reflect.ownKeys(array).length > array.length + 1) throw notJson(path, 'an array with keys of its own')
  out.text += ']'
}

function writeObject(out: Writer, object: object, path: string, depth: number): void {
  if (!isPlain(object)) throw notJson(path, `an instance of ${className(object)}`)
  if (Object.getOwnPropertySymbols(object).length > 0) throw notJson(path, 'an object with symbol keys')
  out.text += '{'
  let first = true
  for (const key of Object.keys(object)) {
    countKey(out, key, path)
    if (key.length > out.limits.bytes) throw tooLarge(out.root, out.limits)
    out.text += first ? JSON.stringify(key) : `,${JSON.stringify(key)}`
    out.text += ':'
    first = false
    write(out, (object as Record<string, unknown>)[key], `${path}.${key}`, depth)
  }
  out.text += '}'
}

function measure(walk: Walk, value: unknown, path: string, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  const inside = enter(walk, path, depth)
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) measure(walk, value[i], `${path}[${i}]`, inside)
    return
  }
  for (const [key, child] of Object.entries(value)) {
    countKey(walk, key, path)
    measure(walk, child, `${path}.${key}`, inside)
  }
}

function enter(walk: Walk, path: string, depth: number): number {
  if (depth === walk.limits.depth) {
    throw tooDeep(walk.root, depth, { hint: `The first value that is too deep is at ${path.slice(0, 200)}.` })
  }
  return depth + 1
}

function tooDeep(path: string, depth: number, details: ErrorDetails): InvalidEventError {
  return new InvalidEventError('EVENT_TOO_DEEP', path, `${path} is nested deeper than ${depth} levels.`, details)
}

function countKey(walk: Walk, key: string, path: string): void {
  if (++walk.keys > walk.limits.keys) {
    const message = `${walk.root} has more than ${walk.limits.keys.toLocaleString('en')} keys.`
    throw new InvalidEventError('EVENT_TOO_MANY_KEYS', walk.root, message, { hint: 'Split it into several events.' })
  }
  if (key === '__proto__') {
    // Copying or merging such an object would replace its prototype.
    throw new InvalidEventError('EVENT_FORBIDDEN_KEY', `${path}.__proto__`, `${path} has a key "__proto__".`)
  }
}

function checkSize(text: string, path: string, limits: JsonLimits): void {
  if (text.length > limits.bytes || utf8Length(text, limits.bytes) > limits.bytes) throw tooLarge(path, limits)
}

function tooLarge(path: string, limits: JsonLimits): InvalidEventError {
  const message = `${path} is larger than ${limits.bytes.toLocaleString('en')} bytes as JSON.`
  return new InvalidEventError('EVENT_TOO_LARGE', path, message, {
    hint: 'Store large data elsewhere and refer to it.',
  })
}

function notJson(path: string, what: string): InvalidEventError {
  return new InvalidEventError('EVENT_NOT_JSON', path, `${path} is ${what}, which JSON can't represent.`)
}

/** Plain in any realm: the prototype is null, or is the root of a prototype chain. */
export function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object)
  if (prototype === null || prototype === Object.prototype) return true
  // The Object.prototype of another realm.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

/** Not a subclass, in any realm: `Array.prototype` is an array itself, and the prototype of a class is not. */
export function isPlainArray(array: readonly unknown[]): boolean {
  return Array.isArray(Object.getPrototypeOf(array))
}

export function className(object: object): string {
  const name: unknown = object.constructor?.name
  return typeof name === 'string' && name ? name : 'a class'
}

/** Properties of a sealed state: whether it contains -0, which `JSON.stringify` would lose, and the approximate length of its text. */
export interface Seal {
  negativeZero: boolean
  size: number
}

const longestState = 16_777_216

/**
 * Checks that a fold's new state is exactly what the store will return, and freezes it, so that a reducer that changes its row in
 * place and then throws can't leave a partial change.
 */
export function sealState(value: unknown, path: string): Seal {
  const seal: Seal = { negativeZero: false, size: 0 }
  sealValue(seal, value, path, 0)
  return seal
}

function sealValue(seal: Seal, value: unknown, path: string, depth: number): void {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw badState(path, String(value))
    if (Object.is(value, -0)) seal.negativeZero = true
    seal.size += 8
  } else if (typeof value === 'string') {
    seal.size += value.length
  } else if (typeof value === 'object' && value !== null) {
    if (depth === dataLimits.depth) throw badState(path, `nested deeper than ${depth} levels`)
    if (Array.isArray(value)) sealArray(seal, value, path, depth + 1)
    else sealObject(seal, value, path, depth + 1)
    Object.freeze(value)
  } else if (typeof value !== 'boolean' && value !== null) {
    throw badState(path, typeof value === 'bigint' ? 'a bigint' : typeof value)
  }
  if (seal.size > longestState)
    throw badState(path, `part of more than ${longestState.toLocaleString('en')} characters`)
}

function sealArray(seal: Seal, array: readonly unknown[], path: string, depth: number): void {
  if (!isPlainArray(array)) throw badState(path, `an instance of ${className(array)}`)
  // Additional own keys (such as those of a regular expression's match) and holes would be lost.
  if (Reflect.ownKeys(array).length !== array.length + 1) throw badState(path, 'an array with holes or additional keys')
  for (let i = 0; i < array.length; i++) sealValue(seal, array[i], `${path}[${i}]`, depth)
}

function sealObject(seal: Seal, object: object, path: string, depth: number): void {
  if (!isPlain(object)) throw badState(path, `an instance of ${className(object)}`)
  const keys = Object.keys(object)
  if (Reflect.ownKeys(object).length !== keys.length) throw badState(path, 'an object with hidden or symbol keys')
  for (const key of keys) {
    if (key === '__proto__') throw badState(path, 'an object with a key "__proto__"')
    seal.size += key.length
    const child = (object as Record<string, unknown>)[key]
    // The most common value, without a call and without building a path.
    if (typeof child === 'number' && child - child === 0 && child !== 0) seal.size += 8
    else sealValue(seal, child, `${path}.${key}`, depth)
  }
}

function badState(path: string, what: string): HoldfastError {
  const hint =
    what === 'an instance of Promise'
      ? 'A fold must be synchronous: do asynchronous work before you append, and put the result in the event.'
      : 'A row must be plain JSON, so that it is read back unchanged.'
  return new HoldfastError('FOLD_STATE', `The fold returned a row in which ${path} is ${what}.`, { hint })
}

const stateLimits: JsonLimits = {
  bytes: Number.POSITIVE_INFINITY,
  depth: dataLimits.depth + 1,
  keys: Number.POSITIVE_INFINITY,
}

/** Writes a sealed state. */
export function encodeState(value: unknown, negativeZero: boolean): string {
  return negativeZero ? encodeJson(value, 'row', stateLimits) : JSON.stringify(value)
}
