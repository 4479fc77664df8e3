import * as door from 'holdfast'
import { expect, it } from 'vitest'
import { credit, engineOf, first, second, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'

// Rebuild, switch and drop were free functions with an optional author: without one, the audit had nothing.
describeStores('nothing is done to a version of a projection without an entry in the audit', (open) => {
  async function live(store: door.Store) {
    const engine = engineOf(store, [first])
    await engine.start()
    await credit(store, 3)
    await engine.drain()
    await engine.stop()
    const operator = door.createOperator({ store, subscriptions: [second], by: 'ada' })
    return operator
  }

  it('rebuild, switch and drop have their author and their reason', async () => {
    await using place = await open()
    const operator = await live(place.store)
    const options = { logger: silent, load: 1 }
    expect(await operator.rebuild('balances', { reason: 'a new form', ...options })).toMatchObject({ end: 'level' })
    // It is level already. All the same an operator asked for it, and the audit keeps who.
    await operator.as('bob').rebuild('balances', { reason: 'once more', ...options })
    expect(await operator.diffRebuild('balances')).toMatchObject({ isLevel: true, onlyLive: 0, onlyRebuilt: 0 })
    const switched = await operator.switchRebuild('balances', { reason: 'it is right', wait: '20s', logger: silent })
    expect(switched).toMatchObject({ from: 1, to: 2 })
    await operator.as('bob').dropRebuild('balances', { reason: 'not needed', version: 1 })
    const entries = await operator.audit()
    expect(entries.map(({ by, act, target, reason }) => [by, act, target, reason])).toEqual([
      ['ada', 'projection.rebuild', 'balances', 'a new form'],
      ['bob', 'projection.rebuild', 'balances', 'once more'],
      ['ada', 'projection.switch', 'balances', 'it is right'],
      ['bob', 'projection.drop', 'balances', 'not needed'],
    ])
    expect(entries.map(({ details }) => details)).toMatchObject([
      { version: 2, isNew: true },
      { version: 2, isNew: false },
      { to: 2, from: 1 },
      { version: 1 },
    ])
  })

  it('without a reason each is refused before anything is written', async () => {
    await using place = await open()
    const operator = await live(place.store)
    for (const reason of ['', undefined, 7] as string[]) {
      const refused = { code: 'OPTION_INVALID', message: expect.stringContaining('reason') as string }
      await expect(operator.rebuild('balances', { reason })).rejects.toMatchObject(refused)
      await expect(operator.switchRebuild('balances', { reason })).rejects.toMatchObject(refused)
      await expect(operator.dropRebuild('balances', { reason, version: 2 })).rejects.toMatchObject(refused)
    }
    expect((await place.store.rebuilds.list('balances')).map(({ version }) => version)).toEqual([1])
    expect(await operator.audit()).toEqual([])
  })
})

it('the main door has no act beside the operator', () => {
  const free = Object.keys(door).filter((name) => /rebuild|pause$|resume|reset/i.test(name))
  // `pause` is an action of a failure policy.
  expect(free).toEqual(['pause'])
})
