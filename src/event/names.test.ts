import { describe, expect, it } from 'vitest'
import { HoldfastError, InvalidEventError } from '../errors.ts'
import { checkColumnName, checkName, checkReadable, checkTypeName } from './names.ts'

const refusal = (check: () => unknown): unknown => {
  try {
    return check()
  } catch (error) {
    return error
  }
}

describe('the name of a projection', () => {
  it.for(['a', 'account-balances', 'a1_b-2', 'x'.repeat(48)])('can be %j', (name) => {
    expect(checkName(name, 'The projection')).toBe(name)
  })

  it.for([
    ['', 'nothing'],
    ['x'.repeat(49), '49 characters'],
    ['Balances', 'a capital'],
    ['1st', 'a digit first'],
    ['-a', 'a dash first'],
    ['a b', 'a space'],
    ['a\n', 'a line end'],
    ['a.b', 'a dot'],
    ['a"; DROP TABLE holdfast_events; --', 'SQL'],
    ['ä', 'a letter outside of ASCII'],
    [null, 'null'],
    [7, 'a number'],
    [['a'], 'a list'],
  ] as const)('can not be %j (%s)', ([name]) => {
    const error = refusal(() => checkName(name, 'The projection'))
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code: 'NAME_INVALID', message: expect.stringMatching(/^The projection /) })
  })
})

describe('the name of a column', () => {
  it.for(['amount', 'openedAt', '_x9', 'X'.repeat(48)])('can be %j', (name) => {
    expect(checkColumnName(name, 'The column')).toBe(name)
  })

  it.for(['', '9a', 'a-b', 'a b', 'a"', "a'", 'a;--', 'a\0', 'é', 'x'.repeat(49)])('can not be %j', (name) => {
    expect(refusal(() => checkColumnName(name, 'The column'))).toMatchObject({ code: 'NAME_INVALID' })
  })
})

describe('the type of an event', () => {
  it.for(['FundsCredited', 'bank.account/opened:v2', 'Überweisung', '入金', '💶', '__proto__', 'T'.repeat(48)])(
    'can be %j',
    (type) => {
      expect(checkTypeName(type, 'type')).toBe(type)
    },
  )

  it.for(['', ' A', 'A B', 'A\n', 'A\0', '\ud800', 'A\u200b', 'T'.repeat(49), undefined, null, 1])(
    'can not be %j',
    (type) => {
      const error = refusal(() => checkTypeName(type, 'events[0].type'))
      expect(error).toBeInstanceOf(InvalidEventError)
      expect(error).toMatchObject({ code: 'NAME_INVALID', path: 'events[0].type' })
    },
  )
})

describe('a key or an id', () => {
  it.for(['a', 'account 7', 'Ünïcödé 💶', '\u{10ffff}', 'x'.repeat(512)])('can be %j', (key) => {
    expect(checkReadable(key, 'key', 512)).toBe(key)
  })

  it.for(['', '\0', 'a\tb', 'a\n', 'a\u007f', 'a\u0085', '\ud800', 'a\udc00b', 'x'.repeat(513), undefined, 5, {}])(
    'can not be %j',
    (key) => {
      const error = refusal(() => checkReadable(key, 'key', 512))
      expect(error).toBeInstanceOf(InvalidEventError)
      expect(error).toMatchObject({ code: 'EVENT_FIELD_INVALID', path: 'key' })
    },
  )

  it('is not repeated whole in the message that refuses it', () => {
    const error = refusal(() => checkReadable('x'.repeat(1_000_000), 'key', 512))
    expect((error as Error).message.length).toBeLessThan(300)
  })
})
