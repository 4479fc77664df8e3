import { createEngine, createLog, createOperator, defineHandler, failure, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, debited } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'

// A handler that gets another order never lets a later event of a key overtake what is held of it.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

type Order = 'key' | 'partition' | 'none'

function createScene(store: Store) {
  const state = { isBroken: true }
  const done: string[] = []
  const handlerOf = (order: Order) =>
    defineHandler('calls', {
      events: bank,
      order,
      on: {
        Debited: ({ key, data }) => {
          if (state.isBroken && data.amount < 0) throw failure.permanent('no such account')
          done.push(`${key} ${data.amount}`)
        },
      },
    })
  const log = createLog({ store, events: bank })
  const engineOf = (order: Order, name: string = order) =>
    createEngine({ store, subscriptions: [handlerOf(order)], logger: silent, name, beat: '50ms', lease: '2s' })
  const operatorOf = (order: Order) => createOperator({ store, subscriptions: [handlerOf(order)], by: 'ada' })
  return { state, done, log, engineOf, operatorOf }
}

describeStores('a changed order', (open) => {
  it('is refused while letters are held, and goes on when they are redriven', async () => {
    await using place = await open()
    const { state, done, log, engineOf, operatorOf } = createScene(place.store)
    await log.append('a', [debited(-1), debited(-2), debited(3)])
    await using old = engineOf('none')
    await old.start()
    await old.drain()
    await old.stop()
    expect(done).toEqual(['a 3'])

    await using young = engineOf('key', 'young')
    await expect(young.start()).rejects.toMatchObject({
      code: 'ORDER_CHANGED',
      message: expect.stringContaining(
        "2 lanes are held for calls with order: 'none', but this program has order: 'key'",
      ),
      hint: expect.stringContaining('redriven or discarded'),
    })
    state.isBroken = false
    const operator = operatorOf('none')
    const { redrive } = await operator.redrive('calls', { all: true }, { reason: 'the account is there' })
    await operator.ensureWorked(redrive.id)

    state.isBroken = true
    await using next = engineOf('key', 'next')
    await next.start()
    await next.drain()
    await log.append('a', [debited(-4), debited(5)])
    await log.append('b', [debited(6)])
    await next.drain()
    expect(done).toEqual(['a 3', 'a -1', 'a -2', 'b 6'])
    state.isBroken = false
    const second = await operatorOf('key').redrive('calls', { all: true }, { reason: 'now' })
    expect(second.redrive.lanes).toBe(1)
    await operatorOf('key').ensureWorked(second.redrive.id)
    expect(done.slice(4)).toEqual(['a -4', 'a 5'])
    expect(await next.verify('calls')).toMatchObject({ ok: true, counts: { applied: 6, held: 0 } })
  }, 60_000)

  it('is refused while another process runs it with the old one', async () => {
    await using place = await open()
    const { done, log, engineOf } = createScene(place.store)
    await using old = engineOf('key', 'old')
    await old.start()
    await log.append('a', [debited(1)])
    await old.drain()
    await using young = engineOf('none', 'young')
    await expect(young.start()).rejects.toMatchObject({
      code: 'ORDER_CHANGED',
      message: expect.stringContaining("The process old runs calls with order: 'key'"),
    })
    await log.append('a', [debited(2)])
    await old.drain()
    expect(done).toEqual(['a 1', 'a 2'])
  }, 60_000)

  it('stops a process that still has the old one, and one that starts again with it', async () => {
    await using place = await open()
    const { store } = place
    const { done, log, engineOf } = createScene(store)
    await using first = engineOf('key', 'first')
    await first.start()
    await log.append('a', [debited(1)])
    await first.drain()
    // One that attends, and is too late for every partition.
    const subscriptions: Store['subscriptions'] = {
      ...store.subscriptions,
      claim: async () => ({ outcome: 'owned', owner: 'first' }),
    }
    const waiting = createScene({ ...store, subscriptions })
    await using late = waiting.engineOf('key', 'late')
    await late.start()
    await first.stop()

    await using young = engineOf('none', 'young')
    await young.start()
    await log.append('a', [debited(2)])
    await young.drain()
    const failed = async () => (await late.status()).subscriptions[0]?.state
    await expect.poll(failed, { timeout: 20_000 }).toMatchObject({ state: 'failed', error: { code: 'ORDER_CHANGED' } })
    await using again = engineOf('key', 'again')
    await expect(again.start()).rejects.toMatchObject({ code: 'ORDER_CHANGED' })
    await log.append('a', [debited(3)])
    await young.drain()
    expect([done, waiting.done]).toEqual([['a 1', 'a 2', 'a 3'], []])
  }, 60_000)
})
