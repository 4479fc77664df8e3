import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { payloadOf, redact, redactFailure } from 'holdfast'
import { describeFailure } from '../../src/failure/failure.ts'

// What is hidden of an error are the values of its event. It was every quoted part, and every word with a digit: `relation "***" does not
// exist`.

const order = {
  id: 'ord-4711',
  sku: 'sku-1',
  customer: 'customer-17',
  total: 503,
  lines: 2,
  placedAt: '2026-03-04T05:06:07Z',
}

describe('a status is shown, although the payload has the same number:', () => {
  it.for([
    'HTTP 500',
    'HTTP/1.1 500 Internal Server Error',
    'status: 500',
    'statusCode=500',
    'Response code 500 (Internal Server Error)',
    'Unexpected server response: 500',
    'Request failed with status code 500',
    'fetch failed: 500 Internal Server Error',
    'fetch failed with 500',
    'request failed: 500',
    'Request failed with response code 500',
    'server returned 500 Internal Server Error',
    'answered 500 (Internal Server Error)',
    'carrier: 500 Internal Server Error',
  ])('%s', (message) => {
    expect(redact(message, { code: 500 })).toBe(message)
  })

  it.for([
    ['500 rows', '*** rows'],
    ['amount 500 is too high', 'amount *** is too high'],
    ['payment failed: 500', 'payment failed: ***'],
    ['code 500', 'code ***'],
    ['country code: 500', 'country code: ***'],
    ['can not pay 500 (Internal account)', 'can not pay *** (Internal account)'],
    ['fetch failed: 5000 rows', 'fetch failed: *** rows'],
  ] as const)('but no amount: %s', ([message, shown]) => {
    expect(redact(message, { code: 500, rows: 5000 })).toBe(shown)
  })
})

it('a path is compared with short values in a message, but not in a frame of the stack', () => {
  const frame = 'at run (/srv/billing/mail.ts:1:1)'
  const error = { name: 'Error', message: 'no /srv/billing/x', stack: `Error: no /srv/billing/x\n    ${frame}` }
  expect(redactFailure(describeFailure(error, 'permanent', 'x'), { team: 'billing' })).toMatchObject({
    message: 'no /srv/***/x',
    stack: `    ${frame}`,
  })
})

describe('a message of', () => {
  it.for([
    'relation "revenue_by_day2" does not exist',
    'HTTP 503 from carrier',
    'no such table: revenue_by_day2',
    'column "address_line1" of relation "customers" does not exist',
    'duplicate key value violates unique constraint "orders_2026_pkey" (23505)',
    'connect ECONNREFUSED 127.0.0.1:5432',
    "ENOENT: no such file or directory, open '/srv/templates/mail-2.html'",
    'Expected 1 of 2 rows, retry in 30s. Run: holdfast dlq show notify 7',
    'Request failed with status code 503',
  ])('code, schema or protocol is shown as it is: %j', (message) => {
    expect(redact(message, order)).toBe(message)
  })

  it.for([
    ['order ord-4711 costs 503.00', 'order *** costs ***'],
    ['no stock of "sku-1" at 2026-03-04T05:06:07Z', 'no stock of "***" at ***'],
    [
      'Key (customer)=(customer-17) is not present in table "customers"',
      'Key (customer)=(***) is not present in table "customers"',
    ],
  ] as const)('values has all but those: %j', ([message, shown]) => {
    expect(redact(message, order)).toBe(shown)
  })
})

it('an error of SQLite names its table', () => {
  using db = new DatabaseSync(':memory:')
  const said = () => {
    try {
      return db.prepare('SELECT * FROM revenue_by_day2').all()
    } catch (error) {
      return redactFailure(describeFailure(error, 'permanent', 'sql'), order)
    }
  }
  expect(said()).toMatchObject({ message: 'no such table: revenue_by_day2', code: 'ERR_SQLITE_ERROR' })
})

it('a data error of PostgreSQL has no value, also none that code made of several', () => {
  const error = Object.assign(new Error('invalid input syntax for type integer: "h4sh-of-things"'), { code: '22P02' })
  const failure = describeFailure(new Error('no', { cause: error }), 'permanent', 'sql', 'SQLSTATE 22P02')
  expect(redactFailure(failure, order).causes).toEqual([
    { errorType: 'Error', message: 'invalid input syntax for type integer: "***"' },
  ])
})

it('metadata and revisions of a letter are private as well', () => {
  const letter = {
    event: { body: '{"a":"Ada"}', metadata: '{"userId":"u-9912"}' },
    revision: { number: 1, body: '{"a":"Grace"}', by: 'me', reason: 'x', at: 1 },
  }
  expect(redact('Ada, Grace and u-9912 are not in table people', payloadOf(letter))).toBe(
    '***, *** and *** are not in table people',
  )
})

it('failures that were alike stay alike: what groups them is not what is shown', () => {
  const fingerprints = ['Ada', 'Grace'].map((name) => {
    const failure = describeFailure({ name: 'Error', message: `no "${name}" in table people` }, 'permanent', 'fold')
    return redactFailure(failure, { name }).fingerprint
  })
  // As letters that were written by 0.1 have it.
  expect(fingerprints).toEqual(['f1f24ba1fd14289d', 'f1f24ba1fd14289d'])
})
