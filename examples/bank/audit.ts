import { createHash } from 'node:crypto'
import { type Engine, type Log, read, type Store, type Verification } from 'holdfast'
import { balances, type bank } from './bank.ts'
import type { EngineFacts } from './kill.ts'
import type { Place } from './place.ts'
import type { DoorFacts } from './tellers.ts'
import type { ExpectedAccount } from './workload.ts'

/** The facts for the report and for checking the promises. */
export interface Facts {
  readonly seed: number
  readonly place: Place
  readonly planned: {
    readonly events: number
    readonly accounts: number
    readonly repeated: number
    readonly malformed: number
  }
  readonly door: DoorFacts
  readonly engine: EngineFacts
  readonly audit: Audit
  readonly seconds: number
}

export interface Audit {
  readonly verification: Verification
  readonly rows: number
  readonly parked: number
  readonly queued: number
  /** The lane in which most events wait. */
  readonly example: HeldExample | undefined
  /** A hash of all rows, and the held lanes: the same for the same seed, regardless of timing. */
  readonly rowsHash: string
  readonly heldLanes: readonly string[]
  /** Rows, events and letters that differ from the oracle, each with the difference. */
  readonly wrongRows: readonly string[]
  readonly wrongEvents: readonly string[]
  readonly wrongLetters: readonly string[]
}

export interface HeldExample {
  readonly account: string
  readonly event: string
  readonly error: string
  readonly waiting: number
}

/** Compares the store with the expected accounts. */
export async function auditBank(
  store: Store,
  log: Log<typeof bank>,
  engine: Engine,
  expected: ReadonlyMap<string, ExpectedAccount>,
): Promise<Audit> {
  return {
    verification: await engine.verify(balances.name),
    ...(await compareRows(store, expected)),
    ...(await compareLetters(engine, expected)),
    wrongEvents: await compareEvents(log, expected),
  }
}

async function compareRows(store: Store, expected: ReadonlyMap<string, ExpectedAccount>) {
  const wrongRows: string[] = []
  const missing = new Set(expected.keys())
  const hash = createHash('sha256')
  let after: string | undefined
  do {
    const page = await read(store, balances).list({ limit: 1_000, ...(after && { after }) })
    for (const { key, version, data } of page.rows) {
      missing.delete(key)
      hash.update(JSON.stringify([key, version, data]))
      const { applied, owner, overdraft, entries, ...account } = expected.get(key) ?? noAccount
      const wanted = { owner, balance: account.balance, overdraft, entries }
      if (version !== applied || JSON.stringify(data) !== JSON.stringify(wanted)) {
        wrongRows.push(
          `${key} is ${JSON.stringify(data)} at version ${version}, not ${JSON.stringify(wanted)} at ${applied}`,
        )
      }
    }
    after = page.next
  } while (after)
  for (const key of missing) wrongRows.push(`${key} has no row`)
  return { rows: expected.size - missing.size, rowsHash: hash.digest('hex'), wrongRows }
}

/** Checks that the log has each event once, in the order of its account, and nothing else. */
async function compareEvents(log: Log<typeof bank>, expected: ReadonlyMap<string, ExpectedAccount>): Promise<string[]> {
  const wrong: string[] = []
  const seen = new Map<string, number>()
  for await (const { key, id, version } of log.raw.readAll()) {
    const before = seen.get(key) ?? 0
    seen.set(key, before + 1)
    if (version !== before + 1 || expected.get(key)?.ids[before] !== id) wrong.push(`${key} has ${id} at ${version}`)
  }
  for (const [key, { ids }] of expected) {
    if (seen.get(key) !== ids.length) wrong.push(`${key} has ${seen.get(key)} events, not ${ids.length}`)
  }
  return wrong
}

