import { type Breaker, createBreaker, createEngine, createLog, createOperator, defineHandler, failure } from 'holdfast'
import { expect, expectTypeOf, it } from 'vitest'
import { bank, createWorld, credited } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'
import { silent } from './breaker-scene.ts'

const acts = ['breaker.isolate', 'breaker.reset']

// A breaker had an isolate and a reset of its own, of which the audit knew nothing, and the reset had no reason.
describeStores('nothing is done to a breaker without an entry in the audit', (open) => {
  it('a breaker has calls and reads, and no act', async () => {
    expectTypeOf<keyof Breaker>().toEqualTypeOf<'name' | 'enter' | 'report' | 'forget' | 'call' | 'state' | 'close'>()
    await using place = await open()
    const breaker = createBreaker({ store: place.store, name: 'rates' })
    const named = Object.getOwnPropertyNames(Object.getPrototypeOf(breaker)).concat(Object.keys(breaker))
    expect(named).toContain('enter')
    expect(named.filter((name) => /isolat|reset/i.test(name))).toEqual([])
  })

  it('what an operator isolates and resets is in the audit with author, reason and what it changed', async () => {
    await using place = await open()
    const operator = createOperator({ store: place.store, subscriptions: [], by: 'ada' })
    const breaker = createBreaker({ store: place.store, name: 'rates', opens: { failures: 1 } })
    await operator.isolateBreaker('rates', 'they are moving', { new: true })
    await operator.as('bob').resetBreaker('rates', 'they have moved')
    await breaker.report(await breaker.enter(), false)
    await operator.resetBreaker('rates', 'a mistake of ours')
    await operator.as('eve').isolateBreaker('rates', 'once more')
    const entries = await operator.audit()
    expect(entries.map(({ by, act, target, reason }) => [by, act, target, reason])).toEqual([
      ['ada', 'breaker.isolate', 'rates', 'they are moving'],
      ['bob', 'breaker.reset', 'rates', 'they have moved'],
      ['ada', 'breaker.reset', 'rates', 'a mistake of ours'],
      ['eve', 'breaker.isolate', 'rates', 'once more'],
    ])
    expect(entries.map(({ details }) => details)).toMatchObject([
      { before: 'closed', after: 'isolated' },
      { before: 'isolated', after: 'closed' },
      { before: 'open', after: 'closed' },
      { before: 'closed', after: 'isolated' },
    ])
    expect(await operator.verifyAudit()).toMatchObject({ ok: true })
  })

  it('an act without a reason or an author is refused, changes nothing and leaves no entry', async () => {
    await using place = await open()
    const operator = createOperator({ store: place.store, subscriptions: [], by: 'ada' })
    await operator.isolateBreaker('rates', 'they are moving', { new: true })
    const before = await place.store.breakers.list()
    for (const reason of ['', ' ', undefined, 5, 'x'.repeat(3_000)] as string[]) {
      for (const act of ['isolateBreaker', 'resetBreaker'] as const)
        await expect(operator[act]('rates', reason)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
    expect(() => operator.as('')).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(await place.store.breakers.list()).toEqual(before)
    expect(await operator.audit()).toHaveLength(1)
  })

  it('an act is in force for the breakers of the same process when it is answered', async () => {
    await using place = await open()
    const operator = createOperator({ store: place.store, subscriptions: [], by: 'ada' })
    const changes: string[] = []
    const breaker = createBreaker({
      store: place.store,
      name: 'rates',
      onChange: (_, from, to) => changes.push(`${from.state} → ${to.state}`),
    })
    for (const round of [1, 2, 3]) {
      // The breaker has just read the store, and would not read it again for a second.
      expect(await breaker.call(() => round)).toBe(round)
      await operator.isolateBreaker('rates', 'they are moving', { new: true })
      await expect(breaker.call(() => round)).rejects.toMatchObject({ code: 'BREAKER_OPEN', state: 'isolated' })
      await operator.resetBreaker('rates', 'they have moved')
    }
    expect(await breaker.state()).toMatchObject({ state: 'closed', reset: { by: 'ada' } })
    expect(changes).toHaveLength(6)
    expect((await operator.audit()).map(({ act }) => act)).toEqual([...acts, ...acts, ...acts])
    await breaker.close()
  })

  it('an engine that works leaves no entry, whatever its breakers do', async () => {
    await using place = await open()
    let calls = 0
    const handler = defineHandler('notify', {
      events: bank,
      on: { Credited: () => Promise.reject(failure.transient(`down ${++calls}`)) },
      breaker: { opens: { failures: 1 }, cooldown: '10m' },
    })
    const operator = createOperator({ store: place.store, subscriptions: [handler], by: 'ada' })
    await using engine = createEngine({ store: place.store, subscriptions: [handler], logger: silent })
    await createLog({ store: place.store, events: bank }).append('a', [credited(1)])
    await engine.start()
    await expect.poll(async () => (await place.store.breakers.list())[0]?.state.state, { timeout: 10_000 }).toBe('open')
    expect(await operator.audit()).toEqual([])
  })
})

it('a reset retries what waits in an engine of the same process at once, and an isolation stops it at once', async () => {
  await using world = await createWorld()
  let isDown = true
  const called: number[] = []
  const handler = defineHandler('notify', {
    events: bank,
    on: {
      Credited: ({ data }) => {
        called.push(data.amount)
        if (isDown) throw failure.transient('down')
      },
    },
    breaker: { opens: { failures: 1 }, cooldown: '10m', key: ({ key }) => key },
  })
  const engine = world.engine([handler])
  const operator = world.operator([handler])
  const log = createLog({ store: world.store, events: bank })
  await log.append('a', [credited(1)])
  await engine.start()
  await world.runtime.advance(60_000)
  expect(called.length).toBeGreaterThan(0)
  isDown = false
  const before = called.length
  // In virtual time: no look at the store comes between the act and the question.
  await operator.resetBreaker('notify:a', 'it is back')
  await world.runtime.advance(20)
  expect(called).toHaveLength(before + 1)
  await operator.isolateBreaker('notify:a', 'they are moving')
  await log.append('a', [credited(2)])
  await world.runtime.advance(60_000)
  expect(called).toHaveLength(before + 1)
})
