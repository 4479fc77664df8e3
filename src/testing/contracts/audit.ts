import assert from 'node:assert/strict'
import { type AuditEntry, type Deed, flawOf, noEntry } from '../../audit/audit.ts'
import type { Store } from '../../store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { Transaction } from '../../subscription/subscription-store.ts'
import { appended, begin, type Case, commitOf, deedOf, hold, letter, limits, newEvent } from './fixtures.ts'

export async function actsOf(store: Store): Promise<string[]> {
  const entries = await store.audit.list(0, 100)
  assert.deepEqual(flawsOf(entries), [])
  return entries.map(({ act }) => act)
}

function flawsOf(entries: readonly AuditEntry[]): string[] {
  return entries.flatMap((entry, i) => flawOf(entry, entries[i - 1] ?? noEntry) ?? [])
}

export const auditCases: Record<string, Case> = {
  'chains the acts of operators, in order and without a gap': async (store) => {
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
    // Any change of an entry is detected.
    const other = { by: 'bob', act: 'x', target: 't', reason: 'a better one', at: 6, details: { lanes: 3 } }
    for (const [field, value] of Object.entries(other)) {
      const changed = entries.map((entry, i) => (i === 1 ? { ...entry, [field]: value } : entry))
      assert.deepEqual(flawsOf(changed), ['entry 2 was changed'])
    }
    assert.deepEqual(flawsOf(entries.slice(0, 1).concat(entries.slice(2))), ['entry 2 is missing'])
  },

  'writes an audit entry with its act, and not without': async (store) => {
    await begin(store.subscriptions)
    await store.subscriptions.pause('s', { at: 1, reason: 'why' }, deedOf('pause'))
    await store.subscriptions.resume('s', deedOf('resume'))
    await assert.rejects(store.subscriptions.pause('unknown', { at: 1, reason: 'why' }, deedOf('pause')))
    await store.subscriptions.reset('s', undefined, deedOf('reset'))
    const state = { state: 'isolated', since: 1 } as never
    assert.equal(await store.breakers.save({ name: 'b', state, record: '{}' }, 0, deedOf('isolate')), true)
    assert.equal(await store.breakers.save({ name: 'b', state, record: '{}' }, 0, deedOf('isolate')), false)
    assert.deepEqual(await actsOf(store), ['pause', 'resume', 'reset', 'isolate'])
  },

  'counts before and after in the transaction of the act': async (store) => {
    const lease = await begin(store.subscriptions)
    const held = [letter('a', 1, 'parked'), letter('b', 1, 'parked')]
    const counts = { ...noCounts(), applied: 3, held: 2, discarded: 1 }
    await store.subscriptions.commit({ ...commitOf(lease), counts, held, lanes: held.map((one) => hold(one, 1)) })
    // The store corrects the counts of the caller.
    const bare = (act: string): Deed => ({ ...deedOf(act), details: { wasPaused: false, appliedBefore: 99, kept: 1 } })
    await store.subscriptions.pause('s', { at: 1, reason: 'why' }, bare('pause'))
    await store.subscriptions.pause('s', { at: 2, reason: 'still' }, bare('pause again'))
    await store.subscriptions.resume('s', bare('resume'))
    assert.deepEqual(await store.subscriptions.reset('s', undefined, bare('reset')), {
      before: counts,
      letters: 2,
      lanes: 2,
    })
    const none = { appliedAfter: 0, heldAfter: 0, discardedAfter: 0, lanesAfter: 0 }
    assert.deepEqual(
      (await store.audit.list(0, 10)).map(({ act, details }) => [act, details]),
      [
        ['pause', { ...bare('').details, wasPaused: false, isPaused: true }],
        ['pause again', { ...bare('').details, wasPaused: true, isPaused: true }],
        ['resume', { ...bare('').details, wasPaused: true, isPaused: false }],
        [
          'reset',
          { ...bare('').details, appliedBefore: 3, heldBefore: 2, discardedBefore: 1, lanesBefore: 2, ...none },
        ],
      ],
    )
    assert.deepEqual(await store.subscriptions.reset('s', undefined, bare('again')), {
      before: noCounts(),
      letters: 0,
      lanes: 0,
    })
  },

  'records a manual append once, with its event': async (store) => {
    const deed = deedOf('event.append', 'log/k')
    await store.log.append('k', [newEvent('0')], 'any')
    const { position } = appended(await store.log.append('k', [newEvent('1'), newEvent('2')], 1, { deed }))
    assert.equal((await store.log.append('k', [newEvent('1'), newEvent('2')], 1, { deed })).outcome, 'repeated')
    assert.equal((await store.log.append('k', [newEvent('3')], 1, { deed })).outcome, 'version-conflict')
    assert.equal((await store.log.append('j', [newEvent('1')], 'any', { deed })).outcome, 'id-conflict')
    const unfit = { ...deed, reason: 'a half \ud800' }
    await assert.rejects(store.log.append('k', [newEvent('4')], 'any', { deed: unfit }), { code: 'OPTION_INVALID' })
    assert.deepEqual(await actsOf(store), ['event.append'])
    const [entry] = await store.audit.list(0, 10)
    assert.deepEqual(entry?.details, { ...deed.details, position, versionBefore: 1, versionAfter: 3 })
    assert.equal((await store.log.readKey('k', 0, limits)).length, 3)
  },

  "records an append in the caller's transaction if that commits": async (store) => {
    const lease = await begin(store.subscriptions)
    const append = (tx: Transaction, id: string) =>
      store.log.append('k', [newEvent(id)], 'any', { tx: tx.handle, deed: deedOf(id) })
    await store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => append(tx, 'kept'))
      await tx
        .attempt(async () => {
          await append(tx, 'taken back')
          throw new Error('no')
        })
        .catch(() => undefined)
      return commitOf(lease)
    })
    assert.deepEqual(await actsOf(store), ['kept'])
    assert.deepEqual(
      (await store.log.readKey('k', 0, limits)).map(({ id }) => id),
      ['kept'],
    )
  },

  'appends the first events of a log with the audit entry, all or nothing': async (store) => {
    const deed = deedOf('letters.import', 'log')
    const events = ['1', '2', '3', '4'].map((id, i) => ({ key: i % 2 === 0 ? 'a' : 'b', event: newEvent(id) }))
    const twice = [...events, { key: 'c', event: newEvent('2') }]
    await assert.rejects(store.log.appendFirst(twice, deed), { code: 'EVENT_ID_CONFLICT' })
    const unfit = { ...deed, reason: 'a half \ud800' }
    await assert.rejects(store.log.appendFirst(events, unfit), { code: 'OPTION_INVALID' })
    assert.equal(await store.log.end(), 0)
    assert.deepEqual(await actsOf(store), [])
    let woken = 0
    const stop = store.log.onAppend(() => woken++)
    assert.equal(await store.audit.has(deed.act), false)
    assert.equal(await store.log.appendFirst(events, deed), true)
    assert.equal(await store.audit.has(deed.act), true)
    stop()
    assert.ok(woken > 0)
    assert.equal(await store.log.appendFirst(events, deed), false)
    const { events: filled } = await store.log.readAll(0, limits)
    assert.deepEqual(
      filled.map(({ id, key, version }) => [id, key, version]),
      [
        ['1', 'a', 1],
        ['2', 'b', 1],
        ['3', 'a', 2],
        ['4', 'b', 2],
      ],
    )
    assert.deepEqual(await actsOf(store), ['letters.import'])
    const [entry] = await store.audit.list(0, 10)
    assert.deepEqual(entry?.details, { ...deed.details, eventsBefore: 0, eventsAfter: 4 })
  },
}