/** Checks that lanes are held exactly as the oracle expects: the failing event first, then all later events of the account in order. */
async function compareLetters(engine: Engine, expected: ReadonlyMap<string, ExpectedAccount>) {
  const wrongLetters: string[] = []
  const held = new Map<string, string[]>()
  let example: HeldExample | undefined
  let parked = 0
  let queued = 0
  let after = 0
  for (;;) {
    const letters = await engine.letters({ subscription: balances.name, after, limit: 1_000 })
    for (const { lane, event, status, failure } of letters) {
      after = event.position
      const ids = held.get(lane) ?? []
      held.set(lane, [...ids, event.id])
      if (status === 'parked') parked++
      else queued++
      if (status !== (ids.length === 0 ? 'parked' : 'queued')) wrongLetters.push(`${event.id} is ${status}`)
      const account = expected.get(lane) ?? noAccount
      const waiting = account.ids.length - account.applied - 1
      if (failure && waiting > (example?.waiting ?? -1)) {
        const what = `${event.type} ${String(event.body)}`
        example = { account: lane, event: what, error: `${failure.errorType}: ${failure.message}`, waiting }
      }
    }
    if (letters.length < 1_000) break
  }
  for (const [key, { ids, applied }] of expected) {
    const found = held.get(key) ?? []
    if (found.join() !== ids.slice(applied).join()) wrongLetters.push(`${key} holds ${found.join(', ') || 'nothing'}`)
  }
  return { parked, queued, example, heldLanes: [...held.keys()].toSorted(), wrongLetters }
}

const noAccount: ExpectedAccount = { ids: [], owner: '', overdraft: 0, balance: 0, entries: 0, applied: 0 }

/** Describes each broken promise. Empty if all were kept. */
export function brokenPromises({ planned, door, engine, audit }: Facts): string[] {
  const { verification, wrongRows, wrongEvents, wrongLetters, parked, queued } = audit
  const { counts } = verification
  const refused = Object.values(door.refused).reduce((sum, count) => sum + count, 0)
  const promises: [kept: boolean, broken: string][] = [
    [door.appended === planned.events, `${door.appended} of ${planned.events} events were appended`],
    [door.absorbed === planned.repeated, `${door.absorbed} of ${planned.repeated} repeated events were absorbed`],
    [planned.repeated > 0, 'nothing was repeated, so nothing is shown about repetition'],
    [refused === planned.malformed, `${refused} of ${planned.malformed} malformed appends were refused`],
    [refused > 0, 'nothing was refused'],
    [door.mistakes.length === 0, `the log made mistakes: ${some(door.mistakes)}`],
    [engine.endedBy === 'SIGKILL', `the engine was not killed: it ended by ${engine.endedBy}`],
    [
      engine.done > 0 && engine.done < engine.appended && engine.appended <= planned.events,
      `the kill was not in the middle of the work: ${engine.done} of ${engine.appended} events were processed`,
    ],
    [engine.lost.length > 0, 'the process that was killed owned nothing'],
    [
      engine.lost.every(({ told, takenUpAt }) => takenUpAt >= told),
      `partitions were taken up before where they were left: ${JSON.stringify(engine.lost)}`,
    ],
    // Other processes have continued meanwhile.
    [
      engine.processes === 1 ? engine.resumedAt === engine.done : engine.resumedAt >= engine.done,
      `the work was taken up with ${engine.resumedAt} events done, after ${engine.done}`,
    ],
    [engine.joinedWith > 0, 'the process that came back got no partition'],
    [Number.isFinite(engine.recoveredInMs), 'nothing was committed after the kill'],
    [wrongEvents.length === 0, `events are lost, repeated or out of order: ${some(wrongEvents)}`],
    [wrongRows.length === 0, `rows differ from the fold of their events: ${some(wrongRows)}`],
    [wrongLetters.length === 0, `the wrong events are held, or in the wrong order: ${some(wrongLetters)}`],
    [parked > 0 && queued > 0, `held are ${parked} lanes with ${queued} events behind them`],
    [verification.ok, `verify found ${verification.differenceCount}: ${JSON.stringify(verification.differences[0])}`],
    [verification.events === planned.events, `the engine is through with ${verification.events} of ${planned.events}`],
    [
      counts.applied + counts.held === planned.events && counts.held === parked + queued,
      `the outcomes don't add up to ${planned.events}: ${JSON.stringify(counts)}`,
    ],
    [counts.duplicate === 0, `${counts.duplicate} events came twice to the projection`],
  ]
  return promises.filter(([kept]) => !kept).map(([, broken]) => broken)
}

function some(list: readonly string[]): string {
  return list.length > 3 ? `${list.slice(0, 3).join('; ')}; and ${list.length - 3} more` : list.join('; ')
}
