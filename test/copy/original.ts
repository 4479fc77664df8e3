import { DatabaseSync } from 'node:sqlite'
import {
  createEngine,
  createLog,
  defineEvents,
  defineProjection,
  defineSubscription,
  type Engine,
  type EngineOptions,
  type Projection,
  read,
  type Store,
} from 'holdfast'
import { createSqliteStore, defineSqlProjection } from 'holdfast/sqlite'
import { createScriptedSource, type ScriptedSource } from 'holdfast/testing'
import { z } from 'zod'
import type { Deed } from '../../src/audit/audit.ts'
import type { HeldLane, NewLetter } from '../../src/dead-letter/letter.ts'
import { describeFailure } from '../../src/failure/failure.ts'
import { generationTable } from '../../src/rebuild/generation.ts'
import { operatorOf } from '../acts.ts'

// A store with one of everything that can be in it.

export const counts = {
  subscription: 6,
  event: 13,
  row: 11,
  lane: 12,
  letter: 22,
  revision: 2,
  incident: 1,
  redrive: 2,
  redriveLane: 7,
  mark: 122,
  breaker: 2,
  deed: 10,
}

const amount = z.number()
export const bank = defineEvents({
  Opened: z.object({ owner: z.string(), isVip: z.boolean().optional(), remark: z.string().optional() }),
  Credited: z.object({ amount }),
  Debited: z.object({ amount }),
})

export const accounts = defineProjection('accounts', {
  events: bank,
  initial: (): Account => ({ owner: null, isVip: null, balance: 0, entries: 0, remark: '' }),
  on: {
    Opened: (row, { data }) => ({ ...row, owner: data.owner, isVip: data.isVip ?? null, remark: data.remark ?? '' }),
    Credited: (row, { data }) => ({ ...row, balance: row.balance + data.amount, entries: row.entries + 1 }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance) throw new RangeError(`${data.amount} is more than ${row.balance}\u0000`)
      return { ...row, balance: row.balance - data.amount, entries: row.entries + 1 }
    },
  },
  columns: { owner: 'text', isVip: 'boolean', balance: 'real', entries: 'integer' },
})

interface Account {
  readonly owner: string | null
  readonly isVip: boolean | null
  readonly balance: number
  readonly entries: number
  /** No column, so it may hold what a text of PostgreSQL can't. */
  readonly remark: string
}

/** Rows that gather events of many keys: letters and lanes are not those of the log. It reads every amount: one it can't read would block it. */
const totals = defineProjection('totals', {
  events: defineEvents({ Credited: z.object({ amount: z.unknown() }), Debited: z.object({ amount }) }),
  key: ({ key }) => key.slice(0, 1),
  initial: () => ({ sum: 0 }),
  on: {
    Credited: (row, { data }) => {
      if (typeof data.amount !== 'number') throw new TypeError('not an amount')
      return { sum: row.sum + data.amount }
    },
    Debited: (row, { data }) => {
      if (data.amount > 1_000) throw new Error('too much')
      return { sum: row.sum - data.amount }
    },
  },
})

const recent = defineProjection('recent', {
  events: bank,
  initial: () => ({ entries: 0 }),
  on: { Credited: (row) => ({ entries: row.entries + 1 }) },
})

const imported = defineProjection('imported', {
  events: bank,
  initial: () => ({ sum: 0 }),
  on: { Credited: (row, { data }) => ({ sum: row.sum + data.amount }) },
})

export const journal = defineSqlProjection('journal', {
  events: bank,
  on: {
    Credited: ({ key, data }, tx: DatabaseSync) =>
      tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, data.amount),
    Debited: () => {
      throw new Error('a letter of a projection that is left behind')
    },
  },
})

/** Without the SQL projection, whose statements are SQLite's. The source goes on where it was, whichever store it is read into. */
export function subscriptionsOf(source: ScriptedSource): EngineOptions['subscriptions'] {
  return [
    accounts,
    totals,
    defineSubscription(recent, { from: { position: 5 }, partitions: 3, filter: { types: ['Credited'] } }),
    defineSubscription(imported, { source }),
  ]
}

const folds: readonly Projection[] = [accounts, totals, recent, imported]
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

export function engineOn(store: Store, source: ScriptedSource, more: EngineOptions['subscriptions'] = []): Engine {
  return createEngine({ store, subscriptions: [...subscriptionsOf(source), ...more], logger: silent })
}

/** Runs an engine up to the end, and stops it. */
export async function settle(engine: Engine): Promise<void> {
  await engine.start()
  await engine.drain()
  await engine.stop()
}

