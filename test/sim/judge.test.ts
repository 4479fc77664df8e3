import type { Store } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { at as position, commitOf, newEvent } from '../../src/testing/contracts/fixtures.ts'
import { createMemoryServer } from '../../src/testing/memory/store.ts'
import { History } from '../../src/testing/simulation/history.ts'
import { createVirtualRuntime } from '../../src/testing/virtual.ts'
import {
  type Decided,
  decidedIn,
  judgeAudit,
  judgeDecisions,
  judgeFinished,
  judgeGathered,
  judgeOrder,
} from './judge.ts'
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
  const judge = (effects: readonly number[], out: readonly number[] = []) => {
    const had = effects.map((at) => ({ key: `key-${at}`, n: 1, idempotencyKey: '' }))
    return judgeOrder({ effects: had }, known, { leftOut: (_, id) => out.some((at) => id === `key-${at}-1`) })
  }

  it.for([
    ['one after the other', [1, 2, 3], [], []],
    ['not all of them yet', [1, 2], [], []],
    ['again from the first', [1, 2, 1, 2, 3], [], []],
    ['one was left out', [1, 3], [2], []],
    ['one came too early', [1, 3, 2], [], ['I2 calls: the effect of key-3-1 came before that of key-2-1']],
    ['one never came', [1, 3], [], ['I2 calls: key-2-1 had no effect, and what is behind it had']],
  ] as const)('%s', ([, effects, out, problems]) => {
    expect(judge(effects, out)).toEqual(problems)
  })
})

describe('a row that gathers the events of several keys', () => {
  const known = ['key-0-1', 'key-2-1', 'key-0-2'].map((id, i): Known => {
    return { id, position: i + 1, lane: id.slice(0, 5), partition: 0, flaw: 'none' }
  })
  const judge = async (values: readonly number[], decided: Partial<Decided> = {}) => {
    const trail = values.reduce((sum, value) => (sum * 31 + value) % 1_000_003, 0)
    const json = JSON.stringify({ count: values.length, trail })
    const store = { rows: { load: async () => new Map([['row-0', { json }]]) } } as unknown as Store
    const nothing: Decided = { leftOut: () => false, mended: () => undefined }
    return judgeGathered(store, known, { ...nothing, ...decided })
  }

  it('has them in the order of the log', async () => {
    expect(await judge([1, 20_001, 2])).toEqual([])
    expect(await judge([1, 2, 20_001])).toHaveLength(1)
    expect(await judge([1, 20_001])).toHaveLength(1)
  })

  it('has not what was left out, and has what was edited as it was edited', async () => {
    expect(await judge([1, 2], { leftOut: (_, id) => id === 'key-2-1' })).toEqual([])
    expect(await judge([1, 21_001, 2], { mended: (_, id) => (id === 'key-2-1' ? 1_001 : undefined) })).toEqual([])
  })
})

describe('what people decided', () => {
  const lease = { subscription: 'walks', partition: 0, owner: 'o', epoch: 1 }
  const name = { subscription: 'walks', position: 1 }
  const body = JSON.stringify({ n: 1_007, flaw: 'none' })
  const revise = { what: 'letters.revise.commit', about: [name, body] }
  const unrevise = { what: 'letters.unrevise.commit', about: [name] }
  const commit = (change: object) => ({
    what: 'subscriptions.commit',
    about: [{ ...commitOf(lease), letters: [{ position: 1, ...change }] }],
    value: { outcome: 'committed' },
  })
  const applied = commit({ change: 'resolved', by: 'engine' })
  const discarded = commit({ change: 'discarded', ending: { by: 'person', reason: '' } })
  const seenTo = commit({ change: 'resolved', by: 'person' })
  const reset = { what: 'subscriptions.reset', about: ['walks'] }
  const mendedAway = 'I16 walks: key-0-7 was mended to be 1007, and is undefined'
  const back = 'I16 walks: key-0-7 was left out, and is back'

  it.for([
    ['it was mended, and that is what it is', [revise, applied], { mended: 1_007 }, []],
    ['it was mended, and that is gone', [revise, applied], {}, [mendedAway]],
    ['it was mended, by a call that had no effect', [{ ...revise, error: 'away' }, applied], {}, []],
    [
      'it was mended by itself',
      [{ ...revise, what: 'letters.revise', value: { outcome: 'revised' } }, applied],
      {},
      [mendedAway],
    ],
    ['it was mended, and that was taken back before it was applied', [revise, unrevise, applied], {}, []],
    ['it was mended, and that was taken back in another version', [revise, applied, unrevise], {}, []],
    ['it was mended, and that was not taken back', [revise, applied, { ...unrevise, error: 'away' }], {}, [mendedAway]],
    ['it was mended, and somebody began anew', [revise, applied, reset], {}, []],
    ['it was mended, and left out in another version after that', [revise, applied, seenTo], { leftOut: true }, []],
    ['it was mended, left out after that, and is back', [revise, applied, discarded], {}, [back]],
    ['it was discarded', [discarded], { leftOut: true }, []],
    ['it was discarded, and is back', [discarded], {}, [back]],
    ['it was seen to elsewhere, and is back', [seenTo], {}, [back]],
  ] as const)('holds: %s', ([, effects, decided, problems]) => {
    const history = new History()
    for (const [atMs, about] of effects.entries())
      history.add(atMs, 'o', 'effect', about.what, { askedMs: atMs, ...about })
    const { mended, leftOut = false } = decided as { mended?: number; leftOut?: boolean }
    const found = { leftOut: () => leftOut, mended: () => mended }
    expect(judgeDecisions(history, found, new Map([[1, 'key-0-7']]))).toEqual(problems)
  })

  it('is in the audit, once, and nothing is missing there', async () => {
    const runtime = createVirtualRuntime()
    const store = createMemoryServer(runtime).connect()
    const deed = (act: string, target: string, details = {}) => {
      return store.audit.record({ by: 'person', act, target, reason: 'why', at: 0, details })
    }
    await deed('redrive', 'calls', { redrive: 'r-1' })
    await deed('letter.revise', 'calls/5')
    const entries = await store.audit.list(0, 10)
    const judge = (audit: typeof entries, status = 'done') => {
      const redrive = { id: 'r-1', act: 'redrive', status, endedReason: 'to see what happens' }
      const letter = { event: { position: 5 }, partition: 0 }
      const seen = {
        audit: { list: async () => audit },
        redrives: { list: async () => [redrive] },
        letters: { list: async () => [letter], revisions: async () => [{ isTakenBack: false }] },
      }
      return judgeAudit(seen as unknown as Store, ['calls'])
    }
    expect(await judge(entries)).toEqual([])
    expect(await judge(entries, 'cancelled')).toEqual([
      'I18 the end of r-1 is 0 times in the audit, and happened 1 times',
    ])
    expect(await judge(entries.slice(0, 1))).toEqual([
      'I18 to mend calls/5 is 0 times in the audit, and happened 1 times',
    ])
    expect(await judge(entries.slice(1))).toEqual([
      'I18 entry 1 is missing',
      'I18 the redrive r-1 is 0 times in the audit, and happened 1 times',
    ])
  })
})
