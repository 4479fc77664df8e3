import assert from 'node:assert/strict'
import type { Deed } from '../../audit/audit.ts'
import type { NewLetter } from '../../dead-letter/letter.ts'
import { describeFailure } from '../../failure/failure.ts'
import { generationTable } from '../../rebuild/generation.ts'
import type { BeginOutcome, SwitchOutcome } from '../../rebuild/rebuild-store.ts'
import type { Store } from '../../store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { Commit, Lease } from '../../subscription/subscription-store.ts'
import {
  appended,
  at,
  begin,
  type Case,
  claimBy,
  claimed,
  commitOf,
  hold as holdOf,
  leaseMs,
  letter,
  newEvent,
  row,
  table,
  deedOf,
} from './fixtures.ts'

const next = generationTable({ ...table, columns: table.columns.slice(0, 1) }, 2)
const nextRow = (key: string, version: number) => ({ ...row(key, version), columns: [version] })
const deed: Deed = { by: 'ada', act: 'projection.switch', target: 's', reason: 'new', at: 5, details: {} }
const beginning: Deed = { ...deed, act: 'projection.rebuild' }

async function beginSecond({ rebuilds }: Store): Promise<BeginOutcome> {
  return rebuilds.begin({ subscription: 's', version: 2, kind: 'fold', table: next, deed: beginning })
}

async function secondLease(store: Store, owner = 'builder'): Promise<Lease> {
  await beginSecond(store)
  const claim = { subscription: 's~2', partition: 0, owner, leaseMs, version: 2 }
  return claimed(await store.subscriptions.claim(claim))
}

async function committed(store: Store, commit: Commit): Promise<void> {
  assert.deepEqual(await store.subscriptions.commit(commit), { outcome: 'committed' })
}

async function events(store: Store, count: number): Promise<void> {
  for (let i = 1; i <= count; i++) appended(await store.log.append('a', [newEvent(`n${i}`)], 'any'))
}

function toSecond(store: Store, strays = 0): Promise<SwitchOutcome> {
  return store.rebuilds.switch({ subscription: 's', version: 2, at: 7, strays, deed })
}

/** Version 1 is live with one row, and version 2 has caught up. */
async function level(store: Store): Promise<{ readonly live: Lease; readonly rebuilt: Lease }> {
  const live = await begin(store.subscriptions)
  await events(store, 3)
  await committed(store, { ...commitOf(live), to: at(3), rows: [row('a', 3)] })
  const rebuilt = await secondLease(store)
  await committed(store, { ...commitOf(rebuilt), table: next, to: at(3), rows: [nextRow('a', 3), nextRow('b', 1)] })
  return { live, rebuilt }
}

async function keysOf(store: Store, of: typeof table): Promise<string[]> {
  const orderBy = { column: 'key', direction: 'asc' } as const
  const rows = await store.rows.list(of, { where: [], orderBy, after: undefined, limit: 10 })
  return rows.map(({ key }) => key)
}

