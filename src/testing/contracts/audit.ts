import assert from 'node:assert/strict'
import { type AuditEntry, type Deed, flawOf, noEntry } from '../../audit/audit.ts'
import type { Store } from '../../store.ts'
import { begin, type Case } from './fixtures.ts'

export const deedOf = (act: string, target = 's'): Deed => ({
  by: 'ann',
  act,
  target,
  reason: `because of ${act}`,
  at: 5,
  details: { lanes: 2, "it's": 'so', none: null, yes: true },
})

export async function actsOf(store: Store): Promise<string[]> {
  const entries = await store.audit.list(0, 100)
  assert.deepEqual(flawsOf(entries), [])
  return entries.map(({ act }) => act)
}

function flawsOf(entries: readonly AuditEntry[]): string[] {
  return entries.flatMap((entry, i) => flawOf(entry, entries[i - 1] ?? noEntry) ?? [])
}

export const auditCases: Record<string, Case> = {
  'chains what people do, in order and with nothing left out': async (store) => {
    assert.deepEqual(await store.audit.list(0, 10), [])
    await Promise.all(['a', 'b', 'c', 'd'].map((act) => store.audit.record(deedOf(act))))
    const entries = await store.audit.list(0, 10)
    assert.deepEqual(
      entries.map(({ number }) => number),
      [1, 2, 3, 4],
    )
    assert.deepEqual(flawsOf(entries), [])
    const { number: _number, previous, hash, ...deed } = entries[0] as AuditEntry
    assert.deepEqual(deed, deedOf(deed.act))
    assert.equal(previous, '0'.repeat(64))
    assert.match(hash, /^[0-9a-f]{64}$/)
    assert.deepEqual(await store.audit.list(3, 10), entries.slice(3))
    assert.deepEqual(await store.audit.list(0, 2), entries.slice(0, 2))
    // Whoever changes anything of one is found out.
    const other = { by: 'bob', act: 'x', target: 't', reason: 'a better one', at: 6, details: { lanes: 3 } }
    for (const [field, value] of Object.entries(other)) {
      const changed = entries.map((entry, i) => (i === 1 ? { ...entry, [field]: value } : entry))
      assert.deepEqual(flawsOf(changed), ['entry 2 was changed'])
    }
    assert.deepEqual(flawsOf(entries.slice(0, 1).concat(entries.slice(2))), ['entry 2 is missing'])
  },

  'has the deed with what it does, and not without': async (store) => {
    await begin(store.subscriptions)
    await store.subscriptions.pause('s', { at: 1, reason: 'why' }, deedOf('pause'))
    await store.subscriptions.resume('s', deedOf('resume'))
    await assert.rejects(store.subscriptions.pause('nobody', { at: 1, reason: 'why' }, deedOf('pause')))
    await store.subscriptions.reset('s', undefined, deedOf('reset'))
    const state = { state: 'isolated', since: 1 } as never
    assert.equal(await store.breakers.save({ name: 'b', state, record: '{}' }, 0, deedOf('isolate')), true)
    assert.equal(await store.breakers.save({ name: 'b', state, record: '{}' }, 0, deedOf('isolate')), false)
    await store.subscriptions.pause('s', { at: 1, reason: 'the engine itself' })
    assert.deepEqual(await actsOf(store), ['pause', 'resume', 'reset', 'isolate'])
  },
}
