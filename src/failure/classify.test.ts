import { DatabaseSync } from 'node:sqlite'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { BreakerOpenError } from '../breaker/open-error.ts'
import { EventIdConflictError, ExpectedVersionError, HoldfastError, InvalidEventError, StoreError } from '../errors.ts'
import { type Classified, classify, type Rule } from './classify.ts'
import { failureClasses } from './failure.ts'
import { failure } from './said.ts'

const now = Date.UTC(2026, 0, 1)
const told = (thrown: unknown, rules: readonly Rule[] = []) => classify(thrown, rules, now)
/** In short: `transient network ECONNREFUSED`. */
const brief = (thrown: unknown, rules?: readonly Rule[]) => {
  const { class: failureClass, rule, evidence } = told(thrown, rules)
  return [failureClass, rule, evidence].filter((word) => word !== null).join(' ')
}
const withFields = (fields: object, message = 'it failed') => Object.assign(new Error(message), fields)
const coded = (code: unknown) => withFields({ code })

/** What is thrown when this is done. */
async function thrownBy(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('it went through')
}

describe('an error is told by its code', () => {
  it.for([
    ['ECONNREFUSED', 'transient network ECONNREFUSED'],
    ['EAI_AGAIN', 'transient network EAI_AGAIN'],
    ['UND_ERR_HEADERS_TIMEOUT', 'transient network UND_ERR_HEADERS_TIMEOUT'],
    ['EBUSY', 'transient busy EBUSY'],
    ['ABORT_ERR', 'transient abort ABORT_ERR'],
    ['ENOSPC', 'infrastructure machine ENOSPC'],
    ['EROFS', 'infrastructure machine EROFS'],
    ['CERT_HAS_EXPIRED', 'dependency tls CERT_HAS_EXPIRED'],
    ['ERR_ASSERTION', 'permanent bug ERR_ASSERTION'],
    ['ENOENT', 'unknown unrecognised'],
    ['toString', 'unknown unrecognised'],
    ['__proto__', 'unknown unrecognised'],
    [40_001, 'unknown unrecognised'],
  ] as const)('%s is %s', ([code, expected]) => {
    expect(brief(coded(code))).toBe(expected)
  })

  it.for([
    'the process is blocked',
    'connection id is invalid',
    'timeout must be a number',
    'ECONNREFUSED 127.0.0.1:5432',
    'HTTP 503',
    'deadlock detected (40P01)',
    'fetch failed',
  ])('and never by its message: %s', (message) => {
    expect(brief(new Error(message))).toBe('unknown unrecognised')
    expect(brief(message)).toBe('unknown unrecognised')
  })
})

