import { describe, expect, it } from 'vitest'
import { createLog, defineSubscription } from 'holdfast'
import { createScriptedSource } from 'holdfast/testing'
import { balances, createWorld, debited } from '../fixtures.ts'
import { createOperator } from 'holdfast'
import { codeOf, createScene } from './scene.ts'

// What is asked for, and what is refused. No engine runs: nothing is carried out here.

async function still() {
  const scene = await createScene()
  await scene.engine.stop()
  return scene
}

const why = { reason: 'fixed in 1.2' }

describe('asking for a redrive', () => {
  it('freezes the lanes whose head is meant, and says so in the audit', async () => {
    await using scene = await still()
    const { operator } = scene
    const { lanes, digest } = await operator.select('balances', 'redrive', { all: true })
    expect(lanes).toBe(2)
    const { redrive, busy } = await operator.redrive('balances', { all: true }, { ...why, expected: digest })

    expect(busy).toBe(0)
    expect(redrive).toMatchObject({ act: 'redrive', by: 'ada', reason: 'fixed in 1.2', status: 'running', lanes: 2 })
    expect(await operator.findRedrive(redrive.id)).toEqual(redrive)
    expect(await operator.redrives()).toEqual([redrive])
    expect(
      (await operator.redriveLanes(redrive.id)).map(({ lane, position, state }) => [lane, position, state]),
    ).toEqual([
      ['a', 2, 'pending'],
      ['b', 5, 'pending'],
    ])
    expect(await operator.audit()).toMatchObject([{ act: 'redrive', target: 'balances', details: { lanes: 2 } }])
    expect((await operator.letter({ subscription: 'balances', position: 3 })).redrive).toMatchObject({ id: redrive.id })
  })

  it.for([
    ['a letter', { letter: 5 }, ['b']],
    ['a lane', { lane: 'a' }, ['a']],
    ['a filter', { filter: { text: 'can not take 3' } }, ['b']],
    ['a filter by type', { filter: { type: 'Debited' } }, ['a', 'b']],
  ] as const)('goes by %s', async ([, selection, lanes]) => {
    await using scene = await still()
    const { operator } = scene
    expect(await operator.select('balances', 'redrive', selection)).toMatchObject({ lanes: lanes.length, busy: 0 })
    const { redrive } = await operator.redrive('balances', selection, why)
    expect((await operator.redriveLanes(redrive.id)).map(({ lane }) => lane)).toEqual(lanes)
  })

  it('goes by incident', async () => {
    await using scene = await still()
    const { operator } = scene
    const [incident] = await operator.incidents({ subscription: 'balances' })
    const { redrive } = await operator.redrive('balances', { incident: incident?.fingerprint as string }, why)
    expect(redrive.lanes).toBe(2)
  })

  it('goes in stages, each on top of those before, and stops at the first failure then', async () => {
    await using scene = await still()
    const { operator } = scene
    const { redrive } = await operator.redrive('balances', { lane: 'a' }, { ...why, canary: true, rate: 5 })
    expect(redrive).toMatchObject({ stages: [1, 3, 8, 28, 128, 1_128], maxFailures: 0, rate: 5, admitted: 1 })
    const other = await operator.redrive('balances', { lane: 'b' }, { ...why, canary: [3, 4], maxFailures: 9 })
    expect(other.redrive).toMatchObject({ stages: [3, 7], maxFailures: 9 })
  })

  it('says what stands in the way', async () => {
    await using scene = await still()
    const { operator } = scene
    const ask = (selection: object) => operator.redrive('balances', selection as never, why)

    await expect(ask({ letter: 6 })).rejects.toMatchObject({
      code: 'LETTER_NOT_HEAD',
      message: expect.stringContaining('is queued in the lane "a", behind the letter at position 2'),
    })
    expect(await codeOf(ask({ letter: 1 }))).toBe('LETTER_UNKNOWN')
    await expect(ask({ lane: 'c' })).rejects.toMatchObject({
      code: 'REDRIVE_NOTHING',
      message: expect.stringContaining('"c" of balances is not held'),
    })
    await expect(ask({ incident: 'no such' })).rejects.toMatchObject({
      code: 'REDRIVE_NOTHING',
      message: expect.stringContaining('2 held lanes: 2 parked'),
      hint: 'holdfast dlq list balances',
    })
    expect(await codeOf(operator.redrive('balance', { all: true }, why))).toBe('SUBSCRIPTION_UNKNOWN')
    expect(await operator.redrives()).toEqual([])
    expect(await operator.audit()).toEqual([])
  })

  it('does nothing when these are other lanes than the operator saw', async () => {
    await using scene = await still()
    const { operator } = scene
    const { digest } = await operator.select('balances', 'redrive', { lane: 'a' })
    await expect(operator.redrive('balances', { all: true }, { ...why, expected: digest })).rejects.toMatchObject({
      code: 'REDRIVE_CHANGED',
      message: expect.stringContaining(
        'The selection of balances changed after the digest was computed: it now has 2 lanes.',
      ),
    })
    const ask = (expected: unknown) => operator.redrive('balances', { all: true }, { ...why, expected } as never)
    for (const expected of [2, '', 'two', null, digest.toUpperCase()])
      expect(await codeOf(ask(expected))).toBe('OPTION_INVALID')
    expect(await operator.redrives()).toEqual([])
  })

  it('gives two operators who want the same lanes each of them once', async () => {
    await using scene = await still()
    const [ada, bob] = [scene.operatorBy('ada'), scene.operatorBy('bob')]
    const asked = await Promise.allSettled([
      ada.redrive('balances', { all: true }, why),
      bob.redrive('balances', { all: true }, why),
    ])
    expect(asked.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const refused = asked.find(({ status }) => status === 'rejected') as PromiseRejectedResult
    const id = (await ada.redrives())[0]?.id ?? ''
    expect(refused.reason).toMatchObject({
      code: 'REDRIVE_BUSY',
      message: expect.stringContaining(`All 2 selected lanes of balances are in other redrives, such as ${id}.`),
      hint: `holdfast redrives show ${id}, or: holdfast redrives cancel ${id} --reason "<why>"`,
    })
    expect(await ada.select('balances', 'redrive', { all: true })).toMatchObject({ lanes: 0, busy: 2 })
  })

  it('leaves out what is in another redrive', async () => {
    await using scene = await still()
    const { operator } = scene
    await operator.redrive('balances', { lane: 'a' }, why)
    const { redrive, busy } = await operator.redrive('balances', { all: true }, why)
    expect({ lanes: redrive.lanes, busy }).toEqual({ lanes: 1, busy: 1 })
    await expect(operator.discard('balances', { letter: 2 }, why)).rejects.toMatchObject({ code: 'REDRIVE_BUSY' })
  })

  it('can be taken back, once', async () => {
    await using scene = await still()
    const { operator } = scene
    const { redrive } = await operator.redrive('balances', { all: true }, why)
    expect(await codeOf(operator.cancel(redrive.id, ''))).toBe('OPTION_INVALID')
    expect(await operator.cancel(redrive.id, 'not yet')).toBe(true)
    expect(await operator.cancel(redrive.id, 'not yet')).toBe(false)
    expect(await operator.findRedrive(redrive.id)).toMatchObject({
      status: 'cancelled',
      endedReason: 'not yet',
      byState: { left: 2, pending: 0 },
    })
    expect((await operator.audit()).map(({ act }) => act)).toEqual(['redrive', 'redrive.cancel'])
  })

  it.for([
    ['no selection', undefined],
    ['two at once', { lane: 'a', all: true }],
    ['one that is misspelled', { lanes: 'a' }],
    ['all that is not meant', { all: false }],
    ['an empty filter', { filter: {} }],
    ['a filter that lost its condition', { filter: { lane: undefined } }],
    ['a misspelled filter', { filter: { fingerprnt: 'x' } }],
    ['an incident that fell out', { incident: undefined }],
    ['a letter that is no position', { letter: '2' }],
    ['a partition of nothing', { lane: 'a', partition: 0 }],
  ])('refuses %s, which could be taken for everything', async ([, selection]) => {
    await using scene = await still()
    const { operator } = scene
    expect(await codeOf(operator.redrive('balances', selection as never, why))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.select('balances', 'redrive', selection as never))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.dryRun('balances', selection as never))).toBe('OPTION_INVALID')
    expect(await operator.redrives()).toEqual([])
  })

  it.for([
    ['no reason', {}],
    ['an empty reason', { reason: '  ' }],
    ['a reason with control characters', { reason: 'a\u001b[31m' }],
    ['a rate of nothing', { ...why, rate: 0 }],
    ['a rate that is no number', { ...why, rate: Number.NaN }],
    ['stages of nothing', { ...why, canary: [] }],
    ['a stage of zero', { ...why, canary: [1, 0] }],
    ['a half failure', { ...why, maxFailures: 0.5 }],
    ['minus one lane', { ...why, expected: -1 }],
    ['an option nobody reads', { ...why, maxFailure: 1 }],
  ])('refuses %s', async ([, options]) => {
    await using scene = await still()
    expect(await codeOf(scene.operator.redrive('balances', { all: true }, options as never))).toBe('OPTION_INVALID')
    expect(await scene.operator.redrives()).toEqual([])
  })
})

