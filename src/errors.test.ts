import { describe, expect, it } from 'vitest'
import {
  CommandConflictError,
  EventIdConflictError,
  ExpectedVersionError,
  errorCodes,
  HoldfastError,
  InvalidEventError,
  StoreError,
} from './errors.ts'

describe('an error of ours', () => {
  it('says what happened, what to do next, and which case it is', () => {
    const error = new HoldfastError('ENGINE_STATE', 'This engine was stopped.', { hint: 'Make a new one.' })

    expect(error).toBeInstanceOf(Error)
    expect(error.code).toBe('ENGINE_STATE')
    expect(error.hint).toBe('Make a new one.')
    expect(error.message).toBe('This engine was stopped. Make a new one.')
  })

  it('keeps its cause, whatever was thrown, and has none when there was none', () => {
    expect(new HoldfastError('INTERNAL', 'It broke.', { cause: undefined })).toHaveProperty('cause', undefined)
    expect(new HoldfastError('INTERNAL', 'It broke.', { cause: 0 }).cause).toBe(0)
    expect(new HoldfastError('INTERNAL', 'It broke.')).not.toHaveProperty('cause')
  })

  it.for([
    new HoldfastError('INTERNAL', 'It broke.'),
    new InvalidEventError('EVENT_NOT_JSON', 'data', 'It is a date.'),
    new ExpectedVersionError('account-1', 'new', 3),
    new EventIdConflictError('id-1', 'it is used'),
    new CommandConflictError('account-1', 'transfer-1', 3),
    new StoreError('STORE_BUSY', 'It is locked.'),
  ])('is told apart by its class, its name and its code: %s', (error) => {
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error.name).toBe(error.constructor.name)
    expect(String(error)).toContain(error.name)
    expect(errorCodes).toContain(error.code)
  })
})

it('a refused event names the place in it', () => {
  expect(new InvalidEventError('EVENT_NOT_JSON', 'data.lines[3].amount', 'It is NaN.').path).toBe(
    'data.lines[3].amount',
  )
})

it('a version conflict names the key, what was expected and what is there', () => {
  const error = new ExpectedVersionError('account-1', 2, 5)

  expect(error).toMatchObject({ code: 'EXPECTED_VERSION', key: 'account-1', expected: 2, actual: 5 })
  expect(error.message).toContain('"account-1" was expected at version 2, but it is at version 5')
  expect(new ExpectedVersionError('account-1', 'new', 5).message).toContain('was expected to be new')
  expect(new ExpectedVersionError('account-1', 2, 5, 4)).toMatchObject({
    tries: 4,
    message: expect.stringContaining('at version 5 after 4 attempts'),
  })
})

it('an id conflict names the id, and shows one with odd characters readably', () => {
  const error = new EventIdConflictError('a\u200b"b', 'it is used')

  expect(error).toMatchObject({ code: 'EVENT_ID_CONFLICT', eventId: 'a\u200b"b' })
  expect(error.message).toContain(String.raw`"b" is taken: it is used.`)
})

it('every code is there once', () => {
  expect(new Set(errorCodes).size).toBe(errorCodes.length)
})