export async function makeOriginal(file: string): Promise<ScriptedSource> {
  await using store = await createSqliteStore({ file })
  const db = new DatabaseSync(file)
  db.exec('CREATE TABLE lines (key TEXT, amount REAL)')
  db.close()
  const log = createLog({ store, events: bank })
  const metadata = { actor: 'nobody', correlationId: 'c-1' }
  const data = { owner: 'Ada', isVip: true, remark: 'none\u0000' }
  await log.append('a\u{1f600}', [{ id: 'a1', type: 'Opened', data, metadata }])
  await log.append('a\u{1f600}', [{ type: 'Credited', json: '{"amount": 12.50, "note": "\\u0000 \\ud800"}' }])
  await log.append('b', [{ type: 'Opened', data: { owner: 'Bär "\\\' ☃' } }])
  await log.append('b', [credited(100), debited(30), debited(2_000), credited(1), credited(2)])
  await log.append('c', [credited(-0.1), { ...credited(1e300), time: '2020-02-29T00:00:00Z' }])
  await log.raw.append('d', [
    { type: 'Credited', data: { amount: 'twelve' } },
    { type: 'Vanished', data: [] },
  ])
  await log.append('d', [credited(3)])

  const source = createScriptedSource()
  const event = importedEvent
  source.deliver(
    event('whole', 1),
    // Released by the version that comes late, and so resolved.
    event('late', 2),
    event('late', 3),
    event('late', 1),
    // Waits for its version 2 still.
    event('gap', 1),
    event('gap', 3),
    { ...event('gap', 4), body: '{"amount": 4}\u0000' },
    // What is no text at all, and what is one that no JSON and no text column can hold.
    { ...event('bytes', 1), body: new Uint8Array([0xff, 0, 0x80, 0x7b]), metadata: '{"tenant": "\u0000' },
    { ...event('bytes', 2), body: '\u0000 {"amount": 2}' },
  )
  const engine = engineOn(store, source, [journal])
  await settle(engine)
  await operatorOf(store).pause('totals', 'the month is being closed ☃')
  await handle(store)
  await mend(store)
  return source
}

export const deedOf = (act: string): Deed => ({
  by: 'ann ☃',
  act,
  target: 'accounts',
  reason: `to "${act}"\\`,
  at: 9,
  details: { n: 1.5, "it's": 'so\u0000', none: null, yes: true },
})

/** As people leave it that have only begun. */
async function mend({ letters, redrives, rebuilds, audit }: Store): Promise<void> {
  const next = { subscription: 'recent', version: 2, kind: 'fold', table: generationTable(recent.table, 2) } as const
  await rebuilds.begin({ ...next, deed: deedOf('projection.rebuild') })
  const [broken] = await letters.list({ subscription: 'accounts', lane: 'b', status: 'parked' })
  const name = { subscription: 'accounts', position: broken?.event.position ?? 0 }
  await letters.revise(name, '{"amount": 1, "note": "\\u0000 ☃"}', deedOf('revise'))
  await letters.revise(name, '{"amount": 2}', deedOf('revise'))
  await letters.unrevise(name, deedOf('unrevise'))
  const request = {
    subscription: 'mails',
    filter: { status: 'discarded' },
    by: 'bob',
    reason: 'mended',
    at: 10,
  } as const
  const all = { ...request, expected: undefined, rate: 2.5 }
  await redrives.ask({ ...all, id: 'over', act: 'redrive', stages: [], maxFailures: undefined })
  await redrives.cancel('over', deedOf('cancel'))
  // The one that waits for a breaker, too.
  await redrives.ask({ ...all, id: 'open', act: 'discard', stages: [1, 3], maxFailures: 4 })
  await letters.purge('mails', 100, 10, deedOf('purge'))
  await audit.record(deedOf('look'))
}

