import { createEngine, createLog, createOperator, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { balances, bank, createWorld, credited, rowOf } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

async function running(store: Store) {
  const engine = createEngine({ store, subscriptions: [balances], logger: silent })
  const operator = createOperator({ store, subscriptions: [balances], by: 'ada' })
  await createLog({ store, events: bank }).append('a', [credited(1), credited(2)])
  await engine.start()
  await engine.drain()
  return { engine, operator, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() }
}

// Engines had a pause, a resume and a reset of their own, of which the audit knew nothing.
describeStores('nothing is done to a subscription without an entry in the audit', (open) => {
  it('an engine has its lifecycle and reads, and no act', async () => {
    await using place = await open()
    await using scene = await running(place.store)
    expect(Object.keys(scene.engine).toSorted()).toEqual([
      'drain',
      'letters',
      'on',
      'prepare',
      'read',
      'start',
      'status',
      'stop',
      'verify',
    ])
  })

  it('pause, resume and reset are in the audit with author, reason and what they changed', async () => {
    await using place = await open()
    await using scene = await running(place.store)
    const { operator } = scene
    await operator.pause('balances', 'wrong rates')
    await operator.as('bob').resume('balances', 'right again')
    await operator.reset('balances', 'to be sure')
    const entries = await operator.audit()
    expect(entries.map(({ by, act, target, reason }) => [by, act, target, reason])).toEqual([
      ['ada', 'subscription.pause', 'balances', 'wrong rates'],
      ['bob', 'subscription.resume', 'balances', 'right again'],
      ['ada', 'subscription.reset', 'balances', 'to be sure'],
    ])
    expect(entries.map(({ details }) => details)).toMatchObject([
      { wasPaused: false, isPaused: true },
      { wasPaused: true, isPaused: false },
      { appliedBefore: 2, appliedAfter: 0 },
    ])
    expect(await operator.verifyAudit()).toMatchObject({ ok: true })
  })

  it('an act without a reason is refused, changes nothing and leaves no entry', async () => {
    await using place = await open()
    await using scene = await running(place.store)
    const { operator } = scene
    for (const reason of ['', ' ', undefined, 5] as string[]) {
      for (const act of ['pause', 'resume', 'reset'] as const)
        await expect(operator[act]('balances', reason)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
    expect(() => operator.as('')).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(await operator.audit()).toEqual([])
    expect((await operator.status()).subscriptions[0]?.stored).toMatchObject({
      pause: undefined,
      counts: { applied: 2 },
    })
  })
})

it('a pause is in force in an engine of the same process when it is answered, and so is a resume', async () => {
  await using world = await createWorld()
  const engine = world.engine()
  await world.settle(engine)
  const state = async () => (await engine.status()).subscriptions[0]?.state
  // In virtual time: no heartbeat comes between the act and the question.
  await world.operator().pause('balances', 'a look')
  await world.runtime.advance(0)
  expect(await state()).toMatchObject({ state: 'paused', reason: 'a look' })
  await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
  await world.runtime.advance(5_000)
  expect(await rowOf(engine, 'a')).toBeUndefined()
  await world.operator().resume('balances', 'seen')
  await world.runtime.advance(0)
  expect(await state()).not.toMatchObject({ state: 'paused' })
  await engine.drain()
  expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
})

it('what the operator reports is what the engine reports, less what only its process knows', async () => {
  await using world = await createWorld()
  const engine = world.engine()
  await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
  await world.settle(engine)
  const [own] = (await engine.status()).subscriptions
  const seen = await world.operator().status()
  expect(seen.subscriptions).toEqual([{ name: 'balances', stored: own?.stored, unreadable: undefined }])
  expect([seen.gap, seen.breakers]).toEqual([undefined, []])
  const unknown = world.operator([{ ...balances, name: 'others' }])
  expect((await unknown.status()).subscriptions).toEqual([{ name: 'others', stored: undefined, unreadable: undefined }])
})
