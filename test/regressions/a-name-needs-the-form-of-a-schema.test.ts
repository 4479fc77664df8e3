import { describe, expect, it } from 'vitest'
import { redact } from '../../src/dead-letter/redact.ts'

// A word of a value was shown after any word that can also name a part of a schema: `no such token: …`, `user has role …`.
describe('a word of a value stays hidden where a message only looks as if it named something', () => {
  it.for([
    ['no such token: correct_horse_battery', { d: 'Bearer correct_horse_battery' }, 'correct_horse'],
    ['no such email: lovelace', { d: 'lovelace@example.com' }, 'lovelace'],
    ['no such table: lovelace', { d: 'lovelace@example.com' }, 'lovelace'],
    ['no such patient: Lovelace', { name: 'Ada Lovelace' }, 'Lovelace'],
    ['unsupported type Lovelace', { holder: 'Lovelace, Ada' }, 'Lovelace'],
    ['user has role Lovelace', { name: 'Ada Lovelace' }, 'Lovelace'],
    ['user has role "Lovelace"', { name: 'Ada Lovelace' }, 'Lovelace'],
    ['Invalid property "Lovelace"', { name: 'Ada Lovelace' }, 'Lovelace'],
    ['role correct_horse_battery', { d: 'pw correct_horse_battery' }, 'correct_horse'],
    ['index leukaemia', { d: 'acute leukaemia' }, 'leukaemia'],
    ['the function Lovelace held', { name: 'Ada Lovelace' }, 'Lovelace'],
  ] as const)('%s', ([message, payload, secret]) => {
    expect(redact(message, payload)).not.toContain(secret)
  })
})
