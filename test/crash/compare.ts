import { DatabaseSync } from 'node:sqlite'
import { createEngine } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { createShuffle, ledgerProjection, type Posting, shuffledId } from './ledger.ts'
import type { Written } from './writer.ts'

/** What a subscription must have made of its events, worked out here and not by the engine. */
interface Expected {
  readonly position: number
  readonly rows: Map<string, { version: number; balance: number; count: number; trail: number }>
  /** The letters of each held lane, first to last, and why the first is held. */
  readonly lanes: Map<string, { status: 'parked' | 'waiting'; letters: { sequence: number; id: string }[] }>
  readonly counts: { applied: number; duplicate: number; filtered: number; held: number; discarded: number }
}

export interface Comparison {
  readonly problems: string[]
  readonly events: number
  readonly applied: number
  readonly heldLanes: number
  readonly heldEvents: number
  readonly healedEvents: number
}

/** Compares the file with what was written: nothing lost, nothing twice, in order, or held. */
export async function compareWithOracle(file: string, written: Written, shuffleSeed?: number): Promise<Comparison> {
  const db = new DatabaseSync(file, { readOnly: true })
  const problems: string[] = []
  try {
    const head = compareLog(db, written, problems)
    const expected = expectFromLog(head, written)
    compareSubscription(db, 'ledger', expected, problems)
    if (shuffleSeed !== undefined) compareSubscription(db, 'shuffled', expectFromShuffle(shuffleSeed, head), problems)
    const integrity = db.prepare('PRAGMA integrity_check').get() as { integrity_check: string }
    if (integrity.integrity_check !== 'ok') problems.push(`SQLite: ${integrity.integrity_check}`)
    const healed = db.prepare("SELECT count(*) AS healed FROM holdfast_dead_letters WHERE status = 'resolved'").get()
    problems.push(...(await verify(file)))
    const { applied, held } = expected.counts
    const healedEvents = (healed as { healed: number }).healed
    return { problems, events: head, applied, heldLanes: expected.lanes.size, heldEvents: held, healedEvents }
  } finally {
    db.close()
  }
}

function compareLog(db: DatabaseSync, written: Written, problems: string[]): number {
  const found = new Map<string, number>()
  let head = 0
  for (const row of db
    .prepare('SELECT position, key, version, id, data FROM holdfast_events ORDER BY position')
    .all()) {
    const { position, key, version, id, data } = row as Record<string, string | number>
    const before = found.get(key as string) ?? 0
    const { id: wanted, ...posting } = written.get(key as string)?.[before] ?? { id: 'nothing' }
    found.set(key as string, before + 1)
    if (position !== ++head || version !== before + 1 || id !== wanted || data !== JSON.stringify(posting))
      problems.push(`The log has ${id} at ${position}, not ${wanted}.`)
  }
  for (const [key, postings] of written) {
    if (found.get(key) !== postings.length)
      problems.push(`The log has ${found.get(key) ?? 0} events of ${key}; ${postings.length} were acknowledged.`)
  }
  return head
}

function expectFromLog(head: number, written: Written): Expected {
  const expected = nothing(head)
  for (const [key, postings] of written) {
    const applied = foldOne(expected, key, postings)
    const rest = postings.slice(applied).map(({ n, id }) => ({ sequence: n, id }))
    if (rest.length > 0) expected.lanes.set(key, { status: 'parked', letters: rest })
    expected.counts.held += rest.length
  }
  return expected
}

function expectFromShuffle(seed: number, head: number): Expected {
  const expected = nothing(head)
  const arrived = new Map<string, Map<number, Posting>>()
  for (const { key, version, posting } of createShuffle(seed)(head).slice(0, head)) {
    const versions = arrived.get(key) ?? new Map<number, Posting>()
    arrived.set(key, versions)
    if (versions.has(version)) expected.counts.duplicate++
    versions.set(version, posting)
  }
  for (const [key, versions] of arrived) {
    const unbroken: Posting[] = []
    for (let version = 1; versions.has(version); version++) unbroken.push(versions.get(version) as Posting)
    const applied = foldOne(expected, key, unbroken)
    const rest = [...versions.keys()].filter((version) => version > applied).toSorted((a, b) => a - b)
    expected.counts.held += rest.length
    if (rest.length === 0) continue
    const letters = rest.map((sequence) => ({ sequence, id: shuffledId(key, sequence) }))
    expected.lanes.set(key, { status: rest[0] === applied + 1 ? 'parked' : 'waiting', letters })
  }
  return expected
}

