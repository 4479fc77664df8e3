import { failure, type HandlerContext } from '../../src/index.ts'

/** Something that goes wrong with one event of one lane, every time it is tried, until it is fixed. */
export interface Cause {
  readonly name: string
  /** What the handler does about the event. Left out where the event never comes to its handler. */
  readonly act?: (ctx: HandlerContext) => unknown
  /** What is wrong with the event itself, or around it. */
  readonly is?: 'misfit' | 'unknown type' | 'breaker open' | 'deadly' | 'everywhere'
}

const raise = (error: unknown) => () => {
  throw error
}
const coded = (code: string, more = {}) => Object.assign(new Error(code), { code, ...more })
const answer = (status: number, headers = {}) => Object.assign(new Error(`HTTP ${status}`), { status, headers })
const sqlState = (code: string) => coded(code, { severity: 'ERROR' })

export const causes: readonly Cause[] = [
  { name: '`ECONNREFUSED`', act: raise(coded('ECONNREFUSED')) },
  { name: 'longer than its timeout of 5 s', act: () => new Promise(() => undefined) },
  { name: 'HTTP 429, `Retry-After: 20`', act: raise(answer(429, { 'retry-after': '20' })) },
  { name: 'HTTP 500', act: raise(answer(500)) },
  { name: 'HTTP 503', act: raise(answer(503)) },
  { name: 'HTTP 400', act: raise(answer(400)) },
  { name: 'HTTP 401', act: raise(answer(401)) },
  { name: 'HTTP 404', act: raise(answer(404)) },
  { name: 'HTTP 409', act: raise(answer(409)) },
  { name: 'HTTP 422', act: raise(answer(422)) },
  { name: 'SQLSTATE 40001, serialization', act: raise(sqlState('40001')) },
  { name: 'SQLSTATE 23505, unique violation', act: raise(sqlState('23505')) },
  { name: 'SQLSTATE 57P01, shutdown', act: raise(sqlState('57P01')) },
  { name: 'an event that does not match its schema', is: 'misfit' },
  { name: "an unknown type, with `unknown: 'hold'`", is: 'unknown type' },
  { name: '`TypeError` in the handler', act: raise(new TypeError('undefined is not a function')) },
  { name: '`throw null`', act: raise(null) },
  { name: 'an unknown error', act: raise(new Error('what?')) },
  { name: '`failure.permanent`', act: raise(failure.permanent('never')) },
  { name: '`failure.dependency`', act: raise(failure.dependency('the bank')) },
  { name: '`failure.skip`', act: raise(failure.skip('not needed')) },
  { name: 'its breaker is open', is: 'breaker open' },
  { name: 'it kills the process', is: 'deadly' },
  { name: '`ECONNREFUSED` in every lane', is: 'everywhere', act: raise(coded('ECONNREFUSED')) },
]
