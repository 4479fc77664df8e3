import { describe, expect, it } from 'vitest'
import { redactFailure } from '../../src/dead-letter/redact.ts'
import { foldStack } from '../../src/dead-letter/stack.ts'
import { describeFailure } from '../../src/failure/failure.ts'

describe('what is shown of a failure', () => {
  it.for([
    'x\n    at y (Lovelace)',
    'x\n    at Lovelace',
    '\n    at Lovelace (file:///a.ts:1:1)',
    'x\r\n    at y (Lovelace)',
    'Lovelace',
    '    at Object.<anonymous> (/home/Lovelace/a.ts:1:2)',
  ])('has nothing of a payload that looks like a stack: %j', (text) => {
    const payload = { text }
    const failure = describeFailure(new Error(`bad: ${text}`), 'permanent', 'x')
    const shown = redactFailure(failure, payload)
    expect(JSON.stringify(shown)).not.toContain('Lovelace')
    expect(JSON.stringify(foldStack(shown))).not.toContain('Lovelace')
  })
  it('has nothing of one in a cause, a name or a code', () => {
    const payload = { who: 'Lovelace' }
    const error = Object.assign(new Error('bad', { cause: new Error('no Lovelace here') }), {
      name: 'LovelaceError',
      code: 'E_LOVELACE',
    })
    const shown = redactFailure(describeFailure(error, 'permanent', 'x', 'Lovelace'), payload)
    expect(JSON.stringify(shown).toLowerCase()).not.toContain('lovelace')
  })
})