/** As a handler leaves it that was killed in the middle of its work. */
async function handle({ subscriptions, log, breakers }: Store): Promise<void> {
  await subscriptions.register({
    name: 'mails',
    kind: 'handler',
    table: undefined,
    start: 0,
    partitions: 1,
    order: 'key',
  })
  const claim = await subscriptions.claim({ subscription: 'mails', partition: 0, owner: 'dead', leaseMs: 1 })
  if (claim.outcome !== 'claimed') throw new Error('owned')
  const { events } = await log.readAll(0, { events: 4, bytes: 10_000 })
  const failure = describeFailure(new Error('no\u0000'), 'permanent', 'sql')
  const ending = { by: 'policy', reason: 'nobody to write to ☃' }
  const held = events.map((event, i): NewLetter => {
    const own = { lane: event.key, sequence: event.version as number, logged: true, event, failure: undefined }
    if (i < 2) return { ...own, status: 'queued' }
    return { ...own, status: 'discarded', failure: i === 2 ? failure : undefined, ending }
  })
  // Purged afterwards.
  const foreign = { ...(events[0] as (typeof events)[0]), position: 1_000, id: 'x' }
  held.push({ lane: 'paid', sequence: 1, logged: false, event: foreign, status: 'parked', failure })
  const [first, second] = events.map(({ position }) => position)
  const lane = (name: string, status: HeldLane['status'], more: Partial<HeldLane>) => {
    const hold = { lane: name, status, since: 5, done: undefined, head: 1, headPosition: 1, ...more }
    return { lane: name, hold, done: undefined }
  }
  await subscriptions.commit({
    lease: claim.lease,
    leaseMs: 1,
    from: 0,
    commits: undefined,
    to: { position: 2, eventId: undefined, eventType: undefined, eventTime: undefined },
    at: 7,
    counts: { applied: 0, duplicate: 0, filtered: 0, held: 1, discarded: 3 },
    table: undefined,
    rows: [],
    held,
    letters: [
      { change: 'discarded', position: first as number, ending: { by: 'ada', reason: 'a test' } },
      { change: 'failed', position: second as number, status: 'retrying', failure },
      { change: 'resolved', position: 1_000, by: 'engine' },
    ],
    lanes: [
      lane('due', 'retrying', { dueAt: 1e12, tries: 2 }),
      lane('shut', 'waiting', { tries: 1, breaker: 'smtp' }),
      lane('plain', 'parked', {}),
      lane('going', 'retrying', { redrive: 'before' }),
    ],
    marks: [
      [4, 6],
      [9, 9],
    ],
    tried: 11,
    trial: { position: 10, instance: 'process ☃' },
    // More than one part of an archive has.
    inbox: [
      { key: '', result: null, until: undefined },
      { key: 'a\u{1f600}', result: '{"n": "\\u0000"}', until: 1e12 },
      ...Array.from({ length: 120 }, (_, i) => ({ key: `mail-${i}`, result: String(i), until: undefined })),
    ],
  })
  await breakers.save({ name: 'smtp', state: { state: 'closed' }, record: '{"failures":1}' }, 0)
  await breakers.save(
    { name: 'smtp', state: { state: 'open', openedAt: 1, reopensAt: 2, openings: 3 }, record: '{"failures":2}' },
    1,
  )
  await breakers.save({ name: 'pay', state: { state: 'closed' }, record: '{}' }, 0)
}

/** What comes after the copy, on either side. */
export async function goOn(store: Store): Promise<void> {
  const log = createLog({ store, events: bank })
  const time = '2026-03-01T00:00:00.000Z'
  await log.append('a\u{1f600}', [
    { id: 'n1', time, ...debited(2.5) },
    { id: 'n2', time, ...debited(1_000) },
  ])
  await log.append('b', [{ id: 'n3', time, ...credited(7) }])
  await log.append('e', [
    { id: 'n4', time, ...credited(1) },
    { id: 'n5', time, ...debited(1) },
  ])
}

/** Everything that can be asked for, without the moment at which it was written. */
export async function contentOf(store: Store, engine: Engine): Promise<object> {
  const log: object[] = []
  for await (const { position, id, key, version, json, time, metadata } of createLog({ store }).readAll())
    log.push({ position, id, key, version, json, time, metadata })
  const rows = await Promise.all(folds.map(async (fold) => (await read(store, fold).list({ limit: 1_000 })).rows))
  const letters = await Promise.all(
    folds.map(async ({ name }) =>
      (await engine.letters({ subscription: name, limit: 1_000 })).map((letter) => ({
        ...letter,
        heldAt: undefined,
        endedAt: letter.endedAt !== undefined,
        failure: letter.failure && { ...letter.failure, stack: undefined },
        attempts: letter.attempts.length,
      })),
    ),
  )
  const { subscriptions } = await engine.status()
  const states = subscriptions.map(({ name, stored }) => ({
    name,
    pause: stored?.pause?.reason,
    counts: stored?.counts,
    held: { ...stored?.held, oldest: stored?.held.oldest.map(({ lane, status, letters: n }) => ({ lane, status, n })) },
    partitions: stored?.partitions.map(({ checkpoint }) => ({ ...checkpoint, committedAt: undefined })),
  }))
  return { log, rows, letters, states }
}

/** The n-th event of a key of the foreign source. */
export function importedEvent(key: string, version: number) {
  return { key, version, type: 'Credited', data: { amount: version } }
}

function credited(sum: number) {
  return { type: 'Credited', data: { amount: sum } } as const
}

function debited(sum: number) {
  return { type: 'Debited', data: { amount: sum } } as const
}
