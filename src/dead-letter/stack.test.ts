import { describe, expect, it } from 'vitest'
import { describeFailure } from '../failure/failure.ts'
import { foldStack, framesOf, originOf } from './stack.ts'

const own = new URL('..', import.meta.url).href
const stackOf = (...frames: string[]) => ['Error: no', ...frames.map((frame) => `    ${frame}`)].join('\n')

describe('a stack', () => {
  it('shows the user’s own frames, and folds the others where they stand together', () => {
    const stack = stackOf(
      'at reduce (/app/balances.ts:3:5)',
      `at foldEvent (${own}projection/fold.ts:60:13)`,
      'at take (/app/node_modules/holdfast/dist/engine/page.js:3:1)',
      'at parse (/app/node_modules/zod/index.js:1:1)',
      'at /app/main.ts:1:1',
      'at process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
      'at Array.map (<anonymous>)',
    )
    expect(foldStack({ stack, message: 'no' })).toEqual([
      { kind: 'frame', text: 'at reduce (/app/balances.ts:3:5)' },
      {
        kind: 'folded',
        of: 'holdfast',
        frames: [
          `at foldEvent (${own}projection/fold.ts:60:13)`,
          'at take (/app/node_modules/holdfast/dist/engine/page.js:3:1)',
        ],
      },
      { kind: 'folded', of: 'library', frames: ['at parse (/app/node_modules/zod/index.js:1:1)'] },
      { kind: 'frame', text: 'at /app/main.ts:1:1' },
      {
        kind: 'folded',
        of: 'node',
        frames: [
          'at process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
          'at Array.map (<anonymous>)',
        ],
      },
    ])
  })

  it('takes no line of a message for a frame', () => {
    const failure = describeFailure(new Error('first\n    at Ada (secret:1:1)\nlast'), 'permanent', 'fold')
    expect(failure.stack).toContain('secret')
    expect(framesOf(failure).join()).not.toContain('secret')
    expect(framesOf(failure)[0]).toContain('stack.test.ts')
  })

  it('has no frames where nobody can tell where its message ends', () => {
    const failure = describeFailure(new Error(`${'x'.repeat(5_000)}\n    at Ada (secret:1:1)`), 'permanent', 'fold')
    expect(failure.stack).toContain('secret')
    expect(framesOf(failure)).toEqual([])
    expect(framesOf({ stack: null, message: '' })).toEqual([])
    expect(framesOf({ stack: 'at Ada (secret:1:1)', message: 'other' })).toEqual([])
    expect(framesOf({ stack: stackOf('at Ada (secret:1:1)'), message: 'other' })).toEqual([])
    expect(framesOf({ stack: 'Error: cut…\n    at Ada (secret:1:1)', message: 'cut…' })).toEqual([])
  })

  it('may begin with its message, and a message with a mark of what was cut', () => {
    expect(framesOf({ stack: 'no\n    at pay (/app/bank.ts:1:1)', message: 'no' })).toEqual([
      'at pay (/app/bank.ts:1:1)',
    ])
    expect(framesOf({ stack: 'Error: …cut\n    at pay (/app/bank.ts:1:1)', message: '…cut' })).toHaveLength(1)
  })

  it('knows whose code a frame is in, also when it is the first', () => {
    const path = new URL('..', import.meta.url).pathname
    expect(
      foldStack({ stack: stackOf(`at take (${path}engine/page.ts:1:1)`, 'at pay (/app/a.ts:1:1)'), message: 'no' }),
    ).toEqual([
      { kind: 'folded', of: 'holdfast', frames: [`at take (${path}engine/page.ts:1:1)`] },
      { kind: 'frame', text: 'at pay (/app/a.ts:1:1)' },
    ])
    expect(originOf('at new <anonymous> (/app/bank.ts:1:1)')).toBeUndefined()
    expect(originOf('at <anonymous>')).toBe('node')
  })
})