export const rebuildCases: Record<string, Case> = {
  'keeps the version of a subscription, and refuses claims with another': async ({ subscriptions }) => {
    const spec = { name: 's', table, start: 0, partitions: 1 }
    assert.deepEqual(await subscriptions.register({ ...spec, version: 3 }), { partitions: 1, version: 3 })
    const other = { ...table, columns: [] }
    assert.deepEqual(await subscriptions.register({ ...spec, table: other, version: 4 }), { partitions: 1, version: 3 })
    const refused = await subscriptions.claim({ ...claimBy('one'), version: 4 })
    assert.deepEqual(refused, { outcome: 'version', version: 3 })
    claimed(await subscriptions.claim({ ...claimBy('one'), version: 3 }))
  },

  'counts only processes with the live version as members': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1, version: 2 })
    const attend = async (owner: string, version: number) => {
      const [view] = await subscriptions.attend({ owner, subscriptions: ['s'], leaseMs, versions: { s: version } })
      return { version: view?.version, members: view?.members.map((member) => member.owner) }
    }
    assert.deepEqual(await attend('old', 1), { version: 2, members: [] })
    assert.deepEqual(await attend('new', 2), { version: 2, members: ['new'] })
    assert.deepEqual(await attend('old', 1), { version: 2, members: ['new'] })
    assert.deepEqual(await attend('old', 2), { version: 2, members: ['new', 'old'] })
  },

  'starts a generation at the start of the live one, once': async (store) => {
    await assert.rejects(beginSecond(store), { code: 'SUBSCRIPTION_UNKNOWN' })
    await store.subscriptions.register({ name: 's', table, start: 5, partitions: 3 })
    const begun = await beginSecond(store)
    assert.equal(begun.outcome, 'begun')
    assert.equal(begun.isNew, true)
    const { generation } = begun
    assert.equal(generation.name, 's~2')
    assert.equal(generation.table, 'balances__v2')
    assert.deepEqual(
      generation.partitions.map(({ checkpoint }) => checkpoint.position),
      [5, 5, 5],
    )
    const again = await beginSecond(store)
    assert.equal(again.outcome === 'begun' && again.isNew, false)
    const entries = await store.audit.list(0, 10)
    assert.deepEqual(
      entries.map(({ details }) => details),
      [{ isNew: true }, { isNew: false }],
    )
    const [live, ...others] = await store.rebuilds.list('s')
    assert.deepEqual([live?.version, live?.isLive, others.length, others[0]?.version], [1, true, 1, 2])
    const first = { subscription: 's', version: 1, kind: 'fold', table, deed } as const
    assert.deepEqual(await store.rebuilds.begin(first), { outcome: 'live' })
    const changed = { subscription: 's', version: 2, kind: 'fold', table: generationTable(table, 2), deed } as const
    await assert.rejects(store.rebuilds.begin(changed), { code: 'PROJECTION_CHANGED' })
    assert.deepEqual(await store.rebuilds.list('none'), [])
  },

  'switches table, checkpoint, letters and version at once, and fences all owners': async (store) => {
    const { live, rebuilt } = await level(store)
    const lane = { lane: 'p', status: 'parked', since: 1, done: undefined, head: 1, headPosition: 1 } as const
    const held = { ...commitOf(live), from: 3, to: at(3), held: [letter('p', 1, 'parked')] }
    const counts = { ...noCounts(), applied: 3, held: 1 }
    await committed(store, { ...held, counts, lanes: [{ lane: 'p', hold: lane, done: undefined }] })
    const more = { ...commitOf(rebuilt), table: next, from: 3, to: at(3) }
    await committed(store, { ...more, counts: { ...noCounts(), applied: 2 } })
    const outcome = await toSecond(store)
    assert.equal(outcome.outcome, 'switched')
    assert.equal(outcome.from, 1)
    assert.deepEqual(await keysOf(store, { ...next, name: 'balances' }), ['a', 'b'])
    assert.deepEqual(await keysOf(store, { ...table, name: 'balances__v1' }), ['a'])
    for (const lease of [live, rebuilt]) {
      const late = await store.subscriptions.commit({ ...commitOf(lease), from: 3, to: at(3) })
      assert.equal(late.outcome, 'fenced')
      assert.equal(await store.subscriptions.renew(lease, leaseMs), false)
    }
    assert.deepEqual(await store.subscriptions.claim({ ...claimBy('one'), version: 1 }), {
      outcome: 'version',
      version: 2,
    })
    const taken = await store.subscriptions.claim({ ...claimBy('one'), version: 2 })
    assert.equal(taken.outcome, 'claimed')
    assert.equal(taken.isInherited, false)
    assert.ok(taken.lease.epoch > Math.max(live.epoch, rebuilt.epoch))
    assert.equal(taken.state.checkpoint.position, 3)
    assert.deepEqual(await store.letters.heldLanes('s', 0), [])
    assert.equal((await store.letters.heldLanes('s~1', 0)).length, 1)
    assert.equal((await store.letters.list({ subscription: 's~1' })).length, 1)
    assert.equal(await store.subscriptions.load('s~2', 0), undefined)
    const entry = (await store.audit.list(0, 10)).at(-1)
    assert.equal(entry?.act, 'projection.switch')
    assert.deepEqual(entry.details, { from: 1, appliedBefore: 3, heldBefore: 1, appliedAfter: 2, heldAfter: 0 })
    assert.deepEqual(await toSecond(store), { outcome: 'live' })
  },

  'shows a snapshot unchanged during a switch': async (store) => {
    await level(store)
    const orderBy = { column: 'key', direction: 'asc' } as const
    const seen = await store.snapshot(async (moment) => {
      const [before] = await moment.partitions('s')
      await toSecond(store)
      const rows = await moment.rows.list(table, { where: [], orderBy, after: undefined, limit: 10 })
      return { epoch: before?.epoch, keys: rows.map(({ key }) => key), gone: await moment.partitions('s~1') }
    })
    assert.deepEqual(seen, { epoch: 1, keys: ['a'], gone: [] })
  },

  'switches back the same way': async (store) => {
    await level(store)
    await toSecond(store)
    const back = await store.rebuilds.switch({ subscription: 's', version: 1, at: 8, strays: 0, deed })
    assert.equal(back.outcome, 'switched')
    assert.deepEqual(await keysOf(store, table), ['a'])
    assert.deepEqual(await keysOf(store, next), ['a', 'b'])
    assert.deepEqual(
      (await store.rebuilds.list('s')).map(({ version, isLive, retiredAt }) => [version, isLive, retiredAt]),
      [
        [1, true, undefined],
        [2, false, 8],
      ],
    )
  },

  'refuses to switch to a generation that is behind or missing, and changes nothing': async (store) => {
    const live = await begin(store.subscriptions)
    assert.deepEqual(await toSecond(store), { outcome: 'unknown' })
    await events(store, 3)
    await committed(store, { ...commitOf(live), to: at(3), rows: [row('a', 3)] })
    const rebuilt = await secondLease(store)
    await committed(store, { ...commitOf(rebuilt), table: next, to: at(2), rows: [nextRow('a', 2)] })
    assert.deepEqual(await toSecond(store), { outcome: 'behind', gaps: [{ partition: 0, live: 3, rebuilt: 2 }] })
    assert.equal(await store.subscriptions.renew(live, leaseMs), true)
    await committed(store, { ...commitOf(rebuilt), table: next, from: 2, to: at(3), rows: [nextRow('a', 3)] })
    assert.equal((await toSecond(store)).outcome, 'switched')
  },

  'ignores events of other partitions when it checks whether a generation has caught up': async (store) => {
    await store.subscriptions.register({ name: 's', table, start: 0, partitions: 2 })
    await events(store, 3)
    const views = await store.log.readAll(0, { events: 10, bytes: 1_000_000 }, { partition: 0, of: 2 })
    // All events have one key, so one of the two partitions has none.
    const idle = views.events.length === 0 ? 0 : 1
    await beginSecond(store)
    for (const partition of [0, 1]) {
      const lease = claimed(await store.subscriptions.claim({ ...claimBy('one'), partition }))
      await committed(store, { ...commitOf(lease), to: at(3) })
    }
    const busy = { subscription: 's~2', partition: 1 - idle, owner: 'b', leaseMs }
    await committed(store, { ...commitOf(claimed(await store.subscriptions.claim(busy))), table: next, to: at(3) })
    const outcome = await toSecond(store)
    assert.equal(outcome.outcome, 'switched')
    assert.deepEqual(
      outcome.generation.partitions.map(({ checkpoint }) => checkpoint.position),
      [3, 3],
    )
  },

  'keeps a pause of the live generation through a switch': async (store) => {
    await level(store)
    await store.subscriptions.pause('s', { reason: 'night', at: 1 }, deedOf('pause'))
    await toSecond(store)
    const [live] = await store.subscriptions.partitions('s')
    const [kept] = await store.subscriptions.partitions('s~1')
    assert.deepEqual(live?.pause, { reason: 'night', at: 1 })
    assert.equal(kept?.pause, undefined)
  },

  'halts the live generation for a time, and then any process may claim it': async (store, { elapse }) => {
    const { live } = await level(store)
    await store.rebuilds.halt('s', 2_000)
    assert.equal((await store.subscriptions.commit({ ...commitOf(live), from: 3, to: at(3) })).outcome, 'fenced')
    assert.equal((await store.subscriptions.claim(claimBy('one'))).outcome, 'owned')
    await elapse(2_000)
    claimed(await store.subscriptions.claim(claimBy('one')))
  },

  'returns the decisions of operators, in order': async (store) => {
    const live = await begin(store.subscriptions)
    await events(store, 4)
    const letters = [1, 2, 3, 4].map((n) => ({ ...letter(`l${n}`, 1, 'parked' as const), logged: false }))
    const lanes = letters.map(({ lane, event }) => {
      const hold = { lane, status: 'parked', since: 1, done: undefined, head: 1, headPosition: event.position } as const
      return { lane, hold, done: undefined }
    })
    const positions = letters.map(({ event }) => event.position)
    const [first = 0, second = 0, third = 0, last = 0] = positions
    await committed(store, { ...commitOf(live), to: at(last), held: letters, lanes })
    const revise = { ...deed, act: 'dlq.edit' }
    await store.letters.revise({ subscription: 's', position: second }, '{"n":2}', revise)
    await committed(store, {
      ...commitOf(live),
      from: last,
      to: at(last),
      letters: [
        { change: 'discarded', position: first, ending: { by: 'ada', reason: 'twice' } },
        { change: 'resolved', position: second, by: 'engine' },
        { change: 'resolved', position: third, by: 'bob', reason: 'by hand' },
        { change: 'resolved', position: last, by: 'engine' },
      ],
    })
    const decisions = await store.rebuilds.decisions('s', 0, first - 1, last)
    assert.deepEqual(
      decisions.map((decision) =>
        decision.decision === 'revised'
          ? [decision.position, decision.revision.body]
          : [decision.position, decision.ending],
      ),
      [
        [first, { by: 'ada', reason: 'twice' }],
        [second, '{"n":2}'],
        [third, { by: 'bob', reason: 'by hand' }],
      ],
    )
    assert.deepEqual(await store.rebuilds.decisions('s', 0, first, second - 1), [])
  },

  'finds decisions that were made after a generation had passed the event': async (store) => {
    const live = await begin(store.subscriptions)
    const parked = letter('p', 1, 'parked')
    const { position } = parked.event
    const hold = { lane: 'p', status: 'parked', since: 1, done: undefined, head: 1, headPosition: position } as const
    const lanes = [{ lane: 'p', hold, done: undefined }]
    await committed(store, { ...commitOf(live), to: at(position), held: [parked], lanes })
    const rebuilt = await secondLease(store)
    await committed(store, { ...commitOf(rebuilt), table: next, to: at(position) })
    assert.deepEqual(await store.rebuilds.strays('s', 2, 10), { count: 0, positions: [] })
    const ending = { by: 'ada', reason: 'twice' }
    const gone = { lane: 'p', hold: undefined, done: undefined }
    await committed(store, {
      ...commitOf(live),
      from: position,
      to: at(position),
      letters: [{ change: 'discarded', position, ending }],
      lanes: [gone],
    })
    assert.deepEqual(await store.rebuilds.strays('s', 2, 10), { count: 1, positions: [position] })
    assert.deepEqual(await toSecond(store), { outcome: 'strays', strays: 1 })
    assert.equal((await toSecond(store, 1)).outcome, 'switched')
  },

  'carries pending discards over to every later version': async (store) => {
    const live = await begin(store.subscriptions)
    const parked = letter('p', 1, 'parked')
    const { position } = parked.event
    const kept = { to: at(position), held: [parked], lanes: [holdOf(parked, 1)], counts: { ...noCounts(), held: 1 } }
    await committed(store, { ...commitOf(live), ...kept })
    const second = await secondLease(store)
    await committed(store, { ...commitOf(second), table: next, ...kept })
    const ending = { by: 'ada', reason: 'twice' }
    await committed(store, {
      ...commitOf(live),
      from: position,
      to: at(position),
      letters: [{ change: 'discarded', position, ending }],
    })
    assert.equal((await toSecond(store)).outcome, 'switched')
    // It is not discarded there yet.
    assert.deepEqual(await store.rebuilds.decisions('s', 0, position - 1, position), [
      { decision: 'discarded', position, ending },
    ])
    const columns = table.columns.slice(0, 1)
    const third = generationTable({ ...table, columns }, 3)
    await store.rebuilds.begin({ subscription: 's', version: 3, kind: 'fold', table: third, deed })
    const claim = { subscription: 's~3', partition: 0, owner: 'builder', leaseMs, version: 3 }
    const lease = claimed(await store.subscriptions.claim(claim))
    await committed(store, { ...commitOf(lease), table: third, ...kept })
    const switched = await store.rebuilds.switch({ subscription: 's', version: 3, at: 8, strays: 0, deed })
    assert.equal(switched.outcome, 'switched')
    const [held] = await store.letters.list({ subscription: 's' })
    assert.deepEqual([held?.status, held?.endedBy, held?.endedReason], ['retrying', 'ada', 'twice'])
  },

  'keeps since when both of them hold an event, and the attempts of both': async (store) => {
    const live = await begin(store.subscriptions)
    const failure = describeFailure(new Error('a bug'), 'permanent', 'fold')
    const held = [{ ...letter('p', 1, 'parked'), failure }, letter('p', 2, 'queued')]
    const [p = 0, last = 0] = held.map(({ event }) => event.position)
    const counts = { ...noCounts(), held: 2 }
    const kept = (since: number) => ({
      to: at(last),
      at: since,
      held,
      lanes: [holdOf(held[0] as NewLetter, since)],
      counts,
    })
    await committed(store, { ...commitOf(live), ...kept(10) })
    const rebuilt = await secondLease(store)
    await committed(store, { ...commitOf(rebuilt), table: next, ...kept(20) })
    // More than are kept.
    for (let i = 1; i <= 25; i++) {
      const letters = [{ change: 'failed', position: p, status: 'parked', failure }] as const
      await committed(store, { ...commitOf(rebuilt), table: next, from: last, to: at(last), at: 20 + i, letters })
    }
    assert.equal((await toSecond(store)).outcome, 'switched')
    const after = await store.letters.list({ subscription: 's' })
    assert.deepEqual(
      after.map(({ heldAt, attemptsTotal, attempts }) => [heldAt, attemptsTotal, attempts.map((one) => one.at)]),
      [
        [10, 27, [10, 20, 21, 22, 23, ...Array.from({ length: 20 }, (_, i) => 26 + i)]],
        [10, 0, []],
      ],
    )
    assert.deepEqual(
      (await store.letters.heldLanes('s', 0)).map(({ since }) => since),
      [10],
    )
  },

  'carries discards of operators in the live version over to the held events of the other': async (store) => {
    const live = await begin(store.subscriptions)
    const held = [
      letter('p', 1, 'parked'),
      letter('q', 1, 'parked'),
      letter('q', 2, 'queued'),
      letter('r', 1, 'parked'),
    ]
    const [p = 0, , q2 = 0, r = 0] = held.map(({ event }) => event.position)
    const lanes = held.filter(({ status }) => status === 'parked').map((one) => holdOf(one, 1))
    const counts = { ...noCounts(), held: 4 }
    await committed(store, { ...commitOf(live), to: at(r), held, lanes, counts })
    const rebuilt = await secondLease(store)
    await committed(store, { ...commitOf(rebuilt), table: next, to: at(r), held, lanes, counts })
    await committed(store, {
      ...commitOf(live),
      from: r,
      to: at(r),
      letters: [
        { change: 'discarded', position: p, ending: { by: 'ada', reason: 'twice' } },
        { change: 'resolved', position: q2, by: 'bob', reason: 'by hand' },
        // An event that was applied in the live version is not a decision.
        { change: 'resolved', position: r, by: 'engine' },
      ],
    })
    assert.equal((await toSecond(store)).outcome, 'switched')
    assert.deepEqual(
      (await store.letters.list({ subscription: 's' })).map(({ status, endedAt, endedBy, endedReason }) => [
        status,
        endedAt,
        endedBy,
        endedReason,
      ]),
      [
        ['retrying', undefined, 'ada', 'twice'],
        ['parked', undefined, undefined, undefined],
        ['queued', undefined, 'bob', 'by hand'],
        ['parked', undefined, undefined, undefined],
      ],
    )
    assert.deepEqual(
      new Map((await store.letters.heldLanes('s', 0)).map(({ lane, status }) => [lane, status])),
      new Map([
        ['p', 'retrying'],
        ['q', 'parked'],
        ['r', 'parked'],
      ]),
    )
    const [view] = await store.subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs, versions: { s: 2 } })
    assert.equal(view?.partitions[0]?.isDue, true)
  },

  'has no stray when the generation has the same decision': async (store) => {
    const live = await begin(store.subscriptions)
    const ending = { by: 'ada', reason: 'twice' }
    const discarded = { ...letter('p', 1, 'discarded'), ending }
    const revision = { number: 1, body: '{"n":1}', by: 'ada', reason: 'typo', at: 3 }
    const revised = { ...letter('q', 1, 'resolved'), revision }
    const { position } = revised.event
    await committed(store, { ...commitOf(live), to: at(position), held: [discarded, revised] })
    const rebuilt = await secondLease(store)
    const held = [discarded, revised]
    await committed(store, { ...commitOf(rebuilt), table: next, to: at(position), held })
    assert.deepEqual(await store.rebuilds.strays('s', 2, 10), { count: 0, positions: [] })
    const [, copied] = await store.letters.list({ subscription: 's~2' })
    assert.deepEqual(copied?.revision, revision)
    assert.equal(copied?.status, 'resolved')
    assert.equal(copied?.endedBy, 'engine')
    assert.equal((await toSecond(store)).outcome, 'switched')
  },

  'drops a version that is not live, and begins it again with new epochs': async (store) => {
    const { rebuilt } = await level(store)
    const counts = { ...noCounts(), applied: 2, held: 1 }
    await committed(store, { ...commitOf(rebuilt), table: next, from: 3, to: at(3), counts })
    assert.equal(await store.rebuilds.drop('s', 1, deed), 'live')
    assert.equal(await store.rebuilds.drop('s', 9, deed), 'unknown')
    assert.equal(await store.rebuilds.drop('s', 2, { ...deed, act: 'projection.drop' }), 'dropped')
    assert.deepEqual(
      // After that of the beginning: what was refused has none.
      (await store.audit.list(1, 10)).map(({ act, details }) => [act, details]),
      [['projection.drop', { appliedBefore: 2, heldBefore: 1, appliedAfter: 0, heldAfter: 0 }]],
    )
    assert.equal((await store.rebuilds.list('s')).length, 1)
    assert.equal((await store.subscriptions.commit({ ...commitOf(rebuilt), from: 3, to: at(3) })).outcome, 'fenced')
    await assert.rejects(keysOf(store, next), { code: 'SUBSCRIPTION_UNKNOWN' })
    const again = await secondLease(store)
    assert.ok(again.epoch > rebuilt.epoch)
    assert.deepEqual(await keysOf(store, next), [])
  },

  'drops a rebuild when the live version is reset, and keeps versions that were live': async (store) => {
    await level(store)
    await toSecond(store)
    const third = { subscription: 's', version: 3, kind: 'fold', table: generationTable(table, 3), deed } as const
    await store.rebuilds.begin(third)
    await store.subscriptions.reset('s', undefined, deedOf('reset'))
    assert.deepEqual(
      (await store.rebuilds.list('s')).map(({ version }) => version),
      [2, 1],
    )
    assert.deepEqual(await keysOf(store, { ...next, name: 'balances' }), [])
    assert.deepEqual(await keysOf(store, { ...table, name: 'balances__v1' }), ['a'])
  },
}
