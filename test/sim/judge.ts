import type { Store } from 'holdfast'
import { type AuditEntry, flawOf, noEntry } from '../../src/audit/audit.ts'
import type { ReviseOutcome } from '../../src/dead-letter/letter-store.ts'
import { slotOf } from '../../src/source/share.ts'
import type { ClaimOutcome, Commit, CommitOutcome } from '../../src/subscription/subscription-store.ts'
import { totalOf } from '../../src/subscription/checkpoint.ts'
import { acceptedOf, inOrder, isAccepted, moveOf, type StoreEffect } from '../../src/testing/simulation/checks.ts'
import type { History } from '../../src/testing/simulation/history.ts'
import { why } from '../../src/testing/simulation/simulated-operator.ts'
import { gatheredOf, gatheredTable, liveVersion, rowOf, type Step, type StepsApp, walksTable } from './steps.ts'
import type { Known } from './walk.ts'

/** What a person left out on purpose, by subscription: the ids of the events. */
export type LeftOut = (subscription: string, id: string) => boolean

/** What a person made of a step, if that is what was applied. */
export type Mended = (subscription: string, id: string) => number | undefined

/** What people decided about events, as the letters have it. */
export interface Decided {
  readonly leftOut: LeftOut
  readonly mended: Mended
}

/** The ids of the events of the log, by position. */
export type Ids = ReadonlyMap<number, string>

/** Nothing is left out that nobody asked for, and that its handler does not need. */
export async function decidedIn(store: Store, { names, written }: StepsApp, asked: ReadonlySet<string>) {
  const out = new Set<string>()
  const mended = new Map<string, number>()
  const problems: string[] = []
  const needless = new Set(
    [...written].flatMap(([key, steps]) => steps.flatMap(({ n, flaw }) => (flaw === 'needless' ? `${key}-${n}` : []))),
  )
  for (const subscription of names) {
    for (const letter of await store.letters.list({ subscription, limit: 100_000 })) {
      const { event, status, endedBy, revision } = letter
      const isApplied = status === 'resolved' && endedBy === 'engine'
      if (isApplied && revision) mended.set(`${subscription}/${event.id}`, stepOf(revision.body))
      if (isApplied || (status !== 'discarded' && status !== 'resolved')) continue
      out.add(`${subscription}/${event.id}`)
      const isNeedless = subscription === 'calls' && endedBy === 'policy' && needless.has(event.id)
      if (!isNeedless && !asked.has(`${subscription}/${event.position}`))
        problems.push(`I1 ${subscription}: nobody discarded ${event.id}`)
    }
  }
  const decided: Decided = {
    leftOut: (subscription, id) => out.has(`${subscription}/${id}`),
    mended: (subscription, id) => mended.get(`${subscription}/${id}`),
  }
  return { decided, problems }
}

function stepOf(body: string): number {
  return (JSON.parse(body) as Step).n
}

/** What a subscription has to apply of a key. */
function stepsOf(
  subscription: string,
  key: string,
  written: readonly Step[],
  { leftOut, mended }: Decided,
): readonly number[] {
  return written.flatMap(({ n }) => {
    const id = `${key}-${n}`
    return leftOut(subscription, id) ? [] : (mended(subscription, id) ?? n)
  })
}

/** I1, I2, I3: every row is what its events make of it, in their order, each of them once. Written down here by hand. */
export async function judgeRows(store: Store, { written }: StepsApp, decided: Decided): Promise<string[]> {
  const stored = await store.rows.load(walksTable, [...written.keys()])
  const v = await liveVersion(store)
  return [...written].flatMap(([key, all]) => {
    const steps = stepsOf('walks', key, all, decided)
    const expected = { last: steps.at(-1) ?? 0, ...trailOf(steps), v }
    const found = stored.get(key)
    if (steps.length === 0 && !found) return []
    return found?.json === JSON.stringify(expected)
      ? []
      : [`I3 ${key} is ${found?.json ?? 'not there'} at ${found?.version}, not ${JSON.stringify(expected)}`]
  })
}

/** I2: a row that gathers the events of several keys has them in the order of the log, also those that could not be read for a while. */
export async function judgeGathered(
  store: Store,
  known: readonly Known[],
  { leftOut, mended }: Decided,
): Promise<string[]> {
  const rows = new Map<string, number[]>()
  for (const { id, lane: key } of known) {
    if (leftOut('gathered', id)) continue
    const n = mended('gathered', id) ?? Number(id.slice(key.length + 1))
    const row = rowOf(key)
    rows.set(row, [...(rows.get(row) ?? []), gatheredOf(key, n)])
  }
  const stored = await store.rows.load(gatheredTable, [...rows.keys()])
  return [...rows].flatMap(([row, steps]) => {
    const expected = JSON.stringify(trailOf(steps))
    const found = stored.get(row)?.json
    return found === expected ? [] : [`I2 gathered: ${row} is ${found ?? 'not there'}, not ${expected}`]
  })
}

