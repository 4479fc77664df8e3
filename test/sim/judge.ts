import type { Store } from 'holdfast'
import { slotOf } from '../../src/source/share.ts'
import type { ClaimOutcome, Commit, CommitOutcome } from '../../src/subscription/subscription-store.ts'
import type { History } from '../../src/testing/simulation/history.ts'
import type { StepsApp, StepsSettings } from './steps.ts'

const table = { name: 'walks', columns: [{ name: 'count', type: 'integer' }] } as const

/** I1, I2, I3: every row is what its events make of it, in their order, each of them once. Written down here by hand. */
export async function judgeRows({ rows }: Store, { written }: StepsApp): Promise<string[]> {
  const stored = await rows.load(table, [...written.keys()])
  return [...written].flatMap(([key, steps]) => {
    const expected = {
      last: steps.length,
      count: steps.length,
      trail: steps.reduce((trail, { n }) => (trail * 31 + n) % 1_000_003, 0),
    }
    const found = stored.get(key)
    return found?.json === JSON.stringify(expected) && found.version === steps.length
      ? []
      : [`I3 ${key} is ${found?.json ?? 'not there'} at ${found?.version}, not ${JSON.stringify(expected)}`]
  })
}

/** I1: each event has one outcome. */
export async function judgeLedger(
  { subscriptions, letters, log }: Store,
  { written }: StepsApp,
  { partitions }: StepsSettings,
) {
  const problems: string[] = []
  const events = [...written.values()].reduce((sum, steps) => sum + steps.length, 0)
  const { events: logged } = await log.readAll(0, { events: 100_000, bytes: 100_000_000 })
  if (logged.length !== events) problems.push(`I1 ${events} events were appended, and ${logged.length} are there`)
  for (const subscription of ['walks', 'calls']) {
    const states = await subscriptions.partitions(subscription)
    const counts = states.reduce(
      (sum, { checkpoint: { counts: one } }) => ({
        applied: sum.applied + one.applied,
        other: sum.other + one.duplicate + one.filtered + one.discarded,
        held: sum.held + one.held,
      }),
      { applied: 0, other: 0, held: 0 },
    )
    const ended = await letters.list({ subscription, limit: 100_000 })
    const resolved = ended.filter(({ status }) => status === 'resolved').length
    if (states.length !== partitions) problems.push(`${subscription} has ${states.length} partitions`)
    if (counts.applied + counts.held !== events || counts.other > 0)
      problems.push(`I1 ${subscription}: ${JSON.stringify(counts)} of ${events} events`)
    if (resolved !== ended.length || resolved < counts.held)
      problems.push(`I1 ${subscription}: ${resolved} of ${ended.length} letters are resolved, ${counts.held} were held`)
    for (const { event, attempts, status } of ended) {
      const outage = attempts.find(({ failure }) => failure.class === 'infrastructure')
      if (outage) problems.push(`${subscription}: the letter ${event.position} (${status}) is the fault of an outage`)
    }
  }
  return problems
}

/** Each event has its effect at least once, always with the same key, and none before the one before it. */
export function judgeEffects({ effects, written }: StepsApp, isOver: boolean): string[] {
  const problems: string[] = []
  const last = new Map<string, number>()
  const keys = new Map<string, string>()
  for (const { key, n, idempotencyKey } of effects) {
    const before = last.get(key) ?? 0
    if (n > before + 1) problems.push(`I2 calls: the effect of ${key}-${n} came after that of ${before}`)
    last.set(key, Math.max(before, n))
    const name = `${key}/${n}`
    if ((keys.get(name) ?? idempotencyKey) !== idempotencyKey) problems.push(`I3 calls: ${name} had two keys`)
    keys.set(name, idempotencyKey)
  }
  for (const [key, steps] of isOver ? written : []) {
    if (last.get(key) !== steps.length)
      problems.push(`I1 calls: the last effect of ${key} is ${last.get(key)} of ${steps.length}`)
  }
  return problems
}

/**
 * What is finished is not begun again: an effect of an event whose outcome was in the store comes only from a process that had the partition
 * before that, and did not know.
 */
export async function judgeFinished({ log }: Store, { effects }: StepsApp, history: History, partitions: number) {
  const { events } = await log.readAll(0, { events: 100_000, bytes: 100_000_000 })
  const byId = new Map(events.map(({ id, key, position }) => [id, { position, partition: slotOf(key) % partitions }]))
  const finished = new Map<number, number>()
  const held = new Set<number>()
  const claimed = new Map<string, number>()
  const problems: string[] = []
  let done = 0
  for (const [step, { kind, who, about }] of history.happenings.entries()) {
    if (kind !== 'effect') continue
    const { what, about: asked = [], value } = about as { what: string; about?: readonly unknown[]; value?: unknown }
    if (what === 'subscriptions.claim' && (value as ClaimOutcome | undefined)?.outcome === 'claimed') {
      const { lease } = value as Extract<ClaimOutcome, { outcome: 'claimed' }>
      if (lease.subscription === 'calls') claimed.set(`${who}/${lease.partition}`, step)
    }
    if (what === 'subscriptions.commit' && (value as CommitOutcome | undefined)?.outcome === 'committed') {
      const commit = asked[0] as Commit
      if (commit.lease.subscription === 'calls') finish(commit, step)
    }
    if (what !== 'call' || !('value' in (about as object))) continue
    const { key, n } = effects[done++] as StepsApp['effects'][number]
    const { position, partition } = byId.get(`${key}-${n}`) as { position: number; partition: number }
    const since = finished.get(position)
    if (since !== undefined && (claimed.get(`${who}/${partition}`) ?? 0) > since)
      problems.push(`I3 calls: ${who} did ${key}-${n} again, which was finished`)
  }
  return problems

  function finish({ lease, to, marks = [], held: letters, letters: changes }: Commit, step: number): void {
    for (const { event } of letters) held.add(event.position)
    for (const { change, position } of changes) if (change === 'resolved') held.delete(position)
    for (const { position, partition } of byId.values()) {
      if (partition !== lease.partition || finished.has(position) || held.has(position)) continue
      if (position <= to.position || marks.some(([from, until]) => position >= from && position <= until))
        finished.set(position, step)
    }
  }
}