describe('a lane that waits for a version', () => {
  it('can be skipped and not redriven', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const subscription = defineSubscription(balances, { source })
    source.deliver(
      { key: 'a', type: 'Credited', version: 1, data: { amount: 1 } },
      { key: 'a', type: 'Credited', version: 3, data: { amount: 1 } },
    )
    const engine = world.engine([subscription])
    await world.settle(engine)
    await engine.stop()
    const operator = createOperator({ store: world.store, subscriptions: [subscription], by: 'ada', ...world.runtime })

    await expect(operator.redrive('balances', { lane: 'a' }, why)).rejects.toMatchObject({
      code: 'REDRIVE_NOTHING',
      message: expect.stringContaining(
        'waits for version 2. If that will never come, skip it: holdfast dlq skip balances 2 --dry-run',
      ),
    })
    expect(await operator.select('balances', 'redrive', { all: true })).toMatchObject({ lanes: 0 })
    expect(await operator.select('balances', 'skip', { all: true })).toMatchObject({ lanes: 1 })
    expect((await operator.skip('balances', { lane: 'a' }, why)).redrive).toMatchObject({ act: 'skip', lanes: 1 })
  })

  it('is what skip is for, and nothing else', async () => {
    await using world = await createWorld()
    await createLog({ store: world.store }).append('a', [debited(1)])
    const engine = world.engine()
    await world.settle(engine)
    await engine.stop()
    const operator = createOperator({ store: world.store, subscriptions: [balances], by: 'ada', ...world.runtime })
    await expect(operator.skip('balances', { lane: 'a' }, why)).rejects.toMatchObject({
      code: 'REDRIVE_NOTHING',
      message: expect.stringContaining('does not wait for a version: it is parked'),
    })
  })
})
