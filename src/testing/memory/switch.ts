import { joinAttempts, keepAttempts } from '../../dead-letter/attempts.ts'
import { generationName, generationTableName } from '../../rebuild/generation.ts'
import type { Gap } from '../../rebuild/rebuild-store.ts'
import { isLeftOut } from './decisions.ts'
import { putLetter } from './letter-writes.ts'
import { hasBetween } from './pages.ts'
import { free } from './partitions.ts'
import { endRedrives } from './redrive-stages.ts'
import type { Partition, RowTable, State, Subscribed } from './state.ts'

/** A checkpoint skips events of other partitions only from time to time: the events between may belong to other partitions. */
export function gapsOf(state: State, live: Subscribed, next: Subscribed): readonly Gap[] {
  return live.partitions.flatMap(({ partition, checkpoint }, i) => {
    const rebuilt = (next.partitions[i] as Partition).checkpoint.position
    const share = { partition, of: live.partitions.length }
    const isBehind = rebuilt < checkpoint.position && hasBetween(state, rebuilt, checkpoint.position, share)
    return isBehind ? [{ partition, live: checkpoint.position, rebuilt }] : []
  })
}

/**
 * The live generation gets a name of its own, and the other one takes the live name. The new epoch is higher than both, so no
 * earlier lease is valid.
 */
export function changePlaces(state: State, name: string, generation: string, at: number, now: number): void {
  const live = state.subscriptions.get(name) as Subscribed
  const next = state.subscriptions.get(generation) as Subscribed
  for (const [i, before] of live.partitions.entries()) {
    const behind = next.partitions[i] as Partition
    const epoch = Math.max(before.epoch, behind.epoch) + 1
    free(before, epoch)
    free(behind, epoch)
    const position = Math.max(behind.checkpoint.position, before.checkpoint.position)
    behind.checkpoint = { ...behind.checkpoint, position }
    // A pause belongs to the name.
    behind.pause = before.pause
    before.pause = undefined
  }
  for (const subscribed of [live, next]) endRedrives(subscribed, 'another version became live', now)
  takeRevisions(live, next)
  takeEndings(live, next)
  takeHistory(live, next)
  renameTables(state, live, next)
  const old = generationName(name, live.version)
  state.subscriptions.delete(generation)
  state.subscriptions.set(old, live)
  state.subscriptions.set(name, next)
  next.generationOf = undefined
  next.retiredAt = undefined
  next.epochs = live.epochs
  live.generationOf = name
  live.retiredAt = at
  live.epochs = 0
  // Members belong to the name.
  const members = new Map(live.members)
  live.members.clear()
  for (const [key, member] of next.members) live.members.set(key, member)
  next.members.clear()
  for (const [key, member] of members) next.members.set(key, member)
}

/** For held events, the latest decision in the live version counts. */
function takeRevisions(live: Subscribed, next: Subscribed): void {
  for (const row of next.partitions) {
    for (const position of row.held.keys()) {
      const place = `${position}/${row.partition}`
      const isKnown = live.partitions[row.partition]?.letters.has(position)
      if (isKnown) next.revisions.delete(place)
      const said = live.revisions.get(place)
      if (said && !next.revisions.has(place)) next.revisions.set(place, said)
    }
  }
}

/** Events that were discarded in the live version are discarded here too, when their turn comes; a lane with such a head is due. */
function takeEndings(live: Subscribed, next: Subscribed): void {
  for (const row of next.partitions) {
    for (const [position, letter] of row.held) {
      const known = live.partitions[row.partition]?.letters.get(position)
      if (!known || !isLeftOut(known)) continue
      const lane = next.lanes.get(letter.lane)
      const isHead = lane?.hold?.status === 'parked' && lane.hold.headPosition === position
      if (isHead && lane.hold) {
        const { dueAt: _dueAt, ...hold } = lane.hold
        next.lanes.set(letter.lane, { ...lane, hold: { ...hold, status: 'retrying' } })
      }
      const { endedBy = '', endedReason } = known
      putLetter(row, { ...letter, endedBy, endedReason, status: isHead ? 'retrying' : letter.status })
    }
  }
}

/** A letter held in both versions keeps the earlier time and the attempts of both. */
function takeHistory(live: Subscribed, next: Subscribed): void {
  for (const row of next.partitions) {
    for (const [position, letter] of row.held) {
      const known = live.partitions[row.partition]?.held.get(position)
      if (!known) continue
      const attempts = joinAttempts(known.attempts, letter.attempts)
      const both = known.attempts.length + letter.attempts.length - attempts.length
      putLetter(row, {
        ...letter,
        heldAt: Math.min(known.heldAt, letter.heldAt),
        attempts: keepAttempts(attempts),
        attemptsTotal: known.attemptsTotal + letter.attemptsTotal - both,
      })
    }
  }
  for (const [name, lane] of next.lanes) {
    const known = live.lanes.get(name)?.hold
    if (lane.hold && known?.headPosition === lane.hold.headPosition)
      next.lanes.set(name, { ...lane, hold: { ...lane.hold, since: Math.min(known.since, lane.hold.since) } })
  }
}

function renameTables({ tables }: State, live: Subscribed, next: Subscribed): void {
  const [liveTable, nextTable] = [live.table, next.table]
  const rows = liveTable && tables.get(liveTable.name)
  const rebuilt = nextTable && tables.get(nextTable.name)
  if (liveTable) tables.delete(liveTable.name)
  if (nextTable) tables.delete(nextTable.name)
  if (liveTable) {
    const kept = generationTableName(liveTable.name, live.version)
    live.table = { ...liveTable, name: kept }
    tables.set(kept, rows as RowTable)
  }
  if (nextTable) {
    const taken = nextTable.name.slice(0, -generationTableName('', next.version).length)
    next.table = { ...nextTable, name: taken }
    tables.set(taken, rebuilt as RowTable)
  }
}