describe('what Node itself throws', () => {
  it('for a port where nobody listens, on one address or several', async () => {
    const { createServer } = await import('node:net')
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, resolve))
    const { port } = server.address() as { port: number }
    await new Promise((resolve) => server.close(resolve))
    for (const host of ['127.0.0.1', 'localhost'])
      expect(brief(await thrownBy(() => fetch(`http://${host}:${port}`)))).toBe('transient network ECONNREFUSED')
  })

  it('when the time is up, or nobody wants it any more', async () => {
    const signal = AbortSignal.timeout(1)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    expect(brief(signal.reason)).toBe('transient abort TimeoutError')
    expect(brief(AbortSignal.abort().reason)).toBe('transient abort AbortError')
    expect(brief(await thrownBy(() => fetch('http://localhost', { signal })))).toBe('transient abort TimeoutError')
    expect(brief({ name: 'AbortError', code: 20 })).toBe('transient abort AbortError')
    // Anybody may call an error so.
    expect(brief(withFields({ name: 'TimeoutError' }))).toBe('unknown unrecognised')
    expect(brief(coded(20))).toBe('unknown unrecognised')
  })

  it('for a bug, unless a cause says otherwise', async () => {
    const nothing = undefined as unknown as { length: number }
    expect(brief(await thrownBy(() => nothing.length))).toBe('permanent bug TypeError')
    expect(brief(await thrownBy(() => 'x'.repeat(-1)))).toBe('permanent bug RangeError')
    expect(brief(await thrownBy(() => new URL('nowhere')))).toBe('permanent bug TypeError')
    expect(brief(await thrownBy(() => fetch('nowhere')))).toBe('permanent bug TypeError')
    // The half answer of somebody who is just being restarted is no bug of ours.
    expect(brief(await thrownBy(() => JSON.parse('<html>')))).toBe('unknown unrecognised')
    expect(brief(new TypeError('fetch failed', { cause: coded('ECONNRESET') }))).toBe('transient network ECONNRESET')
    expect(brief(new TypeError('fetch failed', { cause: new Error('bad port') }))).toBe('unknown unrecognised')
    expect(brief(new Error('handling failed', { cause: new TypeError('no') }))).toBe('permanent bug TypeError')
    // Somebody's own class says something else than the language's.
    class Declined extends TypeError {
      override name = 'Declined'
    }
    expect(brief(new Declined())).toBe('unknown unrecognised')
    expect(brief({ name: 'TypeError', message: 'plain' })).toBe('unknown unrecognised')
  })

  it('for SQLite', async () => {
    const db = new DatabaseSync(':memory:')
    db.exec('CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT; INSERT INTO t VALUES (1)')
    expect(brief(await thrownBy(() => db.exec('INSERT INTO t VALUES (1)')))).toBe('permanent sqlite SQLITE_CONSTRAINT')
    expect(brief(await thrownBy(() => db.exec('SELEKT')))).toBe('permanent sqlite SQLITE_ERROR')
    db.close()
    const sqlite = (errcode: unknown) => withFields({ code: 'ERR_SQLITE_ERROR', errcode })
    // The low byte of an extended code is the code.
    expect(brief(sqlite(5 + (2 << 8)))).toBe('transient sqlite SQLITE_BUSY')
    expect(brief(sqlite(13))).toBe('infrastructure sqlite SQLITE_FULL')
    expect(brief(sqlite(99))).toBe('unknown unrecognised')
    expect(brief(sqlite('5'))).toBe('unknown unrecognised')
    expect(brief(coded('SQLITE_BUSY_SNAPSHOT'))).toBe('transient sqlite SQLITE_BUSY')
    expect(brief(coded('SQLITE_CONSTRAINT_UNIQUE'))).toBe('permanent sqlite SQLITE_CONSTRAINT')
    expect(brief(coded('SQLITE_BUSYBODY'))).toBe('unknown unrecognised')
  })
})

it('SQLite is told by the number that node:sqlite gives, or by the name that others do', () => {
  expect(brief(coded('SQLITE_BUSY'))).toBe('transient sqlite SQLITE_BUSY')
  expect(brief(coded('SQLITE_BUSY_SNAPSHOT'))).toBe('transient sqlite SQLITE_BUSY')
  expect(brief(withFields({ code: 'ERR_SQLITE_ERROR', errcode: 261 }))).toBe('transient sqlite SQLITE_BUSY')
  expect(brief(withFields({ code: 'OTHER', errcode: 5 }))).toBe('unknown unrecognised')
  for (const code of ['SQLITE_BUSYX', 'SQLITE_', 'NOT_SQLITE_BUSY'])
    expect(brief(coded(code))).toBe('unknown unrecognised')
})

it.for([
  [1, 'ERROR', 'permanent'],
  [5, 'BUSY', 'transient'],
  [6, 'LOCKED', 'transient'],
  [7, 'NOMEM', 'infrastructure'],
  [8, 'READONLY', 'infrastructure'],
  [9, 'INTERRUPT', 'transient'],
  [10, 'IOERR', 'infrastructure'],
  [11, 'CORRUPT', 'infrastructure'],
  [13, 'FULL', 'infrastructure'],
  [14, 'CANTOPEN', 'infrastructure'],
  [15, 'PROTOCOL', 'transient'],
  [17, 'SCHEMA', 'transient'],
  [18, 'TOOBIG', 'permanent'],
  [19, 'CONSTRAINT', 'permanent'],
  [20, 'MISMATCH', 'permanent'],
  [21, 'MISUSE', 'permanent'],
  [23, 'AUTH', 'permanent'],
  [25, 'RANGE', 'permanent'],
  [26, 'NOTADB', 'infrastructure'],
] as const)('SQLite %i is %s, and that is %s', ([errcode, name, expected]) => {
  expect(brief(withFields({ code: 'ERR_SQLITE_ERROR', errcode }))).toBe(`${expected} sqlite SQLITE_${name}`)
})

