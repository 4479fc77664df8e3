import { describe, expect, it } from 'vitest'
import { at as position, commitOf, newEvent } from '../../src/testing/contracts/fixtures.ts'
import { createMemoryServer } from '../../src/testing/memory/store.ts'
import { History } from '../../src/testing/simulation/history.ts'
import { createVirtualRuntime } from '../../src/testing/virtual.ts'
import { judgeFinished } from './judge.ts'

describe('an event that is finished', () => {
  /** One had it, lost it to another, who finished it, and got the partition back at 40 ms. */
  async function begin() {
    const store = createMemoryServer(createVirtualRuntime()).connect()
    await store.log.append('key-0', [newEvent('key-0-1')], 'any')
    const history = new History()
    const tell = (atMs: number, who: string, what: string, about: object) =>
      history.add(atMs, who, 'effect', what, { what, askedMs: atMs, ...about })
    const lease = (owner: string, epoch: number) => ({ subscription: 'calls', partition: 0, owner, epoch })
    const claim = (atMs: number, who: string, epoch: number) =>
      tell(atMs, who, 'subscriptions.claim', { value: { outcome: 'claimed', lease: lease(who, epoch) } })
    claim(10, 'one', 1)
    claim(20, 'two', 2)
    const commit = { ...commitOf(lease('two', 2)), to: position(1) }
    tell(30, 'two', 'subscriptions.commit', { about: [commit], value: { outcome: 'committed' } })
    claim(40, 'one', 3)
    const effects = [{ key: 'key-0', n: 1, idempotencyKey: 'calls:key-0-1' }]
    return {
      /** A call of the first one, and when it arrived. */
      called: (askedMs: number, atMs: number) => tell(atMs, 'one', 'outside.call', { askedMs, value: undefined }),
      judge: () => judgeFinished(store, { effects }, history, 1),
    }
  }

  it('is not called for again by whoever gets its partition after that', async () => {
    const { called, judge } = await begin()
    called(41, 42)
    expect(await judge()).toEqual(['I3 calls: one did key-0-1 again, which was finished'])
  })

  it('may have been called for before that, however long the call takes to arrive', async () => {
    const { called, judge } = await begin()
    called(15, 50)
    expect(await judge()).toEqual([])
  })
})
