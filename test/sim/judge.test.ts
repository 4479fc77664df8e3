import type { Store } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { at as position, commitOf, newEvent } from '../../src/testing/contracts/fixtures.ts'
import { createMemoryServer } from '../../src/testing/memory/store.ts'
import { History } from '../../src/testing/simulation/history.ts'
import { createVirtualRuntime } from '../../src/testing/virtual.ts'
import type { StoreEffect } from '../../src/testing/simulation/checks.ts'
import { judgeFinished, judgeOrder, decidedIn } from './judge.ts'
import type { StepsApp } from './steps.ts'
import type { Known } from './walk.ts'

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

describe('what is left out', () => {
  const letter = (id: string, endedBy: string) => ({ event: { id, position: 1 }, status: 'discarded', endedBy })

  it.for([
    ['somebody discarded it', 'ann', 'key-0-1', ['calls/1'], []],
    ['nobody did', 'ann', 'key-0-1', [], ['I1 calls: nobody discarded key-0-1']],
    ['its handler does not need it', 'policy', 'key-0-2', [], []],
    ['its handler needs it', 'policy', 'key-0-1', [], ['I1 calls: nobody discarded key-0-1']],
    ['it is needless, and somebody else did', 'ann', 'key-0-2', [], ['I1 calls: nobody discarded key-0-2']],
  ] as const)('is known, and why: %s', async ([, by, id, asked, problems]) => {
    const store = { letters: { list: async () => [letter(id, by)] } } as unknown as Store
    const steps = [
      { n: 1, flaw: 'none' },
      { n: 2, flaw: 'needless' },
    ] as const
    const app = { names: ['calls'], written: new Map([['key-0', steps]]) } as unknown as StepsApp
    const found = await decidedIn(store, app, new Set(asked))
    expect([found.decided.leftOut('calls', id), found.problems]).toEqual([true, problems])
  })
})

describe('where a partition is kept in order', () => {
  const known = [1, 2, 3].map((at): Known => {
    return { id: `key-${at}-1`, position: at, lane: `key-${at}`, partition: 0, flaw: 'none' }
  })
  const judge = (effects: readonly number[], held: readonly number[] = []) => {
    const history = new History()
    const lease = { subscription: 'calls', partition: 0, owner: 'o', epoch: 1 }
    const commit = { ...commitOf(lease), held: held.map((at) => ({ event: { position: at } })) }
    const about = { what: 'subscriptions.commit', about: [commit], askedMs: 0, value: { outcome: 'committed' } }
    history.add(0, 'o', 'effect', about.what, about satisfies StoreEffect)
    const had = effects.map((at) => ({ key: `key-${at}`, n: 1, idempotencyKey: '' }))
    return judgeOrder({ effects: had }, known, history)
  }

  it.for([
    ['one after the other', [1, 2, 3], [], []],
    ['not all of them yet', [1, 2], [], []],
    ['again from the first', [1, 2, 1, 2, 3], [], []],
    ['one was held, and came later', [1, 3, 2], [2], []],
    ['one came too early', [1, 3, 2], [], ['I2 calls: the effect of key-3-1 came before that of key-2-1']],
    ['one never came', [1, 3], [], ['I2 calls: key-2-1 had no effect, and what is behind it had']],
  ] as const)('%s', ([, effects, held, problems]) => {
    expect(judge(effects, held)).toEqual(problems)
  })
})
