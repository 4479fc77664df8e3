import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { describeFailure, type Failure, inVersion } from './failure.ts'

const failed = (thrown: unknown, rule = 'fold') => describeFailure(thrown, 'permanent', rule)
const fingerprint = (thrown: unknown, rule?: string) => failed(thrown, rule).fingerprint

/** An error as it would come from one place in the code, whatever its message. */
const errorAt = (message: string, { name = 'Error', frame = 'at applyDebit (/app/src/bank.ts:10:5)' } = {}) =>
  Object.assign(new Error(message), { name, stack: `${name}: ${message}\n    ${frame}` })

/** What keeps a failure out of a dead letter: it must be bounded, well-formed, and the same as JSON. */
function flawsOf(failure: Failure): string[] {
  const flaws: string[] = []
  const check = (what: string, text: string | null, longest: number) => {
    if (text !== null && text.length > longest) flaws.push(`${what} is too long`)
    if (text !== null && !text.isWellFormed()) flaws.push(`${what} has half a character`)
  }
  check('errorType', failure.errorType, 201)
  check('message', failure.message, 4_097)
  check('stack', failure.stack, 16_385)
  check('code', failure.code, 101)
  for (const cause of failure.causes) {
    check('the type of a cause', cause.errorType, 201)
    check('the message of a cause', cause.message, 4_097)
  }
  if (failure.errorType === '') flaws.push('it has no type')
  if (failure.causes.length > 8) flaws.push('it has too many causes')
  if (!/^[0-9a-f]{16}$/.test(failure.fingerprint)) flaws.push('it has no fingerprint')
  if (!isDeepStrictEqual(JSON.parse(JSON.stringify(failure)), failure)) flaws.push('it is not what its JSON is')
  return flaws
}

describe('a failure', () => {
  it('keeps what the error tells', () => {
    const cause = new RangeError('too far')
    const error = Object.assign(new TypeError('no such account', { cause }), { code: 'E_ACCOUNT' })
    expect(failed(error)).toMatchObject({
      class: 'permanent',
      rule: 'fold',
      code: 'E_ACCOUNT',
      errorType: 'TypeError',
      message: 'no such account',
      stack: error.stack,
      causes: [{ errorType: 'RangeError', message: 'too far' }],
    })
  })

  it('keeps the code of ours, and a code that is a number', () => {
    expect(failed(new HoldfastError('FOLD_STATE', 'It is NaN.'))).toMatchObject({
      code: 'FOLD_STATE',
      errorType: 'HoldfastError',
    })
    expect(failed(Object.assign(new Error('no'), { code: 40_001 })).code).toBe('40001')
    expect(failed(Object.assign(new Error('no'), { code: {} })).code).toBeNull()
  })

  it('keeps what decided its class, shortened, and none for those that have none', () => {
    expect(describeFailure('no', 'transient', 'http', 'HTTP 503').evidence).toBe('HTTP 503')
    expect(describeFailure('no', 'transient', 'own', 'x'.repeat(999)).evidence).toBe(`${'x'.repeat(100)}…`)
    expect(failed('no').evidence).toBeNull()
    // Incidents from before there was evidence stay the same incidents.
    expect(describeFailure('no', 'transient', 'http', 'HTTP 503').fingerprint).toBe(fingerprint('no', 'http'))
  })

  it('keeps causes in order, eight at the most, and leaves a circle once', () => {
    const chain = (length: number): Error =>
      new Error(`cause ${length}`, length > 0 ? { cause: chain(length - 1) } : {})
    expect(failed(chain(20)).causes.map(({ message }) => message)).toEqual(
      Array.from({ length: 8 }, (_, i) => `cause ${19 - i}`),
    )
    const circle = new Error('first', { cause: new Error('second') })
    ;(circle.cause as Error).cause = circle
    expect(failed(circle).causes).toEqual([{ errorType: 'Error', message: 'second' }])
    const third = new Error('third')
    third.cause = third
    expect(failed(new Error('first', { cause: third })).causes).toEqual([{ errorType: 'Error', message: 'third' }])
    expect(failed(Object.assign(new Error('first'), { cause: null })).causes).toEqual([])
  })

  it('keeps the errors of an AggregateError, which has no cause of its own', () => {
    const refused = new Error('connect', { cause: new TypeError('no route') })
    const several = new AggregateError([refused, new RangeError('too far'), null, refused], 'all endpoints failed')
    expect(failed(several).causes).toEqual([
      { errorType: 'Error', message: 'connect' },
      { errorType: 'TypeError', message: 'no route' },
      { errorType: 'RangeError', message: 'too far' },
    ])
    const many = Array.from({ length: 50 }, (_, i) => new Error(`error ${i}`))
    expect(failed(new Error('outside', { cause: new AggregateError(many) })).causes).toHaveLength(8)
    const circle = new AggregateError([])
    circle.errors.push(circle, new Error('inside'))
    expect(failed(circle).causes).toEqual([{ errorType: 'Error', message: 'inside' }])
  })

  it.for([
    [undefined, 'undefined', 'undefined'],
    [null, 'null', 'null'],
    ['it broke', 'String', 'it broke'],
    ['', 'String', ''],
    [404, 'Number', '404'],
    [-0, 'Number', '0'],
    [5n, 'BigInt', '5'],
    [Symbol('stop'), 'Symbol', 'Symbol(stop)'],
    [{ message: 'plain', name: 'Plain' }, 'Plain', 'plain'],
    [{ message: 5 }, 'Object', '[object Object]'],
    [Object.create(null), 'object', 'a value that cannot be shown as text'],
  ] as const)('of %o is described', ([thrown, errorType, message]) => {
    expect(failed(thrown)).toMatchObject({ errorType, message, causes: [], code: null, stack: null })
  })
})