it('an abort is told by more than its name, and by no other name', () => {
  expect(brief(withFields({ name: 'TimeoutError', code: 23 }))).toBe('transient abort TimeoutError')
  expect(brief(withFields({ name: 'TimeoutError', code: 20 }))).toBe('unknown unrecognised')
  expect(brief(withFields({ name: 'OtherError', code: 23 }))).toBe('unknown unrecognised')
  expect(brief(new DOMException('no', 'DataCloneError'))).toBe('unknown unrecognised')
})

it('a bug is one in another realm too, and only if it is an error', () => {
  expect(brief(runInNewContext("new TypeError('no')"))).toBe('permanent bug TypeError')
  expect(brief({ name: 'TypeError', message: 'no' })).toBe('unknown unrecognised')
})

describe('a SQLSTATE', () => {
  it.for([
    ['40001', 'transient'],
    ['40P01', 'transient'],
    ['55P03', 'transient'],
    ['57014', 'transient'],
    ['08006', 'infrastructure'],
    ['53300', 'infrastructure'],
    ['57P01', 'infrastructure'],
    ['57P05', 'transient'],
    ['58030', 'infrastructure'],
    ['22P02', 'permanent'],
    ['23505', 'permanent'],
    ['42703', 'permanent'],
    ['P0001', 'permanent'],
    ['40002', 'unknown'],
    ['XX000', 'unknown'],
  ] as const)('%s is %s', ([code, expected]) => {
    expect(brief(withFields({ code, severity: 'ERROR' }))).toBe(`${expected} sqlstate SQLSTATE ${code}`)
    expect(brief(withFields({ code, routine: 'exec_simple_query' }))).toBe(`${expected} sqlstate SQLSTATE ${code}`)
  })

  it('alone is believed only if it is well known', () => {
    expect(brief(coded('40001'))).toBe('transient sqlstate SQLSTATE 40001')
    expect(brief(coded('23505'))).toBe('unknown unrecognised')
    // Five letters as well, and no SQLSTATE.
    expect(brief(coded('EPIPE'))).toBe('transient network EPIPE')
    expect(brief(coded('EPERM'))).toBe('unknown unrecognised')
  })

  it('has five characters', () => {
    for (const code of ['X23505', '23505X', '2350', '2350a'])
      expect(brief(withFields({ code, severity: 'ERROR' }))).toBe('unknown unrecognised')
  })
})

