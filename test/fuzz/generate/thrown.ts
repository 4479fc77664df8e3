import { runInNewContext } from 'node:vm'
import { failure, HoldfastError, StoreError } from 'holdfast'
import type { Chance } from '../chance.ts'
import { oddText } from './text.ts'
import { anyValue, hostileProxy } from './value.ts'

const codes = [
  'ECONNREFUSED',
  'SQLITE_BUSY',
  'ERR_SQLITE_ERROR',
  '40001',
  '23505',
  'STORE_BUSY',
  'toString',
  '__proto__',
  '\0',
]
const names = [
  'TypeError',
  'AbortError',
  'TimeoutError',
  'StoreError',
  'HoldfastError',
  'ZodError',
  '',
  '\x1b[31m',
  '\0',
]

const bombs: readonly ((size: number) => string)[] = [
  (size) => ':1'.repeat(size),
  (size) => `:${'1'.repeat(size)}`,
  (size) => '1.'.repeat(size),
  (size) => '"'.repeat(size),
  (size) => '\n    at '.repeat(size),
  (size) => `at ${'('.repeat(size)}`,
  (size) => 'a1 '.repeat(size),
  (size) => '\ud800'.repeat(size),
  (size) => 'aaaaaaaa'.repeat(size),
]

function message(chance: Chance): string {
  return chance.percent(4) ? chance.pick(bombs)(chance.pick([100, 10_000, 100_000])) : oddText(chance, 60)
}

function chain(depth: number, cause: unknown): Error {
  let error = new Error('the last', { cause })
  for (let i = 0; i < depth; i++) error = new Error(`cause ${i}`, { cause: error })
  return error
}

function tree(width: number, depth: number): Error {
  if (depth === 0) return Object.assign(new Error('a leaf'), { code: 'E_LEAF' })
  return new AggregateError(
    Array.from({ length: width }, () => tree(width, depth - 1)),
    'a branch',
  )
}

function circle(): Error {
  const first = new Error('first')
  const second = new AggregateError([first, first], 'second', { cause: first })
  first.cause = second
  second.errors.push(second)
  return first
}

// Made once: an error has a stack, and ten thousand of them take their time.
const crowds: readonly Error[] = [
  tree(2, 3),
  tree(17, 3),
  new AggregateError(Array.from({ length: 17 }, () => new Error('one'))),
  new AggregateError(Array.from({ length: 10_000 }, () => new Error('one'))),
  chain(10_000, 'the first'),
]

type Make = (chance: Chance) => unknown

const makers: readonly Make[] = [
  (chance) => new Error(message(chance)),
  (chance) => new TypeError(message(chance), { cause: anyThrown(chance) }),
  (chance) => Object.assign(new Error(message(chance)), { name: chance.pick(names), code: chance.pick(codes) }),
  (chance) => Object.assign(new Error(message(chance)), { stack: message(chance) }),
  (chance) =>
    Object.assign(new Error('x'), { code: anyValue(chance), name: anyValue(chance), stack: anyValue(chance) }),
  (chance) => ({ message: message(chance), name: chance.pick(names), cause: anyThrown(chance) }),
  (chance) => ({
    message: anyValue(chance),
    stack: anyValue(chance),
    errors: anyValue(chance),
    issues: anyValue(chance),
  }),
  (chance) => ({
    status: chance.pick([99, 200, 400, 429, 503, 599, 600, Number.NaN]),
    retryAfter: anyValue(chance),
    headers: anyValue(chance),
    response: anyValue(chance),
  }),
  (chance) => ({
    status: 503,
    headers: chance.pick([new Map([['Retry-After', oddText(chance)]]), { 'retry-after': oddText(chance) }]),
  }),
  (chance) => ({ issues: [{ message: oddText(chance), path: anyValue(chance) }] }),
  (chance) =>
    new AggregateError(
      chance.some(4, () => anyThrown(chance)),
      message(chance),
    ),
  (chance) => chain(chance.pick([1, 8, 9]), anyValue(chance)),
  (chance) => chance.pick(crowds),
  () => circle(),
  (chance) => failure.transient(message(chance), { cause: anyThrown(chance) }),
  (chance) => failure.skip(oddText(chance)),
  (chance) => failure.dependency(oddText(chance)),
  (chance) => new HoldfastError('INTERNAL', message(chance)),
  (chance) => new StoreError('STORE_BUSY', message(chance)),
  (chance) => runInNewContext(`new TypeError(${JSON.stringify(oddText(chance))})`) as unknown,
  () => runInNewContext('Object.freeze(new Error("frozen"))') as unknown,
  () => new DOMException('given up', 'AbortError'),
  (chance) => hostileProxy(new Error(message(chance))),
  (chance) => new Proxy(new Error(message(chance)), {}),
  () => Object.freeze(new Error('frozen')),
  () => Object.create(Error.prototype) as unknown,
  () => Object.setPrototypeOf(new Error('no prototype'), null) as unknown,
  (chance) => ({ constructor: { name: oddText(chance) }, toString: () => oddText(chance) }),
  () => ({ constructor: null, toString: null }),
  () =>
    new (class Error2 extends Error {
      override get message(): string {
        throw new Error('it has none')
      }
    })(),
  () => {
    // oxlint-disable-next-line no-extraneous-class -- it is only asked who is one of it
    class Liar {
      static [Symbol.hasInstance](): boolean {
        throw new Error('ask nobody')
      }
    }
    return Object.assign(new Error('x'), { constructor: Liar, [Symbol.toStringTag]: 'Error' })
  },
  (chance) => ({ [Symbol.toPrimitive]: () => anyValue(chance) }),
  (chance) => ({ [Symbol.for('holdfast.failure')]: anyValue(chance) }),
  (chance) => ({
    [Symbol.for('holdfast.failure')]: {
      class: chance.pick(['transient', 'permanent', 'dependency', 'x']),
      skip: oddText(chance),
      retryAfterMs: anyValue(chance),
      dependency: oddText(chance),
    },
  }),
]

/** Whatever can be thrown, which is everything. */
export function anyThrown(chance: Chance): unknown {
  return chance.percent(25) ? anyValue(chance) : chance.pick(makers)(chance)
}
