import { describe, expect, it } from 'vitest'
import type { Duration } from '../runtime/duration.ts'
import { classify } from './classify.ts'
import { describeFailure } from './failure.ts'
import { FailureError, failure } from './said.ts'

const told = (thrown: unknown) => classify(thrown, [() => 'unknown'], 0)
const said = { rule: 'said', evidence: null }

describe('what a handler says outright', () => {
  it('is an error with its message and its cause, to be thrown', () => {
    const cause = new TypeError('no')
    const error = failure.transient('the queue is full', { cause })
    expect(error).toBeInstanceOf(FailureError)
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'FailureError', message: 'the queue is full', cause })
    expect(failure.permanent('no')).not.toHaveProperty('cause')
    expect(describeFailure(error, 'transient', 'said')).toMatchObject({ errorType: 'FailureError' })
  })

  it('is what it is, whatever rules there are and whatever caused it', () => {
    const cause = Object.assign(new Error('no'), { status: 404 })
    expect(told(failure.transient('no', { cause }))).toEqual({ class: 'transient', ...said })
    expect(told(failure.permanent('no', { cause }))).toEqual({ class: 'permanent', ...said })
    expect(told(failure.dependency('the bank', 'no', { cause }))).toEqual({
      class: 'dependency',
      dependency: 'the bank',
      ...said,
    })
    expect(failure.dependency('the bank').message).toBe('the bank is unavailable')
    expect(told(failure.skip('a test order'))).toEqual({ class: 'permanent', skip: 'a test order', ...said })
  })

  it('is heard from inside of another error, the outer one first', () => {
    expect(told(new Error('wrapped', { cause: failure.permanent('no') }))).toEqual({ class: 'permanent', ...said })
    expect(told(failure.transient('wait', { cause: failure.permanent('no') })).class).toBe('transient')
  })

  it('can ask for time, an hour at the most', () => {
    expect(told(failure.transient('no', { retryAfter: '90s' })).retryAfterMs).toBe(90_000)
    expect(told(failure.transient('no', { retryAfter: '10ms' })).retryAfterMs).toBe(10)
    expect(told(failure.dependency('it', 'no', { retryAfter: '1d' })).retryAfterMs).toBe(3_600_000)
  })

  it('is understood from another copy of the package', () => {
    const foreign = Object.assign(new Error('no'), { [Symbol.for('holdfast.failure')]: { class: 'permanent' } })
    expect(told(foreign)).toEqual({ class: 'permanent', ...said })
    const nonsense = Object.assign(new Error('no'), { [Symbol.for('holdfast.failure')]: { class: 'fatal' } })
    expect(told(nonsense).rule).not.toBe('said')
  })

  it('never fails by itself, whatever it is given', () => {
    expect(told(failure.transient('no', { retryAfter: 'soon' as Duration }))).toEqual({ class: 'transient', ...said })
    expect(told(failure.transient('no', null as unknown as object)).class).toBe('transient')
    expect(told(failure.permanent(Symbol('no') as unknown as string)).class).toBe('permanent')
    expect(told(failure.dependency(Symbol('no') as unknown as string)).dependency).toBe('Symbol(no)')
    expect(told(failure.skip('')).skip).toBe('no reason')
    expect(told(failure.skip('x'.repeat(9_999))).skip?.length).toBe(1_001)
  })
})