describe('describing never throws', () => {
  const refusing = () => {
    throw new Error('gotcha')
  }
  /** Throws at whatever is done to it. */
  const hostile = (target: object) => new Proxy(target, new Proxy({}, { get: () => refusing }))
  const gone = Proxy.revocable({}, {})
  gone.revoke()
  const endless: object = new Proxy([], { get: (_, name) => (name === 'length' ? 2 ** 53 - 1 : endless) })

  it.for([
    ['a proxy that throws at everything', hostile({})],
    ['a function that throws at everything', hostile(() => undefined)],
    ['an error that throws at everything', hostile(new Error('inside'))],
    ['a revoked proxy', gone.proxy],
    ['a list without end', endless],
    [
      'getters that throw',
      Object.defineProperties(
        {},
        Object.fromEntries(
          ['name', 'message', 'stack', 'code', 'cause', 'constructor'].map((field) => [field, { get: refusing }]),
        ),
      ),
    ],
    ['a text that can not be made', { toString: refusing, [Symbol.toPrimitive]: refusing }],
    ['a text that is no text', { toString: () => ({}), valueOf: () => ({}) }],
    ['fields of the wrong kind', { name: 5, message: Symbol('m'), stack: {}, code: [], cause: 0 }],
    ['hostile causes', new Error('outside', { cause: hostile(new Error('inside')) })],
    [
      'causes without end',
      {
        get cause() {
          return new Error('again', { cause: new Proxy({}, { get: (_, name) => (name === 'cause' ? {} : undefined) }) })
        },
      },
    ],
    ['half characters everywhere', { name: '\ud800', message: '\udc00', stack: '\ud800\nat \udc00', code: '\udfff' }],
    ['U+0000 everywhere', { name: '\0', message: '\0', stack: '\0', code: '\0' }],
    ['an empty name', { name: '', message: 'x' }],
    ['half a character at the cut', new Error('x'.repeat(4_095) + '💶'.repeat(10))],
    ['10 MB of message', new Error('x1"\' '.repeat(2_000_000))],
    ['10 MB of open quotes', new Error('"`'.repeat(5_000_000))],
    ['10 MB of stack', { stack: `${'at '.repeat(3_000_000)}:1:1` }],
    ['a stack made to be slow', { stack: `at ${':1'.repeat(8_000)}` }],
    ['10 MB of name and code', { name: 'N'.repeat(10_000_000), code: 'C'.repeat(10_000_000) }],
  ] as const)('%s', ([, thrown]) => {
    expect(flawsOf(failed(thrown))).toEqual([])
  })

  it('whatever was thrown', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: true,
      withNullPrototype: true,
      withObjectString: true,
    })
    const field = fc.constantFrom('name', 'message', 'stack', 'code', 'cause', 'toString', 'constructor')
    fc.assert(
      fc.property(fc.oneof(anything, fc.dictionary(field, anything)), (thrown) => {
        expect(flawsOf(failed(thrown))).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('the fingerprint', () => {
  it.for([
    ['numbers', 'balance is 5 but 10 is needed', 'balance is 123 but 99999 is needed'],
    ['signs and fractions', 'amount 5 is odd', 'amount -12.50 is odd'],
    ['thousands', 'amount 5 is odd', 'amount 1,234,567.89 is odd'],
    ['exponents', 'amount 5 is odd', 'amount 1e+21 is odd'],
    ['ids', 'no order 0197a0b2-3c4d-7e5f-8a6b-7c8d9e0f1a2b here', 'no order ffffffff-0000-7fff-bfff-000000000000 here'],
    ['words with numbers', 'account-7 is closed', 'customer_account-12345 is closed'],
    ['what stands in quotes', 'no currency "EUR" here', 'no currency "the \'other\' one" here'],
    ['what stands in backticks', 'no field `a` here', 'no field `b c` here'],
    ['lines that look like frames', 'no JSON\n  at line 5, column 9', 'no JSON\n  at line 17, column 80'],
    ['ids in capitals', 'no parcel A7Z here', 'no parcel QZA12 here'],
    ['ids with any letter', 'no parcel a7z here', 'no parcel zq12 here'],
    ['addresses', 'no answer from 10.0.0.1', 'no answer from 192.168.17.254'],
  ] as const)('is the same for messages that differ in %s', ([, one, other]) => {
    expect(fingerprint(errorAt(one))).toBe(fingerprint(errorAt(other)))
  })

  it('is the same when the code above the failing line has moved, or lies in another folder', () => {
    const one = errorAt('no', { frame: 'at applyDebit (/app/src/bank.ts:10:5)' })
    const other = errorAt('no', { frame: 'at applyDebit (C:\\work\\src\\bank.ts:99:17)' })
    expect(fingerprint(one)).toBe(fingerprint(other))
  })

  it("is that of the user's frame, not of Node's or a library's around it", () => {
    const frames = (first: string) => errorAt('no', { frame: `${first}\n    at applyDebit (/app/src/bank.ts:1:1)` })
    expect(fingerprint(frames('at JSON.parse (node:internal:1:2)'))).toBe(fingerprint(errorAt('no')))
    expect(fingerprint(frames('at check (/app/node_modules/zod/core.js:1:2)'))).toBe(fingerprint(errorAt('no')))
  })

  it.for([
    ['another text', errorAt('account is shut')],
    ['another type', errorAt('account is closed', { name: 'TypeError' })],
    ['another function', errorAt('account is closed', { frame: 'at applyCredit (/app/src/bank.ts:10:5)' })],
    ['another file', errorAt('account is closed', { frame: 'at applyDebit (/app/src/shop.ts:10:5)' })],
  ] as const)('differs with %s', ([, other]) => {
    expect(fingerprint(other)).not.toBe(fingerprint(errorAt('account is closed')))
  })

  it('differs in another version of the code, and is that of the failure in the first', () => {
    const failure = failed(errorAt('no'))
    expect(inVersion(failure, 1)).toBe(failure)
    const second = inVersion(failure, 2)
    expect(second).toEqual({ ...failure, fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/) as string })
    expect(new Set([failure, second, inVersion(failure, 3)].map((one) => one.fingerprint)).size).toBe(3)
  })

  it.for([
    ['what stands behind what is in quotes', 'no "x" in orders', 'no "x" in accounts'],
    ['what stands before it', 'no order "x"', 'no account "x"'],
    ['a word that stands right before it', 'order"x"', 'account"x"'],
    ['a word between two of them', 'the "a" or "b"', 'the "a" and "b"'],
    ['where it stands', 'a"x"b', '"x"ab'],
    ['a word beside a number', 'refused after 5 s', 'timed out after 5 s'],
    ['a word in capitals beside a number', 'REFUSED AFTER 5 S', 'TIMED OUT AFTER 5 S'],
    ['a word right beside a number, with something between', 'code:5', 'state:5'],
    ['a word before a bracket with a number', 'code{5', 'state{5'],
    ['a word before another bracket with a number', 'code[5', 'state[5'],
    ['a word of two parts', 'not-found here', 'not-there here'],
    ['how the parts are put together', 'a/7/b', 'a:7:b'],
  ] as const)('differs in %s', ([, one, other]) => {
    expect(fingerprint(errorAt(one))).not.toBe(fingerprint(errorAt(other)))
  })

  it('is the same wherever in its file a function without a name stands', () => {
    const at = (frame: string) => fingerprint(errorAt('no', { frame }))
    expect(at('at /app/src/bank.ts:10:5')).toBe(at('at /app/src/bank.ts:99:1'))
    expect(at('at pay:1:2 (/app/src/bank.ts:10:5)')).toBe(at('at pay:1:2 (/app/src/bank.ts:99:1)'))
  })

  it('differs with another rule', () => {
    expect(fingerprint(errorAt('no'), 'read')).not.toBe(fingerprint(errorAt('no'), 'fold'))
  })
})