/** I16: what people have decided stays so after a switch. Only who begins anew takes everything up again. */
export function judgeDecisions(history: History, { leftOut, mended }: Decided, ids: Ids): string[] {
  const out = new Set<number>()
  /** What is to be applied instead of an event, the newest last; and what was. */
  const revised = new Map<number, number[]>()
  const applied = new Map<number, number>()
  for (const { about } of inOrder(history, ['effect'])) {
    const effect = about as StoreEffect
    const move = moveOf(effect)
    if (move?.move === 'reset' && move.subscription === 'walks')
      for (const known of [out, revised, applied]) known.clear()
    revise(effect)
    const commit = isAccepted(effect) ? (effect.about?.[0] as Commit) : undefined
    if (commit?.lease.subscription !== 'walks') continue
    for (const change of commit.letters) {
      const { position } = change
      const step = revised.get(position)?.at(-1)
      const isLeftOut = change.change === 'discarded' || (change.change === 'resolved' && change.by !== 'engine')
      if (isLeftOut) out.add(position)
      // Where it failed again in another version, somebody may think better of it.
      if (isLeftOut) applied.delete(position)
      else if (change.change === 'resolved' && step !== undefined) applied.set(position, step)
    }
  }
  const idOf = (position: number) => ids.get(position) as string
  return [
    ...[...out].flatMap((position) =>
      leftOut('walks', idOf(position)) ? [] : [`I16 walks: ${idOf(position)} was left out, and is back`],
    ),
    ...[...applied].flatMap(([position, step]) => {
      const found = mended('walks', idOf(position))
      return found === step ? [] : [`I16 walks: ${idOf(position)} was mended to be ${step}, and is ${found}`]
    }),
  ]

  /** At the end of a transaction, or by itself where there is nothing between. */
  function revise(effect: StoreEffect): void {
    const { what, about: [name, body] = [], value } = effect
    const isDone = what.endsWith('.commit') ? !('error' in effect) : (value as ReviseOutcome)?.outcome === 'revised'
    const { subscription, position } = (name ?? {}) as { subscription?: string; position: number }
    if (subscription !== 'walks' || !isDone) return
    const steps = revised.get(position) ?? []
    if (what.startsWith('letters.revise')) revised.set(position, [...steps, stepOf(body as string)])
    if (!what.startsWith('letters.unrevise')) return
    revised.set(position, steps.slice(0, -1))
    // It is held in another version by now, and somebody thought better of it.
    applied.delete(position)
  }
}

/** The same of the rows that SQL has written. */
export function judgeNotes(notes: ReadonlyMap<string, unknown>, { written }: StepsApp, decided: Decided): string[] {
  return [...written].flatMap(([key, all]) => {
    const steps = stepsOf('notes', key, all, decided)
    const [found, expected] = [notes.get(key) ?? trailOf([]), trailOf(steps)].map((row) => JSON.stringify(row))
    return found === expected ? [] : [`I3 notes: ${key} is ${found}, not ${expected}`]
  })
}

/** And of those from the bad source. */
export async function judgeArrivals({ rows }: Store, { arrivals }: StepsApp): Promise<string[]> {
  if (!arrivals) return []
  const stored = await rows.load({ name: 'arrivals', columns: [] }, [...arrivals.written.keys()])
  return [...arrivals.written].flatMap(([key, versions]) => {
    const expected = JSON.stringify(trailOf(Array.from({ length: versions }, (_, i) => i + 1)))
    const found = stored.get(key)?.json
    return found === expected ? [] : [`I3 arrivals: ${key} is ${found}, not ${expected}`]
  })
}

/** I4, I17: what a bad source has dropped is not passed over: all that a checkpoint passes has its outcome. Its positions have no holes. */
export function judgePassed(history: History): string[] {
  return acceptedOf(history).flatMap(({ commit, who }) => {
    const { lease, from, to, counts } = commit
    if (lease.subscription !== 'arrivals' || to.position - from === totalOf(counts)) return []
    return [`I4 arrivals: ${who} went from ${from} to ${to.position} with ${totalOf(counts)} outcomes`]
  })
}

/** Nothing stops for good but what has to. */
export function judgeHalts({ happenings }: History): string[] {
  const isMeant = (text: string) => text === 'arrivals SOURCE_TRIMMED'
  return happenings.flatMap(({ kind, who, text }) =>
    kind === 'halt' && !isMeant(text) ? [`${who} stopped ${text}`] : [],
  )
}

