import assert from 'node:assert/strict'
import type { InboxMark } from '../../handler/inbox-store.ts'
import { begin, type Case, claimBy, claimed, commitOf } from './fixtures.ts'

export const inboxCases: Record<string, Case> = {
  'finds the marks of a commit until they expire': async ({ subscriptions, inbox }) => {
    const lease = await begin(subscriptions)
    const marks: InboxMark[] = [
      { key: 'for ever', result: null, until: undefined },
      { key: '"{a,b}\\', result: '{"text":"\\u0000 ü"}', until: 100 },
      { key: 'over', result: '1', until: 50 },
    ]
    assert.deepEqual(await subscriptions.commit({ ...commitOf(lease), inbox: marks }), { outcome: 'committed' })
    const keys = [...marks.map(({ key }) => key), 'unheard of']
    const found = await inbox.find('s', keys, 50)
    assert.deepEqual(found, new Map(marks.slice(0, 2).map((mark) => [mark.key, mark])))
    assert.deepEqual([...(await inbox.find('s', keys, 49)).keys()].toSorted(), keys.slice(0, 3).toSorted())
    assert.deepEqual(await inbox.find('s', [], 50), new Map())
    assert.deepEqual(await inbox.find('another', keys, 50), new Map())
  },

  'keeps the last mark of a key': async ({ subscriptions, inbox }) => {
    const lease = await begin(subscriptions)
    const mark = (result: string | null, until: number | undefined) => ({ key: 'k', result, until })
    await subscriptions.commit({ ...commitOf(lease), inbox: [mark('1', undefined), mark('2', 9)] })
    assert.deepEqual((await inbox.find('s', ['k'], 0)).get('k'), mark('2', 9))
    await subscriptions.commit({ ...commitOf(lease), inbox: [mark(null, undefined)] })
    assert.deepEqual((await inbox.find('s', ['k'], 0)).get('k'), mark(null, undefined))
  },

  'keeps the marks of subscriptions apart': async ({ subscriptions, inbox }) => {
    const lease = await begin(subscriptions)
    await subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const other = claimed(await subscriptions.claim({ ...claimBy('one'), subscription: 't' }))
    const mark = (result: string) => ({ key: 'k', result, until: undefined })
    await subscriptions.commit({ ...commitOf(lease), inbox: [mark('1')] })
    await subscriptions.commit({ ...commitOf(other), table: undefined, inbox: [mark('2')] })
    assert.equal((await inbox.find('s', ['k'], 0)).get('k')?.result, '1')
    assert.equal((await inbox.find('t', ['k'], 0)).get('k')?.result, '2')
  },

  'deletes expired marks in batches, and no others': async ({ subscriptions, inbox }) => {
    const lease = await begin(subscriptions)
    const marks = Array.from({ length: 7 }, (_, i) => ({
      key: `k${i}`,
      result: null,
      until: i < 5 ? 10 + i : undefined,
    }))
    await subscriptions.commit({ ...commitOf(lease), inbox: marks })
    const keys = marks.map(({ key }) => key)
    assert.equal(await inbox.sweep(9, 100), 0)
    assert.equal(await inbox.sweep(13, 3), 3)
    assert.equal(await inbox.sweep(13, 3), 1)
    assert.equal(await inbox.sweep(13, 3), 0)
    assert.deepEqual([...(await inbox.find('s', keys, 0)).keys()].toSorted(), ['k4', 'k5', 'k6'])
  },
}
