import type { HeldLane, NewLetter } from '../../src/dead-letter/letter.ts'
import type { RowWrite, TableSpec } from '../../src/projection/row-store.ts'
import { generationTable } from '../../src/rebuild/generation.ts'
import type { RedriveProgress } from '../../src/redrive/redrive.ts'
import type { Commit, LaneWrite, Lease, LetterChange } from '../../src/subscription/subscription-store.ts'
import { type Knowledge, keys, leaseMs, table } from './knowledge.ts'
import type { Side } from './sides.ts'

/** What a commit has in it depends on where the partition stands, which both know. */
export async function pageOf(knowledge: Knowledge, side: Side, lease: Lease): Promise<Commit> {
  const { subscription, partition } = lease
  const state = await side.clients[0].subscriptions.load(subscription, partition)
  const position = state?.checkpoint.position ?? 0
  const target = position + (knowledge.oneIn(3) ? 0 : knowledge.below(4))
  const held = letters(knowledge, lease)
  const ownTable = tableOf(subscription)
  const known = knowledge.letters.filter((one) => one.subscription === subscription && one.partition === partition)
  return {
    lease,
    leaseMs,
    from: knowledge.oneIn(10) ? position + 1 : position,
    commits: knowledge.oneIn(2) ? state?.checkpoint.commits : undefined,
    to: { position: target, eventId: `e${target}`, eventType: 'T', eventTime: undefined },
    at: knowledge.time++,
    counts: { applied: 1, duplicate: 0, filtered: 0, held: held.length, discarded: 0 },
    table: ownTable,
    rows: ownTable ? rowsOf(knowledge, subscription) : [],
    lanes: lanes(knowledge, held, known),
    held,
    letters: knowledge.oneIn(2) ? changesOf(knowledge, known) : [],
    marks: knowledge.oneIn(4) ? [[target + 1, target + 1 + knowledge.below(3)]] : undefined,
    tried: knowledge.oneIn(4) ? target + 5 : undefined,
    trial: knowledge.oneIn(4) ? { position: target + 1, instance: knowledge.pick(['p1', 'p2']) } : undefined,
    endedTrials: knowledge.oneIn(4) ? [target, target + 1] : undefined,
    acquitted: knowledge.oneIn(4) ? knowledge.pick(['p1', 'p2']) : undefined,
    inbox: knowledge.oneIn(4)
      ? [
          {
            key: knowledge.pick(['x', 'y', '{"a"}']),
            result: knowledge.pick([null, '1']),
            until: knowledge.pick([undefined, 50]),
          },
        ]
      : undefined,
    redriven: knowledge.oneIn(2) ? progress(knowledge, known) : undefined,
    evenPaused: knowledge.oneIn(6) ? true : undefined,
  }
}

/** Of the live one, or of a generation beside it. */
function tableOf(subscription: string): TableSpec | undefined {
  if (!subscription.startsWith('s')) return undefined
  return subscription === 's' ? table : generationTable(table, Number(subscription.slice(2)))
}

function rowsOf(knowledge: Knowledge, subscription: string): RowWrite[] {
  const chosen = keys.filter(() => knowledge.oneIn(4))
  return chosen.map((key) => {
    const before = knowledge.rowVersions.get(`${subscription} ${key}`) ?? 0
    // Now and then one that is there already, which must not happen.
    const version = knowledge.oneIn(20) ? before : before + 1
    const columns = [
      knowledge.below(5) - 2,
      knowledge.pick([null, 'x', 'y', 'ü', `${key}-own`]),
      knowledge.pick([null, true, false]),
    ]
    return { key, version, position: version, json: `{ "v":${version} }`, columns }
  })
}

