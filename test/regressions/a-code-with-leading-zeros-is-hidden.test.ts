import { expect, it } from 'vitest'
import { redact } from '../../src/dead-letter/redact.ts'

it.for(['0042', '0000', '007', '000001'])('hides the code %s', (code) => {
  expect(redact(`wrong pin ${code} for this card`, { pin: code })).toBe('wrong pin *** for this card')
})

it('keeps numbers of one or two digits, and a longer number that ends in the code', () => {
  expect(redact('42 of 10042 rows', { pin: '0042' })).toBe('42 of 10042 rows')
  expect(redact('attempt 7', { attempt: 7 })).toBe('attempt 7')
})
