import { runInNewContext } from 'node:vm'
import type { Chance } from '../chance.ts'
import { jsonValue } from './json.ts'
import { oddText } from './text.ts'

class Money {
  amount = 1
}

const refusing = () => {
  throw new Error('it refuses')
}
/** Throws at everything that can be done to it. */
export const hostileProxy = (target: object): object => new Proxy(target, new Proxy({}, { get: () => refusing }))

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

function cyclic(): object {
  const all: { self?: unknown; list: unknown[] } = { list: [] }
  all.self = all
  all.list.push(all.list)
  return all
}

function nested(depth: number): unknown {
  let value: unknown = 0
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { a: value }
  return value
}

/** Is never the same twice. */
function fickle(): object {
  let times = 0
  return {
    get a() {
      return ++times
    },
  }
}

type Make = (chance: Chance) => unknown

/** What a program can hold and JSON can not, or not so. */
const makers: readonly Make[] = [
  () => undefined,
  () => Number.NaN,
  () => Number.NEGATIVE_INFINITY,
  () => 10n ** 30n,
  () => Symbol('s'),
  () => () => 1,
  () => new Date(0),
  () => new Date(Number.NaN),
  () => /a+/g.exec('aaa'),
  () => /(a+)+$/,
  () => new Map([[1, 2]]),
  () => new Set([1]),
  () => new Money(),
  () => new Error('an error'),
  () => Promise.resolve(1),
  () => new Uint8Array([1, 2, 3]),
  () => new ArrayBuffer(8),
  () => new DataView(new ArrayBuffer(8)),
  () => Buffer.from('bytes'),
  () => Object('boxed') as unknown,
  () => Object(1) as unknown,
  () => cyclic(),
  () => fickle(),
  () => hostileProxy({}),
  () => hostileProxy([]),
  () => hostileProxy(() => 1),
  () => revoked({}),
  () => revoked([]),
  () => new Proxy({ a: 1 }, {}),
  () => new Proxy([1, 2], {}),
  () => new Proxy([], { get: (_, name) => (name === 'length' ? 1e5 : 1) }),
  () => new Proxy({}, { ownKeys: () => ['a', 'b'], getOwnPropertyDescriptor: () => undefined }),
  () => Object.create(null) as unknown,
  () => Object.create({ inherited: 1 }) as unknown,
  () => Object.assign(Object.create(null) as object, { a: 1 }),
  () => Object.defineProperty({}, 'a', { enumerable: true, get: refusing }),
  () => Object.defineProperty({ b: 1 }, 'hidden', { value: 1 }),
  () => Object.defineProperty({}, 'constructor', { get: refusing }),
  () => Object.setPrototypeOf([1], Object.create(Array.prototype) as object) as unknown,
  () => Object.assign([1, 2], { own: 1 }),
  () => Array.from({ length: 3 }).fill(0, 1),
  // oxlint-disable-next-line no-sparse-arrays -- a hole is the point
  () => [1, , 2],
  // oxlint-disable-next-line no-new-array -- long, and nothing in it
  () => new Array(4_000_000_000),
  () => ({ toJSON: () => 'another' }),
  // oxlint-disable-next-line no-thenable -- it is the point
  () => ({ then: (done: (value: unknown) => void) => done(1) }),
  () => ({ [Symbol.toPrimitive]: refusing }),
  () => ({ [Symbol('s')]: 1 }),
  () => ({ toString: refusing, valueOf: refusing }),
  () => JSON.parse('{"__proto__":{"polluted":1}}') as unknown,
  () => ({ a: { constructor: { prototype: { polluted: 1 } } } }),
  () => runInNewContext('({ a: [1, { b: 2 }] })') as unknown,
  () => runInNewContext('new Date(0)') as unknown,
  () => Object.freeze({ a: Object.freeze([1]) }),
  argumentsOf,
]

function argumentsOf(): unknown {
  // oxlint-disable-next-line prefer-rest-params -- it is an object of a kind of its own
  return arguments
}

/** What takes time to make, and room. */
const large: readonly Make[] = [
  (chance) => nested(chance.pick([63, 64, 65, 1_000, 50_000])),
  (chance) => Array.from({ length: chance.pick([9_999, 10_001]) }, () => ({ a: 1 })),
  (chance) => chance.pick(['x', 'é', '\0', '\ud800']).repeat(chance.pick([1_000, 200_000, 400_000, 1_100_000])),
]

/** Anything at all; often a good value with something bad in it. */
export function anyValue(chance: Chance, depth = 3): unknown {
  if (chance.percent(35)) return jsonValue(chance, depth)
  if (chance.percent(2)) return chance.pick(large)(chance)
  if (depth === 0 || chance.percent(60)) return chance.pick(makers)(chance)
  if (chance.percent(40)) return [...chance.some(3, () => jsonValue(chance, 1)), anyValue(chance, depth - 1)]
  return { a: jsonValue(chance, 1), [oddText(chance, 6)]: anyValue(chance, depth - 1) }
}

/** What the value is, read once; undefined where reading it twice gives something else, or nothing. */
export function copyOf(value: unknown): { readonly copy: unknown } | undefined {
  try {
    const [first, second] = [plainCopy(value, 0), plainCopy(value, 0)]
    return isSame(first, second) ? { copy: first } : undefined
  } catch {
    return undefined
  }
}

function plainCopy(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > 100) throw new Error('too deep')
  if (Array.isArray(value)) {
    if (value.length > 100_000) throw new Error('too long')
    return Array.from({ length: value.length }, (_, i) => plainCopy(value[i], depth + 1))
  }
  return new Map(Object.keys(value).map((key) => [key, plainCopy((value as Record<string, unknown>)[key], depth + 1)]))
}

/** The same to the bit, and in the same order; an object may stand as the map that `copyOf` made of it. */
export function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return Object.is(a, b)
  if (Array.isArray(a) || Array.isArray(b))
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => isSame(item, b[i]))
  const [left, right] = [entriesOf(a), entriesOf(b)]
  return (
    left.length === right.length &&
    left.every(([key, value], i) => key === right[i]?.[0] && isSame(value, right[i]?.[1]))
  )
}

function entriesOf(value: object): [unknown, unknown][] {
  return value instanceof Map ? [...value] : Object.entries(value)
}
