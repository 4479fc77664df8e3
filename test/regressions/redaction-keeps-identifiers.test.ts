import { describe, expect, it } from 'vitest'
import { redact, redactFailure } from '../../src/dead-letter/redact.ts'
import { describeFailure } from '../../src/failure/failure.ts'

// A word of a longer text hid the table and the column that an error is about: `column "***" of relation "***" does not exist`.

const note =
  'The customer complained that delivery failed because the carrier could not connect to our warehouse on Monday'

describe('words of a longer text do not hide a name of the schema:', () => {
  it.for([
    'column "delivery" of relation "carrier" does not exist',
    'relation "public.warehouse" does not exist',
    'column carrier.delivery does not exist',
    'column "Delivery" of relation "shop-warehouse" does not exist',
    'null value in column "delivery" of relation "carrier" violates not-null constraint',
    'insert or update on table "delivery" violates foreign key constraint "warehouse"',
    'permission denied for table warehouse',
    'function carrier(integer) does not exist',
    'type "delivery" does not exist',
    'role "carrier" does not exist',
    'database "warehouse" does not exist',
    'invalid input value for enum delivery: ""',
    'no such table: warehouse',
    'no such table: main.warehouse',
    'no such column: warehouse',
    'no such column: carrier.warehouse',
    'table carrier has no column named delivery',
    'duplicate column name: delivery',
    'UNIQUE constraint failed: carrier.delivery, carrier.warehouse',
    'NOT NULL constraint failed: delivery.customer',
    "Unknown column 'delivery' in 'field list'",
    "Table 'shop.delivery' doesn't exist",
    'The column `carrier.delivery` does not exist in the current database.',
    "Invalid column name 'delivery'.",
    "Cannot read properties of undefined (reading 'delivery')",
    "Cannot set properties of undefined (setting 'delivery')",
    "Cannot destructure property 'carrier' of 'undefined' as it is undefined.",
    'delivery is not a function',
    'row.carrier.connect is not a function',
    'warehouse is not defined',
    'warehouse is not iterable',
  ])('%s', (message) => {
    expect(redact(message, { note })).toBe(message)
    expect(redact(JSON.stringify({ message }), { note })).toBe(JSON.stringify({ message }))
  })

  it.for([
    ['no such table: subscriptions', { title: 'Monthly subscription' }],
    ['no such table: subscription', { title: 'Monthly Subscription' }],
    ['relation "orders" does not exist', { title: 'Late Orders' }],
    ['relation "order_lines" does not exist', { title: 'see order_lines' }],
    ['no such table: users', { url: 'https://x.example/users/17' }],
  ] as const)('%s, also of a short text: %j', ([message, payload]) => {
    expect(redact(message, payload)).toBe(message)
  })

  it('in a cause of a failure', () => {
    const cause = new Error('relation "carrier" does not exist')
    const failure = describeFailure(new Error('Failed query', { cause }), 'permanent', 'sql')
    expect(redactFailure(failure, { note }).causes[0]?.message).toBe(cause.message)
  })
})

describe('hidden there is', () => {
  it.for([
    ['no such table: subscriptions', { plan: 'subscription' }, 'no such table: ***s'],
    ['no such table: subscriptions', { title: 'Monthly subscription', plan: 'subscription' }, 'no such table: ***s'],
    ['no such table: subscriptions', { plan: 'subscription', title: 'Monthly subscription' }, 'no such table: ***s'],
    ['no such column: warehouse', { note, place: 'warehouse' }, 'no such column: ***'],
    ['no such column: warehouse', { place: 'warehouse', note }, 'no such column: ***'],
    ['no such column: orders', { title: 'Late orders', kind: 'orders' }, 'no such column: ***'],
    ['no such column: supersecret', { password: 'supersecret!' }, 'no such column: ***'],
    ['no such column: smith', { user: 'smith42' }, 'no such column: ***'],
    ['column "lovelace_byron2" does not exist', { id: 'lovelace_byron2' }, 'column "***" does not exist'],
    ['column "lovelace-byron" does not exist', { id: 'lovelace-byron' }, 'column "***" does not exist'],
    ['column "Ada Lovelace" does not exist', { name: 'Ada Lovelace' }, 'column "***" does not exist'],
    ['no such column: Ada Lovelace', { name: 'Ada Lovelace' }, 'no such column: ***'],
    ['no such column: secret_plan99', { note: 'the password is secret_plan99 of Ada' }, 'no such column: ***'],
    ['no such column: smith42', { note: 'we told smith42 to leave this place' }, 'no such column: ***'],
  ] as const)('a whole value, and a word with digits: %s with %j', ([message, payload, shown]) => {
    expect(redact(message, payload)).toBe(shown)
  })

  it.for([
    ['a carrier is late', 'a *** is late'],
    ['invalid type: carrier', 'invalid type: ***'],
    ['column "my carrier is late"', 'column "my *** is late"'],
    ['no such table: orders (carrier)', 'no such table: orders (***)'],
    ['near "carrier": syntax error', 'near "***": syntax error'],
    ['UNIQUE constraint failed: a.b, c carrier', 'UNIQUE constraint failed: a.b, c ***'],
  ] as const)('a word of a longer text elsewhere: %s', ([message, shown]) => {
    expect(redact(message, { note })).toBe(shown)
  })
})
