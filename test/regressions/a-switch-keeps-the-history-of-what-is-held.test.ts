import { setTimeout } from 'node:timers/promises'
import { createLog, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { dropRebuild, rebuild, switchRebuild } from '../acts.ts'
import { bank, credited, debited } from '../fixtures.ts'
import { engineOf, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'

const of = (version: number) =>
  defineProjection('balances', {
    events: bank,
    version,
    initial: () => ({ balance: 0 }),
    on: {
      Credited: ({ balance }, { data }) => ({ balance: balance + data.amount }),
      Debited: () => {
        throw new RangeError(`a bug of version ${version}`)
      },
    },
  })

describeStores('a switch between two versions that hold the same event', (open) => {
  it('keeps since when it is held and every attempt at it, and a drop of the old version does too', async () => {
    await using place = await open()
    const { store } = place
    await createLog({ store, events: bank }).append('a', [debited(1), credited(2)])
    await using engine = engineOf(store, [of(1)])
    await engine.start()
    await engine.drain()
    const letters = () => store.letters.list({ subscription: 'balances' })
    const lanes = async () =>
      (await Promise.all([0, 1, 2, 3].map((partition) => store.letters.heldLanes('balances', partition)))).flat()
    const [before, queued] = await letters()
    const [lane] = await lanes()
    expect(before).toMatchObject({ status: 'parked', attemptsTotal: 1 })
    await engine.stop()
    // The next one holds it at a later time.
    await setTimeout(5)
    await rebuild(of(2), { store, logger: silent, load: 1 })
    await switchRebuild(of(2), { store, logger: silent })
    const [after, behind] = await letters()
    expect([after?.heldAt, behind?.heldAt]).toEqual([before?.heldAt, queued?.heldAt])
    expect(after).toMatchObject({ status: 'parked', attemptsTotal: 2 })
    expect(after?.attempts.map(({ failure }) => failure.message)).toEqual(['a bug of version 1', 'a bug of version 2'])
    expect(after?.attempts[0]).toEqual(before?.attempts[0])
    expect(after?.failure?.message).toBe('a bug of version 2')
    expect((await lanes()).map(({ since }) => since)).toEqual([lane?.since])
    await dropRebuild('balances', { store, version: 1 })
    expect(await letters()).toEqual([after, behind])
  })

  it('tells no attempt twice when it is switched back', async () => {
    await using place = await open()
    const { store } = place
    await createLog({ store, events: bank }).append('a', [debited(1)])
    await using engine = engineOf(store, [of(1)])
    await engine.start()
    await engine.drain()
    await engine.stop()
    await rebuild(of(2), { store, logger: silent, load: 1 })
    for (const version of [2, 1, 2, 1]) await switchRebuild(of(version), { store, logger: silent })
    const [letter] = await store.letters.list({ subscription: 'balances' })
    expect(letter).toMatchObject({ attemptsTotal: 2, failure: { message: 'a bug of version 1' } })
    expect(letter?.attempts.map(({ failure }) => failure.message)).toEqual(['a bug of version 2', 'a bug of version 1'])
  })
})