function trailOf(steps: readonly number[]): { count: number; trail: number } {
  return { count: steps.length, trail: steps.reduce((trail, n) => (trail * 31 + n) % 1_000_003, 0) }
}

/** I18: of what people did, and is there to be seen, everything is in the audit, once; and there is no hole in it, and nothing was changed. */
export async function judgeAudit(
  { audit, redrives, letters }: Pick<Store, 'audit' | 'redrives' | 'letters'>,
  names: readonly string[],
) {
  const problems: string[] = []
  const entries = await audit.list(0, 100_000)
  let before: Pick<AuditEntry, 'number' | 'hash'> = noEntry
  for (const entry of entries) {
    const flaw = flawOf(entry, before)
    if (flaw) problems.push(`I18 ${flaw}`)
    before = entry
  }
  const expect = (times: number, what: string, isMeant: (entry: AuditEntry) => boolean, most = times) => {
    const found = entries.filter(isMeant).length
    if (found < times || found > most)
      problems.push(`I18 ${what} is ${found} times in the audit, and happened ${times} times`)
  }
  for (const { id, act, status, endedReason } of await redrives.list({ limit: 10_000 })) {
    expect(1, `the ${act} ${id}`, (entry) => entry.act === act && entry.details['redrive'] === id)
    expect(
      // A switch and a new beginning end them too, and are deeds of their own.
      status === 'cancelled' && endedReason === why.reason ? 1 : 0,
      `the end of ${id}`,
      (entry) => entry.act === 'redrive.cancel' && entry.target === id,
    )
  }
  for (const subscription of names) {
    for (const { event, partition } of await letters.list({ subscription, limit: 100_000 })) {
      const name = { subscription, partition, position: event.position }
      const revisions = await letters.revisions(name)
      const target = `${subscription}/${event.position}`
      // Who began anew has other letters than before, and one audit.
      const most = Number.POSITIVE_INFINITY
      const takenBack = revisions.filter(({ isTakenBack }) => isTakenBack).length
      expect(
        revisions.length,
        `to mend ${target}`,
        (entry) => entry.act === 'letter.revise' && entry.target === target,
        most,
      )
      expect(
        takenBack,
        `to take back ${target}`,
        (entry) => entry.act === 'letter.unrevise' && entry.target === target,
        most,
      )
    }
  }
  return problems
}

/** I1: each event has one outcome. */
export async function judgeLedger({ subscriptions, letters, log }: Store, app: StepsApp): Promise<string[]> {
  const problems: string[] = []
  const events = [...app.written.values()].reduce((sum, steps) => sum + steps.length, 0)
  const { events: logged } = await log.readAll(0, { events: 100_000, bytes: 100_000_000 })
  if (logged.length !== events) problems.push(`I1 ${events} events were appended, and ${logged.length} are there`)
  for (const subscription of app.names) {
    const isOfLog = subscription !== 'arrivals'
    const states = await subscriptions.partitions(subscription)
    const sum = (name: 'applied' | 'duplicate' | 'filtered' | 'held' | 'discarded') =>
      states.reduce((total, { checkpoint }) => total + checkpoint.counts[name], 0)
    const all = sum('applied') + sum('held') + sum('discarded') + sum('filtered') + sum('duplicate')
    const expected = isOfLog ? events : app.arrivals?.records.length
    if (all !== expected || (isOfLog && sum('duplicate') + sum('filtered') > 0))
      problems.push(
        `I1 ${subscription}: ${all} outcomes, of which ${sum('duplicate')} duplicates, of ${expected} events`,
      )
    for (const { event, attempts, status } of await letters.list({ subscription, limit: 100_000 })) {
      if (status !== 'resolved' && status !== 'discarded')
        problems.push(`I1 ${subscription}: the letter ${event.position} is ${status}`)
      if (attempts.some(({ failure }) => failure.class === 'infrastructure'))
        problems.push(`${subscription}: the letter ${event.position} (${status}) is the fault of an outage`)
    }
  }
  return problems
}