describe('an answer of HTTP', () => {
  it.for([
    [400, 'permanent'],
    [401, 'permanent'],
    [403, 'permanent'],
    [404, 'permanent'],
    [408, 'transient'],
    [409, 'permanent'],
    [410, 'permanent'],
    [418, 'permanent'],
    [422, 'permanent'],
    [425, 'transient'],
    [429, 'transient'],
    [500, 'transient'],
    [501, 'permanent'],
    [502, 'transient'],
    [503, 'transient'],
    [504, 'transient'],
    [505, 'permanent'],
    [599, 'transient'],
  ] as const)('%d is %s', ([status, expected]) => {
    for (const thrown of [
      withFields({ status }),
      withFields({ statusCode: status }),
      withFields({ response: { status } }),
      withFields({ response: { statusCode: status } }),
      new Response(null, { status }),
    ])
      expect(brief(thrown)).toBe(`${expected} http HTTP ${status}`)
  })

  it.for([99, 200, 204, 304, 399, 600, 404.5, '503', Number.NaN, null])('of %o says nothing', (status) => {
    expect(brief(withFields({ status }))).toBe('unknown unrecognised')
  })

  it.for([
    ['7', 7_000],
    [' 7 ', 7_000],
    [`7${' '.repeat(63)}x`, 7_000],
    [0, 1_000],
    ['1.5', 1_500],
    ['1.25', 1_250],
    ['0', 1_000],
    [7, 7_000],
    ['86400', 3_600_000],
    ['Thu, 01 Jan 2026 00:02:00 GMT', 120_000],
    ['Wed, 31 Dec 2025 23:59:59 GMT', 1_000],
    ['Fri, 02 Jan 2026 00:00:00 GMT', 3_600_000],
    [['7', '9'], 7_000],
    ['soon', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['Thu, 01 Jan 2026 00:02:00', undefined],
    ['Thu, 01 Jan 2026 00:02:00 GMT+0100', undefined],
    ['2026-01-01T00:02:00Z', undefined],
    ['', undefined],
    [-1, undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, 3_600_000],
    [{}, undefined],
  ] as const)('with Retry-After %o is to wait %o ms', ([value, expected]) => {
    expect(told({ status: 503, retryAfter: value }).retryAfterMs).toBe(expected)
    expect(told({ status: 503, headers: { 'Retry-After': value } }).retryAfterMs).toBe(expected)
  })

  it('has its Retry-After in headers of every kind', () => {
    const kinds = [
      new Headers({ 'retry-after': '7' }),
      { 'retry-after': '7' },
      { 'RETRY-AFTER': '7' },
      new Map([['Retry-After', '7']]),
      { get: (name: string) => (name === 'retry-after' ? '7' : null) },
      { get: () => Promise.reject(new Error('too late')), 'Retry-After': '7' },
      { get: () => 7 },
      new Map<unknown, string>([
        [5, 'x'],
        ['retry-after', '7'],
      ]),
      new Map([...others(255), ['retry-after', '7']]),
    ]
    for (const headers of kinds) {
      expect(told({ status: 429, headers }).retryAfterMs).toBe(7_000)
      expect(told({ message: 'no', response: { statusCode: 429, headers } }).retryAfterMs).toBe(7_000)
    }
    expect(told({ status: 429, headers: { 'retry-before': '7' } })).not.toHaveProperty('retryAfterMs')
    // Nobody has as many of them, so it is not worth the time.
    const many = new Map([...others(256), ['retry-after', '7']])
    expect(told({ status: 429, headers: many })).not.toHaveProperty('retryAfterMs')
  })

  function others(length: number): [string, string][] {
    return Array.from({ length }, (_, i) => [`x-${i}`, '1'])
  }

  it('that says when to come again expects us to', () => {
    expect(told({ status: 403, headers: { 'retry-after': '60' } })).toMatchObject({
      class: 'transient',
      evidence: 'HTTP 403',
      retryAfterMs: 60_000,
    })
  })

  it('is what Retry-After needs: elsewhere it may be in milliseconds', () => {
    expect(told(withFields({ code: 'ECONNRESET', retryAfter: 7 }))).not.toHaveProperty('retryAfterMs')
    const own = (thrown: object) => told(thrown, [() => 'transient']).retryAfterMs
    expect(own({ retryAfter: 7 })).toBeUndefined()
    expect(own({ status: 99, retryAfter: 7 })).toBeUndefined()
    expect(own({ status: 100, retryAfter: 7 })).toBe(7_000)
    expect(own({ status: 600, statusCode: 599, retryAfter: 7 })).toBe(7_000)
  })
})

describe('an error of ours', () => {
  it.for([
    [new ExpectedVersionError('a', 1, 2), 'transient holdfast EXPECTED_VERSION'],
    [new InvalidEventError('EVENT_SCHEMA', 'data', 'no'), 'permanent holdfast EVENT_SCHEMA'],
    [new EventIdConflictError('a', 'no'), 'permanent holdfast EVENT_ID_CONFLICT'],
    [new HoldfastError('OPTION_INVALID', 'no'), 'permanent holdfast OPTION_INVALID'],
    [new HoldfastError('INTERNAL', 'no'), 'unknown holdfast INTERNAL'],
    [new StoreError('STORE_BUSY', 'no'), 'infrastructure holdfast STORE_BUSY'],
    // It is closed when the program ends; the event that is caught by it must stay.
    [new StoreError('STORE_CLOSED', 'no'), 'infrastructure holdfast STORE_CLOSED'],
    [new StoreError('STORE_REFUSED', 'no', { cause: coded('23505') }), 'infrastructure holdfast STORE_REFUSED'],
  ] as const)('%s is %s', ([error, expected]) => {
    expect(brief(error)).toBe(expected)
    // As another copy of the package would throw it.
    expect(brief(withFields({ name: error.name, code: error.code }))).toBe(expected)
  })

  it('is one whatever its name is', () => {
    const open = new BreakerOpenError('bank', { entry: 'open', state: 'open', retryAt: 5, afterMs: 5 })
    expect(brief(open)).toBe('dependency holdfast BREAKER_OPEN')
    class Own extends StoreError {}
    expect(brief(Object.assign(new Own('STORE_BUSY', 'no'), { name: 'Own' }))).toBe(
      'infrastructure holdfast STORE_BUSY',
    )
  })

  it('is none where nobody can tell', () => {
    const refusing = (fields: object) =>
      new Proxy(fields, {
        getPrototypeOf: () => {
          throw new Error('gotcha')
        },
      })
    expect(brief(refusing({ name: 'Own', code: 'EXPECTED_VERSION' }))).toBe('unknown unrecognised')
    expect(brief(refusing({ name: 'TypeError' }))).toBe('unknown unrecognised')
  })

  it('is not everything that has such a code', () => {
    expect(brief(coded('EXPECTED_VERSION'))).toBe('unknown unrecognised')
    expect(brief(withFields({ name: 'StoreError', code: 'OTHER' }))).toBe('unknown unrecognised')
  })
})

it('data that does not fit its schema is permanent', async () => {
  expect(brief(await thrownBy(() => z.object({ a: z.number(), b: z.string() }).parse({})))).toBe(
    'permanent schema issues: 2',
  )
  expect(brief({ issues: [{ message: 'no', path: ['a'] }] })).toBe('permanent schema issues: 1')
  expect(brief({ issues: [{ message: 'no' }] })).toBe('permanent schema issues: 1')
  for (const issues of [[], [{}], ['no'], [{ message: 'no', path: 'a' }], 'no', { 0: { message: 'no' } }])
    expect(brief(withFields({ issues }))).toBe('unknown unrecognised')
})

describe('causes', () => {
  const wrapped = (error: unknown, times: number): unknown =>
    times === 0 ? error : new Error('wrapped', { cause: wrapped(error, times - 1) })

  it('are looked into, eight at the most', () => {
    expect(brief(wrapped(coded('ETIMEDOUT'), 8))).toBe('transient network ETIMEDOUT')
    expect(brief(wrapped(coded('ETIMEDOUT'), 9))).toBe('unknown unrecognised')
    expect(brief(new Error('wrapped', { cause: 0 }))).toBe('unknown unrecognised')
  })

  it('are eight at the most also with a heap of errors between them', () => {
    const heap = (outside: number, inside: number) =>
      brief(wrapped(new AggregateError([wrapped(coded('ETIMEDOUT'), inside)]), outside))
    expect(heap(4, 3)).toBe('transient network ETIMEDOUT')
    expect(heap(4, 4)).toBe('unknown unrecognised')
    expect(heap(0, 7)).toBe('transient network ETIMEDOUT')
    expect(heap(0, 8)).toBe('unknown unrecognised')
  })

  it('are what rules are asked about, and nothing else', () => {
    const asked: unknown[] = []
    const listening: Rule = (error) => {
      asked.push(error)
      return undefined
    }
    const inner = withFields({ cause: null, errors: 'none' })
    const outer = new Error('outer', { cause: inner })
    told(outer, [listening])
    expect(asked.splice(0)).toEqual([outer, inner])
    told(undefined, [listening])
    expect(asked).toEqual([undefined])
  })

  it('have a say only if what they caused has none', () => {
    expect(brief(withFields({ status: 400, cause: coded('ETIMEDOUT') }))).toBe('permanent http HTTP 400')
  })

  it('may run in a circle', () => {
    const circle = new Error('first', { cause: new Error('second') })
    ;(circle.cause as Error).cause = circle
    expect(brief(circle)).toBe('unknown unrecognised')
    const own = new AggregateError([], 'own')
    own.errors.push(own, new Error('other', { cause: own }), coded('ETIMEDOUT'))
    expect(brief(own)).toBe('transient network ETIMEDOUT')
  })
})

describe('of several errors at once', () => {
  const all = (...errors: unknown[]) => brief(new AggregateError(errors))

  it('the one that least speaks for trying again decides', () => {
    const [transient, permanent] = [coded('ETIMEDOUT'), withFields({ status: 400 })]
    const [machine, tls] = [coded('ENOSPC'), coded('CERT_REVOKED')]
    expect(all(transient, coded('ECONNREFUSED'))).toBe('transient network ETIMEDOUT')
    expect(all(transient, permanent, machine)).toBe('permanent http HTTP 400')
    expect(all(transient, tls, machine)).toBe('infrastructure machine ENOSPC')
    expect(all(transient, tls)).toBe('dependency tls CERT_REVOKED')
    expect(all(transient, new HoldfastError('INTERNAL', 'no'))).toBe('unknown holdfast INTERNAL')
    expect(all(new Error('odd'), transient, 'odd')).toBe('transient network ETIMEDOUT')
    expect(all(new Error('odd'))).toBe('unknown unrecognised')
    expect(all()).toBe('unknown unrecognised')
    expect(all(new AggregateError([new Error('wrapped', { cause: permanent })]), transient)).toBe(
      'permanent http HTTP 400',
    )
  })

  it('the longest wait is kept', () => {
    const limited = (retryAfter: number) => withFields({ status: 429, retryAfter })
    expect(told(new AggregateError([limited(3), limited(60), coded('EPIPE')])).retryAfterMs).toBe(60_000)
    expect(told(new AggregateError([coded('EPIPE'), limited(60), limited(3)])).retryAfterMs).toBe(60_000)
    expect(told(new AggregateError([limited(60), coded('EPIPE'), limited(3)])).retryAfterMs).toBe(60_000)
  })

  it('all must say that the event is to be passed over', () => {
    expect(told(new AggregateError([failure.skip('done'), failure.skip('done too')])).skip).toBe('done')
    expect(told(new AggregateError([failure.skip('done'), coded('EPIPE')]))).toEqual(told(coded('EPIPE')))
  })

  it('sixteen are looked at, and an endless heap of them takes no time', () => {
    const sixteen = Array.from({ length: 16 }, () => new Error('odd'))
    expect(all(...sixteen.slice(1), coded('EPIPE'))).toBe('transient network EPIPE')
    expect(all(...sixteen, coded('EPIPE'))).toBe('unknown unrecognised')
    let made = 0
    const heap = (): object => ({
      get errors() {
        return Array.from({ length: 16 }, () => ((made += 1), heap()))
      },
    })
    expect(brief(heap())).toBe('unknown unrecognised')
    expect(made).toBeLessThan(10_000)
  })
})

describe("a user's own rules", () => {
  class Declined extends Error {}
  const declined: Rule = (error) => (error instanceof Declined ? 'permanent' : undefined)

  it('come before ours, and after what was said outright', () => {
    expect(brief(new Declined(), [declined])).toBe('permanent declined')
    expect(brief(Object.assign(new Declined(), { status: 503 }), [declined])).toBe('permanent declined')
    expect(brief(new Error('wrapped', { cause: new Declined() }), [declined])).toBe('permanent declined')
    expect(brief(coded('EPIPE'), [declined])).toBe('transient network EPIPE')
    expect(brief(failure.transient('later', { cause: new Declined() }), [declined])).toBe('transient said')
  })

  it('are asked one after the other', () => {
    expect(brief(new Declined(), [() => undefined, declined, () => 'unknown'])).toBe('permanent declined')
    expect(brief(new Declined(), [() => 'unknown', declined])).toBe('unknown own rule')
  })

  it('may say all that there is to say', () => {
    const whole: Classified = {
      class: 'dependency',
      rule: 'bank',
      evidence: 'E42',
      retryAfterMs: 5_000,
      dependency: 'the bank',
      skip: 'no matter',
    }
    expect(told('x', [() => whole])).toEqual(whole)
  })

  it('leave the wait that was asked for to us', () => {
    expect(told({ status: 402, headers: { 'retry-after': '5' } }, [() => 'transient']).retryAfterMs).toBe(5_000)
    const hopeless = told({ status: 402, headers: { 'retry-after': '5' } }, [() => 'permanent'])
    expect(hopeless).toStrictEqual({ class: 'permanent', rule: 'own rule', evidence: null })
    expect(told('x', [() => ({ class: 'transient', retryAfterMs: 0 }) as Classified]).retryAfterMs).toBe(0)
    expect(told('x', [() => ({ class: 'transient', retryAfterMs: '5' }) as never])).not.toHaveProperty('retryAfterMs')
    expect(told('x', [() => 'transient'])).toStrictEqual({ class: 'transient', rule: 'own rule', evidence: null })
  })

  it.for<readonly [string, unknown]>([
    ['throw', () => thrown()],
    ['give a class there is not', () => 'fatal'],
    ['give nothing of the kind', () => 5],
    ['give a promise', () => Promise.reject(new Error('too late'))],
    ['give an object with no class', () => ({ rule: 'x' })],
    ['give a proxy that throws', () => new Proxy({}, { get: () => thrown() })],
    ['are not functions', 5],
  ])('that %s have nothing to say', ([, rule]) => {
    expect(brief(coded('EPIPE'), [rule as Rule])).toBe('transient network EPIPE')
  })

  it('are cut to what can be kept', () => {
    const odd = { class: 'transient', rule: 'r'.repeat(999), evidence: 5, retryAfterMs: Number.NaN, dependency: '' }
    expect(told('x', [() => odd as unknown as Classified])).toEqual({
      class: 'transient',
      rule: `${'r'.repeat(100)}…`,
      evidence: null,
    })
    expect(told('x', [() => ({ ...odd, retryAfterMs: 1e300 }) as unknown as Classified]).retryAfterMs).toBe(3_600_000)
  })

  function thrown(): never {
    throw new Error('gotcha')
  }
})

describe('classifying never throws', () => {
  const refusing = () => {
    throw new Error('gotcha')
  }
  /** Throws at whatever is done to it. */
  const hostile = (target: object) => new Proxy(target, new Proxy({}, { get: () => refusing }))
  const gone = Proxy.revocable({}, {})
  gone.revoke()
  const goneList = Proxy.revocable([], {})
  goneList.revoke()
  const fields = ['name', 'code', 'errno', 'errcode', 'status', 'statusCode', 'response', 'headers', 'retryAfter']
  const more = ['severity', 'routine', 'cause', 'errors', 'issues', 'get', 'message', 'length', '0', 'path']

  it.for([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'no'],
    ['a symbol', Symbol('no')],
    ['a proxy that throws at everything', hostile({})],
    ['a function that throws at everything', hostile(() => undefined)],
    ['an error that throws at everything', hostile(new Error('inside'))],
    ['a list that throws at everything', hostile([])],
    ['a revoked proxy', gone.proxy],
    ['revoked lists', { errors: goneList.proxy, issues: goneList.proxy, status: 503, retryAfter: goneList.proxy }],
    ['hostile lists', { errors: hostile([]), issues: hostile([]) }],
    ['hostile headers', { status: 503, headers: hostile({}), response: hostile({}) }],
    ['hostile maps', { status: 503, headers: hostile(new Map()) }],
    ['hostile members', new AggregateError([hostile({}), gone.proxy, null])],
    ['hostile causes', new Error('outside', { cause: hostile(new Error('inside')) })],
    [
      'getters that throw',
      Object.defineProperties({}, Object.fromEntries([...fields, ...more].map((name) => [name, { get: refusing }]))),
    ],
  ] as const)('%s', ([, thrown]) => {
    expect(failureClasses).toContain(told(thrown).class)
    expect(failureClasses).toContain(told(thrown, [refusing]).class)
  })

  it('whatever was thrown', () => {
    const leaf = fc.oneof(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSparseArray: true }),
      fc.constantFrom(
        'EPIPE',
        '40001',
        'ERR_SQLITE_ERROR',
        'StoreError',
        'AbortError',
        503,
        404,
        5,
        '7',
        'hostile',
        'gone',
      ),
    )
    const { thrown } = fc.letrec((tie) => ({
      thrown: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.dictionary(fc.constantFrom(...fields, ...more), tie('thrown'), { maxKeys: 8 }),
        fc.array(tie('thrown'), { maxLength: 4 }),
      ),
    }))
    /** fast-check itself touches what it makes; so the traps are set afterwards. */
    const trapped = (value: unknown): unknown => {
      if (value === 'hostile') return hostile({})
      if (value === 'gone') return gone.proxy
      if (Array.isArray(value)) return value.map(trapped)
      if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, trapped(inner)]))
    }
    fc.assert(
      fc.property(thrown, (value) => {
        const { class: failureClass, rule, evidence, retryAfterMs = 1_000 } = told(trapped(value))
        expect(failureClasses).toContain(failureClass)
        expect(rule.length).toBeGreaterThan(0)
        expect((evidence ?? '').length).toBeLessThanOrEqual(101)
        expect(retryAfterMs).toBeGreaterThanOrEqual(1_000)
        expect(retryAfterMs).toBeLessThanOrEqual(3_600_000)
      }),
      { numRuns: 2_000 },
    )
  })
})