function letters(knowledge: Knowledge, { subscription, partition }: Lease): NewLetter[] {
  const used = new Set(
    knowledge.letters.flatMap((one) => (one.subscription === subscription ? [`${one.partition}/${one.position}`] : [])),
  )
  // The store has one lane of a name in a subscription, because partitions are cut by key.
  const isElsewhere = (lane: string) =>
    knowledge.letters.some(
      (one) => one.subscription === subscription && one.lane === lane && one.partition !== partition,
    )
  return Array.from({ length: knowledge.pick([0, 0, 1, 2]) }, (): NewLetter[] => {
    const status = knowledge.pick(['parked', 'parked', 'queued', 'waiting', 'retrying', 'discarded'] as const)
    const failure = knowledge.oneIn(4) ? undefined : knowledge.failure()
    const ending = status === 'discarded' ? { ending: { by: 'policy', reason: 'mail to nobody' } } : {}
    const event = knowledge.oneIn(2) ? knowledge.maybe(knowledge.events) : undefined
    if (event && !used.has(`${partition}/${event.position}`) && !isElsewhere(event.key)) {
      used.add(`${partition}/${event.position}`)
      const own = { lane: event.key, sequence: event.version as number, status, logged: true, event, failure }
      return [{ ...own, ...ending }]
    }
    const position = knowledge.foreign++
    // Keys of the log and lanes of other sources are never the same.
    const lane = `far-${knowledge.below(3)}`
    if (isElsewhere(lane)) return []
    const sequence = position - 1_000_000
    const body = knowledge.oneIn(3) ? new Uint8Array([0xff, 0, 123]) : '{"a":"\\u0000"}'
    const far = { position, id: `far-${position}`, type: 'Came', key: lane, version: sequence, schemaVersion: 1 }
    const whole = { ...far, time: '2026-01-01T00:00:00.000Z', body, metadata: undefined }
    return [{ lane, sequence, status, logged: false, event: whole, failure, ...ending }]
  }).flat()
}

type Known = { readonly lane: string; readonly sequence: number; readonly position: number }

function lanes(knowledge: Knowledge, held: readonly NewLetter[], known: readonly Known[]): LaneWrite[] {
  const heads: Known[] = [
    ...held.map(({ lane, sequence, event }) => ({ lane, sequence, position: event.position })),
    ...known,
  ]
  return heads
    .filter(() => knowledge.oneIn(3))
    .slice(0, 3)
    .map(({ lane, sequence, position }): LaneWrite => {
      const done = knowledge.oneIn(2) ? knowledge.below(5) : undefined
      if (knowledge.oneIn(4)) return { lane, hold: undefined, done }
      const status = knowledge.pick(['parked', 'parked', 'retrying', 'waiting'] as const)
      const hold: HeldLane = {
        lane,
        status,
        since: knowledge.time++,
        done,
        head: sequence,
        headPosition: position,
        dueAt: knowledge.pick([undefined, 1_000]),
        tries: knowledge.pick([undefined, 0, 2]),
        breaker: knowledge.pick([undefined, undefined, 'mail']),
        redrive: knowledge.maybe([undefined, ...knowledge.redrives]),
      }
      return { lane, hold, done }
    })
}

function changesOf(knowledge: Knowledge, known: readonly Known[]): LetterChange[] {
  return known
    .filter(() => knowledge.oneIn(4))
    .slice(0, 3)
    .map(({ position }): LetterChange => {
      const change = knowledge.pick(['resolved', 'discarded', 'failed', 'status'] as const)
      switch (change) {
        case 'resolved':
          return knowledge.oneIn(2)
            ? { change, position, by: 'engine' }
            : { change, position, by: 'ann', reason: 'by hand' }
        case 'discarded':
          return { change, position, ending: { by: 'ann', reason: 'twice' } }
        case 'failed':
          return { change, position, status: knowledge.pick(['parked', 'retrying']), failure: knowledge.failure() }
        case 'status':
          return { change, position, status: knowledge.pick(['retrying', 'waiting', 'queued']) }
        default:
          return change satisfies never
      }
    })
}

function progress(knowledge: Knowledge, known: readonly Known[]): RedriveProgress[] {
  const redrive = knowledge.maybe(knowledge.redrives)
  if (!redrive) return []
  // From an end there is no way back: another redrive may have the lane.
  return known
    .filter(() => knowledge.oneIn(3))
    .slice(0, 2)
    .map(({ lane }) => {
      return {
        redrive,
        lane,
        letters: knowledge.below(3),
        state: knowledge.pick(['done', 'failed', 'passed'] as const),
      }
    })
}
