import { expect, it } from 'vitest'
import { redact } from '../../src/dead-letter/redact.ts'

// The last digits of a card were shown: the runs of a number with spaces were not hidden, those of `card 4929-1234` were.

it.for([
  ['card ending 9013', { card: '4929 1234 5678 9013' }, 'card ending ***'],
  ['card 4929 or 1234', { card: '4929 1234 5678 9013' }, 'card *** or ***'],
  ['card ending 9013', { card: "4929'1234'5678'9013" }, 'card ending ***'],
  ['call 555 or 1234', { phone: '+44 20 555 1234' }, 'call 555 or ***'],
  ['account 4711', { account: '12.34.4711' }, 'account ***'],
  ['account 0471', { account: '12 0471' }, 'account ***'],
  ['card ending 9013', { card: 4_929_123_456_789_013 }, 'card ending 9013'],
  ['total 12 of 345', { total: '12,345' }, 'total 12 of 345'],
  ['year 2026', { day: '2026-03-04' }, 'year 2026'],
] as const)('%s with %j', ([message, payload, shown]) => {
  expect(redact(message, payload)).toBe(shown)
})