/** Each event has its effect at least once, always with the same key, and none before the one before it. */
export function judgeEffects({ effects, written }: StepsApp, { leftOut }: Decided, isOver: boolean): string[] {
  const problems: string[] = []
  const last = new Map<string, number>()
  const keys = new Map<string, string>()
  const isOut = (key: string, n: number) => leftOut('calls', `${key}-${n}`)
  for (const { key, n, idempotencyKey } of effects) {
    const before = last.get(key) ?? 0
    const between = Array.from({ length: Math.max(0, n - before - 1) }, (_, i) => before + 1 + i)
    if (!between.every((missing) => isOut(key, missing)))
      problems.push(`I2 calls: the effect of ${key}-${n} came after that of ${before}`)
    last.set(key, Math.max(before, n))
    const name = `${key}/${n}`
    if ((keys.get(name) ?? idempotencyKey) !== idempotencyKey) problems.push(`I3 calls: ${name} had two keys`)
    keys.set(name, idempotencyKey)
  }
  for (const [key, steps] of isOver ? written : []) {
    const missing = steps.filter(({ n }) => !keys.has(`${key}/${n}`) && !isOut(key, n))
    if (missing.length > 0) problems.push(`I1 calls: ${key}-${missing[0]?.n} had no effect`)
  }
  return problems
}

/**
 * The same where a partition is kept in order: no effect before that of all events before it, but for those that were left out. What is
 * held keeps its place: it blocks the others.
 */
export function judgeOrder(
  { effects }: Pick<StepsApp, 'effects'>,
  known: readonly Known[],
  { leftOut }: Pick<Decided, 'leftOut'>,
): string[] {
  const done = new Set(effects.map(({ key, n }) => `${key}-${n}`))
  const problems: string[] = []
  for (const partition of new Set(known.map((event) => event.partition))) {
    const order = known.filter((event) => event.partition === partition && !leftOut('calls', event.id))
    const had = new Set<string>()
    const first = effects.flatMap(({ key, n }) => {
      const id = `${key}-${n}`
      const isFirst = !had.has(id)
      had.add(id)
      return isFirst && order.some((event) => event.id === id) ? id : []
    })
    const expected = order.flatMap(({ id }) => (done.has(id) ? id : []))
    const at = first.findIndex((id, i) => id !== expected[i])
    if (at >= 0) problems.push(`I2 calls: the effect of ${first[at]} came before that of ${expected[at]}`)
    const missing = order.findIndex(({ id }) => !done.has(id))
    if (missing >= 0 && missing < expected.length)
      problems.push(`I2 calls: ${order[missing]?.id} had no effect, and what is behind it had`)
  }
  return problems
}

/**
 * What is finished is not begun again: an event whose outcome was in the store is called for only by a process that had the partition before
 * that, and did not know. A call that was made then may arrive at any time, also when the same process has the partition once more.
 */
export async function judgeFinished(
  { log }: Store,
  { effects }: Pick<StepsApp, 'effects'>,
  history: History,
  partitions: number,
) {
  const { events } = await log.readAll(0, { events: 100_000, bytes: 100_000_000 })
  const byId = new Map(events.map(({ id, key, position }) => [id, { position, partition: slotOf(key) % partitions }]))
  const finished = new Map<number, number>()
  const held = new Set<number>()
  const claims = new Map<string, number[]>()
  const problems: string[] = []
  let done = 0
  for (const { kind, who, about, atMs } of history.happenings) {
    if (kind !== 'effect') continue
    const { what, about: asked = [], askedMs, value } = about as StoreEffect
    if (what === 'subscriptions.claim' && (value as ClaimOutcome | undefined)?.outcome === 'claimed') {
      const { lease } = value as Extract<ClaimOutcome, { outcome: 'claimed' }>
      const name = `${who}/${lease.partition}`
      if (lease.subscription === 'calls') claims.set(name, [...(claims.get(name) ?? []), atMs])
    }
    if (what === 'subscriptions.commit' && (value as CommitOutcome | undefined)?.outcome === 'committed') {
      const commit = asked[0] as Commit
      if (commit.lease.subscription === 'calls') finish(commit, atMs)
    }
    if (what !== 'outside.call' || !('value' in (about as object))) continue
    const { key, n } = effects[done++] as StepsApp['effects'][number]
    const { position, partition } = byId.get(`${key}-${n}`) as { position: number; partition: number }
    const since = finished.get(position)
    const claimed = claims.get(`${who}/${partition}`)?.findLast((claimedMs) => claimedMs <= askedMs) ?? 0
    if (since !== undefined && claimed > since)
      problems.push(`I3 calls: ${who} did ${key}-${n} again, which was finished`)
  }
  return problems

  function finish({ lease, to, marks = [], held: letters, letters: changes }: Commit, atMs: number): void {
    for (const { event, status } of letters) if (status !== 'discarded') held.add(event.position)
    for (const { change, position } of changes)
      if (change === 'resolved' || change === 'discarded') held.delete(position)
    for (const { position, partition } of byId.values()) {
      if (partition !== lease.partition || finished.has(position) || held.has(position)) continue
      if (position <= to.position || marks.some(([from, until]) => position >= from && position <= until))
        finished.set(position, atMs)
    }
  }
}
