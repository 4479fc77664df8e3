import { createOperator } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { balances } from '../fixtures.ts'
import { codeOf, createScene } from './scene.ts'

describe('an operator who looks', () => {
  it('finds letters by what is known of them', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const positions = async (filter: object) =>
      (await operator.letters({ subscription: 'balances', ...filter })).map(({ event }) => event.position)

    expect(await positions({})).toEqual([2, 3, 5, 6])
    expect(await positions({ status: 'parked' })).toEqual([2, 5])
    expect(await positions({ lane: 'a', after: 2 })).toEqual([3, 6])
    expect(await positions({ text: 'CAN NOT TAKE 3' })).toEqual([5])
    expect(await positions({ type: 'Credited' })).toEqual([3])
    expect(await positions({ limit: 1 })).toEqual([2])
    expect(await positions({ lane: undefined, status: undefined })).toEqual([2, 3, 5, 6])
  })

  it('refuses a query that would quietly mean another', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const query = (filter: object) => codeOf(operator.letters({ subscription: 'balances', ...filter }))

    expect(await query({ fingerprnt: 'x' })).toBe('OPTION_INVALID')
    expect(await query({ status: 'dead' })).toBe('OPTION_INVALID')
    expect(await query({ class: 'bad' })).toBe('OPTION_INVALID')
    expect(await query({ type: '' })).toBe('OPTION_INVALID')
    expect(await query({ since: 'yesterday' })).toBe('OPTION_INVALID')
    expect(await query({ limit: 0 })).toBe('OPTION_INVALID')
    expect(await query({ limit: 1e9 })).toBe('OPTION_INVALID')
    expect(await codeOf(operator.letters({ subscription: 'balance' }))).toBe('SUBSCRIPTION_UNKNOWN')
  })

  it('sees a letter whole: what it is, why it failed, and who waits behind it', async () => {
    await using scene = await createScene()
    const view = await scene.operator.letter({ subscription: 'balances', position: 2 })

    expect(view).toMatchObject({
      letter: { lane: 'a', status: 'parked', event: { body: '{"amount":2}', version: 2 } },
      decoded: { data: { amount: 2 } },
      isHead: true,
      lane: { lane: 'a', headPosition: 2, letters: 3 },
      revisions: [],
      redrive: undefined,
    })
    expect(view.letter.attempts).toHaveLength(1)
    expect(view.behind.map(({ event }) => event.position)).toEqual([3, 6])
    const [first, ...rest] = view.stack ?? []
    expect(first).toMatchObject({ kind: 'frame', text: expect.stringContaining('fixtures.ts') })
    expect(rest.some((line) => line.kind === 'folded' && line.of === 'holdfast')).toBe(true)
    expect(rest.some((line) => line.kind === 'frame' && line.text.includes('/src/'))).toBe(false)
  })

  it('sees one in the middle of its lane, and only those behind it', async () => {
    await using scene = await createScene()
    const view = await scene.operator.letter({ subscription: 'balances', position: 3 })

    expect(view).toMatchObject({ isHead: false, stack: undefined, lane: { headPosition: 2 } })
    expect(view.behind.map(({ event }) => event.position)).toEqual([6])
    expect((await scene.operator.letter({ subscription: 'balances', position: 2 }, { behind: 1 })).behind).toHaveLength(
      1,
    )
    expect((await scene.operator.letter({ subscription: 'balances', position: 2 }, { behind: 0 })).behind).toEqual([])
  })

  it('is told why data can not be read', async () => {
    await using scene = await createScene()
    await scene.world.store.log.append(
      'd',
      [
        {
          id: 'd-1',
          type: 'Credited',
          schemaVersion: 1,
          time: '2026-01-01T00:00:00.000Z',
          body: '{}',
          metadata: undefined,
        },
      ],
      'any',
    )
    await scene.world.settle(scene.engine)
    const view = await scene.operator.letter({ subscription: 'balances', position: 7 })

    expect(view.decoded).toEqual({ problem: expect.stringContaining('does not match its schema: amount') })
  })

  it('does not find what is not there', async () => {
    await using scene = await createScene()
    const { operator } = scene
    expect(await codeOf(operator.letter({ subscription: 'balances', position: 1 }))).toBe('LETTER_UNKNOWN')
    expect(await codeOf(operator.letter({ subscription: 'balances', position: Number.NaN }))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.letter({ subscription: 'other', position: 2 }))).toBe('LETTER_UNKNOWN')
    expect(await codeOf(operator.stats('other'))).toBe('SUBSCRIPTION_UNKNOWN')
    expect(await codeOf(operator.findRedrive('none'))).toBe('REDRIVE_UNKNOWN')
  })

  it('has stats and incidents', async () => {
    await using scene = await createScene()
    const { operator } = scene
    expect(await operator.stats('balances')).toMatchObject({
      lanes: 2,
      byStatus: { parked: 2, queued: 2 },
      byClass: { permanent: 2 },
    })
    const [incident, ...others] = await operator.incidents({ subscription: 'balances' })
    expect(others).toEqual([])
    expect(incident).toMatchObject({ state: 'open', held: 2, lanes: 2, errorType: 'RangeError' })
  })

  it('leaves a trace when the values of a payload are looked at', async () => {
    await using scene = await createScene()
    const { operator } = scene
    expect(await codeOf(operator.reveal({ subscription: 'balances', position: 2 }, ' '))).toBe('OPTION_INVALID')
    expect(await operator.audit()).toEqual([])
    const view = await operator.reveal({ subscription: 'balances', position: 2 }, 'ticket 7')
    expect(view.decoded).toEqual({ data: { amount: 2 } })
    expect(await operator.audit()).toMatchObject([
      { number: 1, by: 'ada', act: 'letter.reveal', target: 'balances/2', reason: 'ticket 7' },
    ])
  })
})

describe('createOperator', () => {
  it('wants a store, subscriptions and a name', async () => {
    await using scene = await createScene()
    const { store } = scene.world
    const make = (options: object) => codeOf(() => createOperator(options as never))
    expect(await make({ subscriptions: [], by: 'ada' })).toBe('OPTION_INVALID')
    expect(await make({ store, by: 'ada' })).toBe('OPTION_INVALID')
    expect(await make({ store, subscriptions: [] })).toBe('OPTION_INVALID')
    expect(await make({ store, subscriptions: [], by: 'a\u001b[2J' })).toBe('OPTION_INVALID')
    expect(await make({ store, subscriptions: [balances, balances], by: 'ada' })).toBe('OPTION_INVALID')
    expect(await make({ store, subscriptions: [], by: 'ada', bye: 1 })).toBe('OPTION_INVALID')
    expect(createOperator({ store, subscriptions: [balances], by: 'ada' }).subscriptions).toEqual(['balances'])
  })
})