function nothing(position: number): Expected {
  const counts = { applied: 0, duplicate: 0, filtered: 0, held: 0, discarded: 0 }
  return { position, rows: new Map(), lanes: new Map(), counts }
}

/** How many of them can be applied. */
function foldOne({ rows, counts }: Expected, key: string, postings: readonly Posting[]): number {
  let [balance, count, trail] = [0, 0, 0]
  for (const { n, amount } of postings) {
    if (balance + amount < 0) break
    balance += amount
    count += 1
    trail = (trail * 31 + n) % 1_000_000_007
  }
  if (count > 0) rows.set(key, { version: count, balance, count, trail })
  counts.applied += count
  return count
}

function compareSubscription(db: DatabaseSync, name: string, expected: Expected, problems: string[]): void {
  const complain = (what: string) => void problems.push(`${name}: ${what}`)
  const checkpoint = db
    .prepare(
      'SELECT position, applied, duplicate, filtered, held, discarded FROM holdfast_partitions WHERE subscription = ?',
    )
    .get(name)
  expectSame('the checkpoint', checkpoint, { position: expected.position, ...expected.counts })

  const rows = new Map(expected.rows)
  for (const row of db.prepare(`SELECT key, version, data, balance FROM ${name}`).all()) {
    const { key, version, data, balance } = row as Record<string, string | number>
    const { version: wantedVersion, ...wanted } = rows.get(key as string) ?? { version: 0 }
    rows.delete(key as string)
    expectSame(
      `the row ${key}`,
      { version, data: JSON.parse(data as string) },
      { version: wantedVersion, data: wanted },
    )
    expectSame(`the column of ${key}`, balance, (wanted as { balance?: number }).balance)
  }
  for (const key of rows.keys()) complain(`${key} has no row`)

  const open = new Map<string, { sequence: number; id: string; status: string; attempts: number }[]>()
  const letters = db.prepare(
    `SELECT lane, sequence, event_id AS id, status, json_array_length(attempts) AS attempts FROM holdfast_dead_letters
     WHERE subscription = ? AND ended_at IS NULL ORDER BY lane, sequence, id`,
  )
  for (const row of letters.all(name)) {
    const { lane, ...letter } = row as { lane: string; sequence: number; id: string; status: string; attempts: number }
    open.set(lane, [...(open.get(lane) ?? []), letter])
  }
  for (const [lane, { status, letters: wanted }] of expected.lanes) {
    const found = open.get(lane) ?? []
    open.delete(lane)
    expectSame(
      `the lane ${lane}`,
      found,
      wanted.map((letter, i) => ({
        ...letter,
        status: i === 0 ? status : 'queued',
        attempts: i === 0 && status === 'parked' ? 1 : 0,
      })),
    )
  }
  for (const lane of open.keys()) complain(`the lane ${lane} is held, and should flow`)

  const held = db.prepare('SELECT lane, status, head FROM holdfast_lanes WHERE subscription = ? AND status IS NOT NULL')
  const lanes = Array.from(expected.lanes, ([lane, { status, letters: all }]) => [lane, status, all[0]?.sequence])
  const found = held.all(name).map(({ lane, status, head }) => [lane, status, head])
  expectSame('the held lanes', found.toSorted(byLane), lanes.toSorted(byLane))

  const twice = db
    .prepare(
      'SELECT event_id FROM holdfast_dead_letters WHERE subscription = ? GROUP BY event_id, lane HAVING count(*) > 1',
    )
    .all(name)
  for (const { event_id } of twice) complain(`${String(event_id)} was held twice`)

  function expectSame(what: string, actual: unknown, wanted: unknown): void {
    if (JSON.stringify(actual) !== JSON.stringify(wanted))
      complain(`${what} is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`)
  }
}

function byLane(a: readonly unknown[], b: readonly unknown[]): number {
  return String(a[0]) < String(b[0]) ? -1 : 1
}

async function verify(file: string): Promise<string[]> {
  await using store = await createSqliteStore({ file })
  const engine = createEngine({ store, subscriptions: [ledgerProjection('ledger')] })
  const { ok, differences } = await engine.verify('ledger')
  return ok ? [] : differences.map((difference) => `verify: ${JSON.stringify(difference)}`)
}
