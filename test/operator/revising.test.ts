import { createLog, createOperator, defineEvents, defineProjection, evolved } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createWorld } from '../fixtures.ts'
import { codeOf, createScene } from './scene.ts'

const second = { subscription: 'balances', position: 2 }

describe('a revision', () => {
  it('is kept beside the letter, which stays as it came, with who and why', async () => {
    await using scene = await createScene()
    const { operator } = scene
    expect(await operator.previewRevision(second, { data: { amount: 1 } })).toEqual({
      changes: [{ change: 'changed', path: 'amount', before: 2, after: 1 }],
    })
    expect(await operator.revisions(second)).toEqual([])
    const revised = await operator.revise(second, { data: { amount: 1 } }, 'a typo of the teller')

    expect(revised).toEqual({ number: 1, changes: [{ change: 'changed', path: 'amount', before: 2, after: 1 }] })
    const view = await operator.letter(second)
    expect(view).toMatchObject({
      decoded: { data: { amount: 1 } },
      original: { data: { amount: 2 } },
      letter: {
        event: { body: '{"amount":2}' },
        revision: { number: 1, by: 'ada', reason: 'a typo of the teller' },
      },
    })
    expect(await operator.audit()).toMatchObject([
      {
        act: 'letter.revise',
        target: 'balances/2',
        by: 'ada',
        reason: 'a typo of the teller',
        details: { changes: 1 },
      },
    ])
    expect(JSON.stringify(await operator.audit())).not.toContain('amount')
  })

  it('is compared with the one before it, and taken back one by one', async () => {
    await using scene = await createScene()
    const { operator } = scene
    await operator.revise(second, { data: { amount: 1 } }, 'first')
    const next = await operator.revise(second, { json: '{ "amount": 0.50 }' }, 'second')
    expect(next).toEqual({ number: 2, changes: [{ change: 'changed', path: 'amount', before: 1, after: 0.5 }] })
    expect((await operator.letter(second)).letter.revision?.body).toBe('{ "amount": 0.50 }')

    expect(await operator.unrevise(second, 'no')).toEqual({
      number: 2,
      changes: [{ change: 'changed', path: 'amount', before: 0.5, after: 1 }],
    })
    expect(await operator.unrevise(second, 'no')).toMatchObject({ number: 1, changes: [{ before: 1, after: 2 }] })
    expect(await codeOf(operator.unrevise(second, 'no'))).toBe('REVISION_NONE')
    expect((await operator.revisions(second)).map(({ number, isTakenBack }) => [number, isTakenBack])).toEqual([
      [1, true],
      [2, true],
    ])
    expect((await operator.audit()).map(({ act }) => act)).toEqual([
      'letter.revise',
      'letter.revise',
      'letter.unrevise',
      'letter.unrevise',
    ])
  })

  it.for([
    ['data that does not fit its schema', { data: { amount: 'one' } }, 'EVENT_SCHEMA', 'data.amount'],
    ['data without what it needs', { data: {} }, 'EVENT_SCHEMA', 'data.amount'],
    ['what JSON can not hold', { data: { amount: Number.NaN } }, 'EVENT_NOT_JSON', 'data.amount'],
    ['a text that is no JSON', { json: '{"amount":' }, 'EVENT_NOT_JSON', 'json'],
    ['a key that no log takes', { json: '{"amount":1,"__proto__":{}}' }, 'EVENT_FORBIDDEN_KEY', 'json.__proto__'],
    ['too much', { data: { amount: 1, note: 'x'.repeat(1_100_000) } }, 'EVENT_TOO_LARGE', 'data'],
    ['nothing', {}, 'OPTION_INVALID', undefined],
    ['both', { data: { amount: 1 }, json: '{"amount":1}' }, 'OPTION_INVALID', undefined],
  ] as const)('is refused for %s', async ([, input, code, path]) => {
    await using scene = await createScene()
    const { operator } = scene
    await expect(operator.revise(second, input as never, 'why')).rejects.toMatchObject(
      path === undefined ? { code } : { code, path },
    )
    expect(await operator.revisions(second)).toEqual([])
    expect(await operator.audit()).toEqual([])
  })

  it('needs a letter that is held, and in nobody’s hands', async () => {
    await using scene = await createScene()
    const { operator, engine } = scene
    await engine.stop()
    const revise = (position: number) =>
      codeOf(operator.revise({ subscription: 'balances', position }, { data: { amount: 1 } }, 'why'))
    expect(await revise(1)).toBe('LETTER_UNKNOWN')
    // Behind a head that is parked it can be mended beforehand.
    expect(await revise(6)).toBe('nothing was thrown')
    await operator.redrive('balances', { lane: 'a' }, { reason: 'go' })
    expect(await revise(2)).toBe('LETTER_BUSY')
    expect(await revise(6)).toBe('LETTER_BUSY')
    expect(await codeOf(operator.unrevise({ subscription: 'balances', position: 6 }, 'why'))).toBe('LETTER_BUSY')
    expect(await codeOf(operator.revise(second, { data: { amount: 1 } }, ''))).toBe('OPTION_INVALID')
  })

  it('is of the schema version that the letter has: what comes after it comes after the revision too', async () => {
    const events = defineEvents({
      Paid: evolved(z.object({ cents: z.int() }), [({ euros }: { euros: number }) => ({ cents: euros * 100 })]),
    })
    const paid = defineProjection('paid', {
      events,
      initial: () => ({ cents: 0 }),
      on: { Paid: (row, { data }) => ({ cents: row.cents + data.cents }) },
    })
    await using world = await createWorld()
    await createLog({ store: world.store }).append('a', [{ type: 'Paid', data: { euros: 0.005 } }])
    await world.settle(world.engine([paid]))
    const operator = createOperator({ store: world.store, subscriptions: [paid], by: 'ada', ...world.runtime })
    const name = { subscription: 'paid', position: 1 }

    await expect(operator.revise(name, { data: { cents: 5 } }, 'why')).rejects.toMatchObject({ code: 'EVENT_SCHEMA' })
    await operator.revise(name, { data: { euros: 5 } }, 'why')
    expect((await operator.letter(name)).decoded).toEqual({ data: { cents: 500 } })
    expect((await operator.dryRun('paid', { all: true })).lanes[0]?.changes[0]?.after).toMatchObject({
      data: { cents: 500 },
    })
  })
})
