import { createEngine, createLog, createOperator, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { heldDigest } from '../../src/cli/act.ts'
import type { Context } from '../../src/cli/context.ts'
import { begin, commitOf, deedOf, hold, letter } from '../../src/testing/contracts/fixtures.ts'
import { balances, bank, debited } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

const [a, b] = [letter('a', 1, 'parked'), letter('b', 1, 'parked')]

/** Lanes `a` and `b` are held, each at a letter of its own. */
async function held(store: Store) {
  const lease = await begin(store.subscriptions)
  const commit = (change: object) => store.subscriptions.commit({ ...commitOf(lease), at: 1, ...change })
  await commit({ held: [a, b], lanes: [hold(a, 1), hold(b, 1)] })
  return {
    /** As the engine does when a letter was processed. */
    resolve: ({ lane, event: { position } }: typeof a) =>
      commit({
        lanes: [{ lane, hold: undefined, done: undefined }],
        letters: [{ change: 'resolved', position, by: 'engine' }],
      }),
    operator: createOperator({ store, subscriptions: [], by: 'ada' }),
  }
}

// A purge took a count as `expected`, and the command line took one as `--expect`: as many others passed for what was seen.
describeStores('an act is on the set that was seen, not on as many others', (open) => {
  it('a purge is refused when there is the same number of other letters', async () => {
    await using place = await open()
    const { store } = place
    const { operator, resolve } = await held(store)
    await resolve(a)
    const seen = await operator.purgeable('s')
    expect(seen.letters).toBe(1)
    await store.letters.purge('s', Date.now(), 1, deedOf('purge'))
    await resolve(b)
    const now = await operator.purgeable('s')
    expect(now.letters).toBe(1)
    const stale = operator.purge('s', { reason: 'tidy', expected: seen.digest })
    await expect(stale).rejects.toMatchObject({
      code: 'PURGE_CHANGED',
      message: expect.stringContaining('there is now 1. Nothing was done') as string,
    })
    expect((await operator.purgeable('s')).digest).toBe(now.digest)
    expect(await operator.purge('s', { reason: 'tidy', expected: now.digest })).toMatchObject({ letters: 1 })
  })

  it('a count is not accepted where a digest is wanted', async () => {
    await using place = await open()
    const { operator, resolve } = await held(place.store)
    await resolve(a)
    for (const expected of [1, '1', '', 'a'.repeat(63)] as string[]) {
      const message = expect.stringContaining('expected is not a digest') as string
      const refused = { code: 'OPTION_INVALID', message }
      await expect(operator.purge('s', { reason: 'tidy', expected })).rejects.toMatchObject(refused)
      await expect(operator.redrive('s', { all: true }, { reason: 'x', expected })).rejects.toMatchObject(refused)
    }
    expect((await operator.audit()).length).toBe(0)
  })

  it('what a reset or a drop removes has another digest when another lane is held instead', async () => {
    const digests: string[] = []
    for (const gone of [a, b]) {
      await using place = await open()
      const { store } = place
      const { resolve } = await held(store)
      await resolve(gone)
      expect((await store.letters.summary('s', 0)).lanes).toBe(1)
      const digest = () => heldDigest({ store: async () => store } as Context, 's')
      digests.push(await digest())
      expect(await digest()).toBe(digests.at(-1))
    }
    expect(new Set(digests).size).toBe(2)
  })
  // A reset with the digest of an earlier dry run removed an edit that was made after it.
  it('what a reset removes has another digest after an edit, an attempt or a new letter', async () => {
    await using place = await open()
    const { store } = place
    const subscriptions = [balances]
    const log = createLog({ store, events: bank })
    await log.append('a', [debited(1)])
    await using engine = createEngine({ store, subscriptions, logger: silent })
    await engine.start()
    await engine.drain()
    const operator = createOperator({ store, subscriptions, by: 'ada' })
    const digest = () => heldDigest({ store: async () => store } as Context, 'balances')
    const seen = [await digest()]
    expect(await digest()).toBe(seen[0])
    await operator.revise({ subscription: 'balances', position: 1 }, { data: { amount: 2 } }, 'x')
    seen.push(await digest())
    await operator.redrive('balances', { all: true }, { reason: 'x' })
    await engine.drain()
    seen.push(await digest())
    await log.append('a', [debited(1)])
    await engine.drain()
    seen.push(await digest())
    expect(new Set(seen).size).toBe(4)
  })
})
