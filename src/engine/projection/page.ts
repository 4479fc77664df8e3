import type { RecordedEvent } from '../../event/event.ts'
import { holdsUp } from '../held/blocking-lane.ts'
import { readEvent, recordOf, relevanceOf } from '../../subscription/interpret.ts'
import type { Outcome } from '../outcome/ledger.ts'
import { type Partition, sequenceIn, versionIn } from '../ownership/partition.ts'
import { functionOf, type Item, letterName, noRefusals, type Performing, type Refusals, Work } from './work.ts'

/**
 * Processes the next events of the source. Each event gets exactly one outcome, so the counts add up to the number of events taken:
 * all of them, or those up to the first that blocks the partition. Nothing is written here: the result stays in memory until the commit,
 * and a failed commit discards it.
 */
export async function processPage(
  partition: Partition,
  records: readonly RecordedEvent[],
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const work = new Work(partition, refusals)
  const items = await sortOut(partition, records, work)
  await loadMissing(partition, items)
  const present = await lettersPresent(partition, items)
  for (const item of items) work.take(item, present)
  return work.outcome()
}

/**
 * The same for a SQL projection, inside the committing transaction. Without savepoints, the first event that fails throws a
 * `GuiltyEvent` and the transaction rolls back. With savepoints, one per event, only the lane of the failed event is held, and no
 * other event is blamed.
 */
export async function performPage(
  partition: Partition,
  records: readonly RecordedEvent[],
  performing: Performing,
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const work = new Work(partition, refusals)
  for (const item of await sortOut(partition, records, work)) await work.perform(item, performing)
  return work.outcome()
}

async function sortOut(partition: Partition, records: readonly RecordedEvent[], work: Work): Promise<Item[]> {
  const { subscription, watchesGaps, held, rows, decided } = partition
  const laneIsKey = subscription.consumer.keyOf === undefined
  const items: Item[] = []
  for (const record of records) {
    const relevance = relevanceOf(subscription, record)
    if (relevance === 'unknown') work.ledger.unknown(record)
    const found = functionOf(subscription, relevance)
    if (relevance === 'outside' || (found === undefined && !watchesGaps)) {
      work.ledger.filtered()
      continue
    }
    const decision = decided?.get(record.position)
    if (decision?.decision === 'discarded') {
      work.discard(record, laneIsKey ? record.key : (await readEvent(subscription, record)).lane, decision.ending)
      continue
    }
    const revision = decision?.revision
    const hold = laneIsKey ? held.get(record.key) : undefined
    if (hold && hold.status !== 'waiting') {
      items.push({ record, lane: record.key, apply: undefined, reading: undefined, folding: undefined, revision })
      continue
    }
    const answer = found === undefined ? undefined : readEvent(subscription, recordOf({ event: record, revision }))
    const reading = answer instanceof Promise ? await answer : answer
    const lane = reading?.lane ?? record.key
    const apply = found === 'none' ? undefined : found
    items.push({ record, lane, apply, reading, folding: rows.get(lane), revision })
    // The event may affect any row, so no later event may be taken.
    if (reading?.failure && holdsUp(subscription, lane)) break
  }
  return items
}

/**
 * Loads the rows that the events may change, except for lanes in which everything will queue. The first event of a key in our own log
 * has no row yet; if another writer created one, the commit refuses to overwrite it.
 */
async function loadMissing(partition: Partition, items: readonly Item[]): Promise<void> {
  const { rows, held, subscription } = partition
  const missing = new Set<string>()
  for (const { record, lane, folding } of items) {
    if (folding || (held.get(lane)?.status ?? 'waiting') !== 'waiting') continue
    if (!subscription.source && versionIn(partition, record) === 1) rows.begin(lane)
    else if (!rows.get(lane)) missing.add(lane)
  }
  await rows.load([...missing])
}

/** Which of the events to queue are already queued. Our own log never repeats events. */
async function lettersPresent(partition: Partition, items: readonly Item[]): Promise<Set<string>> {
  const { store, subscription, held } = partition
  if (!subscription.source) return new Set()
  const refs = items
    .filter(({ lane }) => held.has(lane))
    .map(({ lane, record }) => ({ lane, sequence: sequenceIn(partition, record), eventId: record.id }))
  const found = refs.length === 0 ? [] : await store.letters.present(subscription.name, refs)
  return new Set(found.map(({ lane, sequence, eventId }) => letterName(lane, sequence, eventId)))
}
