import { describe, expect, it } from 'vitest'
import { redact, redactError, redactFailure } from '../../src/dead-letter/redact.ts'
import { classify } from '../../src/failure/classify.ts'
import { describeFailure } from '../../src/failure/failure.ts'

describe('a message keeps', () => {
  it.for([
    ['table a and table b are not for this role', { title: 'Bread and butter' }],
    ['the row was not found, with no index for it', { title: 'Not for the kids', by: 'With You' }],
    ['cannot insert into the view', { title: 'Into Wild' }],
  ] as const)('common words that a name has, too: %s', ([message, payload]) => {
    expect(redact(message, payload)).toBe(message)
  })

  it('the names that an ORM quotes, when the database refuses a value', () => {
    const refused = Object.assign(new Error('invalid input syntax for type integer: "h4sh-of-things"'), {
      code: '22P02',
      severity: 'ERROR',
    })
    const sql = 'insert into "orders" ("id", "total") values ($1, $2)'
    const error = new Error(`Failed query: ${sql}: invalid input syntax for type integer: "h4sh-of-things"`, {
      cause: refused,
    })
    const { class: of, rule, evidence } = classify(error, [], 0)
    expect(redactFailure(describeFailure(error, of, rule, evidence), { id: 'Ada' })).toMatchObject({
      evidence: 'SQLSTATE 22P02',
      message: `Failed query: ${sql}: invalid input syntax for type integer: "***"`,
      causes: [{ message: 'invalid input syntax for type integer: "***"' }],
    })
  })
})

describe('a message does not show', () => {
  it.for([
    ['नरेंद्र मोदी', 'user मोदी is unknown', 'user *** is unknown'],
    ['நிலா குமாரி', 'user நிலா is unknown', 'user *** is unknown'],
    ['Rene\u0301 Sole\u0301', 'user Sole\u0301 is unknown', 'user *** is unknown'],
  ] as const)('a word of %j that ends with a combining mark', ([name, message, shown]) => {
    expect(redact(message, { name })).toBe(shown)
  })

  it('the value that PostgreSQL refused, in the error that a handler logs', () => {
    const error = Object.assign(new Error('invalid input syntax for type integer: "h4sh-of-things"'), { code: '22P02' })
    expect(redactError(error, { id: 'Ada' }).message).toBe('invalid input syntax for type integer: "***"')
  })

  it('a value that is one of the common words', () => {
    expect(redact('tag for is unknown', { tag: 'for' })).toBe('tag *** is unknown')
  })
})
