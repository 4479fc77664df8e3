import { setTimeout } from 'node:timers/promises'
import { verify } from '../database.ts'
import { partitions, subscriptions } from '../postings.ts'
import type { Scene } from '../scene.ts'
import { checkEffects } from './effects.ts'
import { expectLanes } from './expected.ts'
import { checkLedger } from './ledger.ts'
import { checkLetters } from './letters.ts'
import { checkLog } from './log.ts'
import { readSnapshot, type Snapshot } from './snapshot.ts'

export interface Totals {
  readonly appended: number
  readonly applied: number
  readonly held: number
}

const drainMs = 60_000

/** Lets everything come to rest, and looks at all of it. */
export async function checkAll({ admin, writers, tally }: Scene, url: string): Promise<Totals> {
  await writers.pause()
  const isDrained = await untilDrained(admin)
  const snapshot = await readSnapshot(admin)
  if (!isDrained) tally.problem(`The subscriptions did not reach the head in ${drainMs} ms: ${positionsOf(snapshot)}`)
  for (const what of writers.record.problems.splice(0)) tally.problem(what)
  checkLog(snapshot, writers.record.keys, tally)
  const expected = expectLanes(snapshot.events)
  if (isDrained) {
    for (const { name } of subscriptions) {
      const own = snapshot.letters.filter(({ subscription }) => subscription === name)
      const held = new Set(own.map(({ id }) => id))
      if (name === 'ledger') checkLedger(snapshot.rows, held, expected, tally)
      else checkEffects(snapshot.effects, held, expected, tally)
      checkLetters(name, own, expected, tally)
      checkCounts(name, snapshot)
    }
  }
  for (const what of await verify(url)) tally.problem(what)
  tally.add('checks')
  writers.resume()
  const total = (outcome: 'applied' | 'held') => snapshot.partitions.reduce((sum, row) => sum + row[outcome], 0)
  return { appended: snapshot.events.length, applied: total('applied'), held: total('held') }

  /** The ledger of outcomes: every event has exactly one. */
  function checkCounts(name: string, { partitions: all, events }: Snapshot): void {
    const own = all.filter(({ subscription }) => subscription === name)
    const outcomes = own.reduce((sum, row) => sum + row.outcomes, 0)
    if (own.length !== partitions || outcomes !== events.length)
      tally.problem(`${name}: ${events.length} events have ${outcomes} outcomes in ${own.length} partitions.`)
  }
}

/** All checkpoints are at the head. Writers stand still, so the head does. */
async function untilDrained(admin: Scene['admin']): Promise<boolean> {
  const deadline = performance.now() + drainMs
  while (performance.now() < deadline) {
    const [row] = await admin.query<{ drained: boolean }>(`
      SELECT min(position) >= coalesce((SELECT max(position) FROM holdfast.holdfast_events), 0) AS drained
        FROM holdfast.holdfast_partitions`)
    if (row?.drained) return true
    await setTimeout(25)
  }
  return false
}

function positionsOf({ partitions: all, events }: Snapshot): string {
  const places = all.map(({ subscription, partition, position }) => `${subscription}/${partition} ${position}`)
  return `${places.join(', ')}, head ${events.at(-1)?.position ?? 0}`
}
