import { createEngine, createLog, createOperator, defineHandler, failure, type Operator, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, debited } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { describeStores, type Place } from '../rebuild/stores.ts'

// An act tries the letters that were seen, as they were seen: what was tried since is not tried again by it.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const lanes = 30

async function createScene({ store }: Place) {
  const tries = new Map<string, number>()
  const state = { isBroken: true }
  const calls = defineHandler('calls', {
    events: bank,
    on: {
      Debited: ({ key }) => {
        tries.set(key, (tries.get(key) ?? 0) + 1)
        if (state.isBroken) throw failure.permanent('no such account')
      },
    },
  })
  const log = createLog({ store, events: bank })
  for (let i = 0; i < lanes; i++) await log.append(`key-${i}`, [debited(1)])
  const engine = createEngine({ store, subscriptions: [calls], logger: silent })
  await engine.start()
  await engine.drain()
  const operatorBy = (by: string, its: Store = store) => createOperator({ store: its, subscriptions: [calls], by })
  return {
    store,
    state,
    tries,
    engine,
    operatorBy,
    ada: operatorBy('ada'),
    bob: operatorBy('bob'),
    [Symbol.asyncDispose]: async () => {
      await engine.stop()
    },
  }
}

async function over(operator: Operator, id: string): Promise<void> {
  for await (const { isOver } of operator.watch(id, { every: '10ms' })) if (isOver) return
}

describeStores('acts at the same moment', (open) => {
  it('try no letter twice, where the second reaches the store when the first has failed', async () => {
    await using place = await open()
    await using scene = await createScene(place)
    const { ada, tries, store } = scene
    tries.clear()
    const failed = Promise.withResolvers<void>()
    const redrives: Store['redrives'] = {
      ...store.redrives,
      ask: async (request) => {
        await failed.promise
        return store.redrives.ask(request)
      },
    }
    const bob = scene.operatorBy('bob', { ...store, redrives })
    const act = codeOf(bob.redrive('calls', { all: true }, { reason: 'the account is there' }))
    const { redrive } = await ada.redrive('calls', { all: true }, { reason: 'the account is there' })
    await over(ada, redrive.id)
    await scene.engine.drain()
    failed.resolve()
    expect(await act).toBe('REDRIVE_BUSY')
    expect(Math.max(...tries.values())).toBe(1)
    // What comes later is another act.
    const later = await ada.redrive('calls', { all: true }, { reason: 'once more' })
    expect(later.redrive.lanes).toBe(lanes)
    await over(ada, later.redrive.id)
  }, 60_000)

  it('try no letter twice between them, however fast the first fails', async () => {
    await using place = await open()
    await using scene = await createScene(place)
    const { ada, bob, tries, engine } = scene
    for (let round = 0; round < 20; round++) {
      tries.clear()
      const acts = await Promise.allSettled(
        [ada, bob].map(async (operator) => {
          const { redrive } = await operator.redrive('calls', { all: true }, { reason: 'the account is there' })
          await over(operator, redrive.id)
          return redrive
        }),
      )
      await engine.drain()
      const refused = acts.flatMap((act) => (act.status === 'rejected' ? [act.reason as { code: string }] : []))
      for (const { code } of refused) expect(['REDRIVE_CHANGED', 'REDRIVE_BUSY', 'REDRIVE_NOTHING']).toContain(code)
      expect([...tries.values()].filter((many) => many !== 1)).toEqual([])
      expect(tries.size).toBe(lanes)
    }
  }, 60_000)

  it('are refused where the very same lanes were tried and parked again since they were seen', async () => {
    await using place = await open()
    await using scene = await createScene(place)
    const { ada, bob, tries, engine } = scene
    const seen = await ada.select('calls', 'redrive', { all: true })
    expect(seen.lanes).toBe(lanes)
    expect(await ada.select('calls', 'redrive', { all: true })).toEqual(seen)
    const { redrive } = await bob.redrive('calls', { all: true }, { reason: 'the account is there' })
    await over(bob, redrive.id)
    await engine.drain()
    tries.clear()

    const act = ada.redrive('calls', { all: true }, { reason: 'the account is there', expected: seen.digest })
    await expect(act).rejects.toMatchObject({ code: 'REDRIVE_CHANGED', message: expect.stringContaining('30 lanes') })
    await engine.drain()
    expect(tries.size).toBe(0)
    expect((await ada.redrives()).map(({ id }) => id)).toEqual([redrive.id])

    const now = await ada.select('calls', 'redrive', { all: true })
    expect(now).toMatchObject({ lanes, busy: 0 })
    scene.state.isBroken = false
    const again = await ada.redrive('calls', { all: true }, { reason: 'now', expected: now.digest })
    await over(ada, again.redrive.id)
    expect(tries.size).toBe(lanes)
  }, 60_000)

  it('are refused where a letter was edited since it was seen, and not where the edit was taken back', async () => {
    await using place = await open()
    await using scene = await createScene(place)
    const { ada, bob } = scene
    const letter = { subscription: 'calls', position: 3 }
    const seen = await ada.select('calls', 'discard', { letter: 3 })
    expect(seen.lanes).toBe(1)
    await bob.revise(letter, { data: { amount: 2 } }, 'typo')
    const discard = () => ada.discard('calls', { letter: 3 }, { reason: 'a test', expected: seen.digest })
    expect(await codeOf(discard())).toBe('REDRIVE_CHANGED')
    await bob.unrevise(letter, 'no typo')
    expect((await discard()).redrive.lanes).toBe(1)
  }, 60_000)
})
