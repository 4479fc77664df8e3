import type { LetterQueue, QueueLimits } from '../../dead-letter/letter-store.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { readEvent, recordOf, relevanceOf } from '../../subscription/interpret.ts'
import type { Outcome } from '../outcome/ledger.ts'
import type { Partition } from '../ownership/partition.ts'
import { endsHead, type WholeTask } from '../held/redrive-tasks.ts'
import { functionOf, type Item, noRefusals, type Performing, type Refusals, Work } from './work.ts'

/** Held lanes to process in one commit. */
export interface LaneBatch {
  readonly lanes: readonly string[]
  /** The redrive tasks of some of them, by lane. */
  readonly tasks: ReadonlyMap<string, RedriveTask>
  /** Lanes whose queued letters are all ended, by lane, also if another batch or a previous owner started them. */
  readonly wholes?: ReadonlyMap<string, WholeTask>
  /** Tasks whose lane has changed since the redrive was requested. */
  readonly passed: readonly RedriveTask[]
  readonly limits: QueueLimits
  /** Lanes of which only one letter is taken, so that a failure can be attributed to it. */
  readonly singles: ReadonlySet<string>
}

/** The loaded letters of a lane, and the first letter that was not loaded. */
export interface LoadedLane {
  readonly lane: string
  readonly items: readonly Item[]
  readonly next: LetterQueue['next']
}

/** Loads as many lanes of a batch as the limits allow, and the rows of all of them in one query. */
export async function loadLanes(partition: Partition, batch: LaneBatch): Promise<LoadedLane[]> {
  const { store, subscription, share, rows } = partition
  if (batch.lanes.length === 0) return []
  const queues = await store.letters.queues(subscription.name, share.partition, batch.lanes, batch.limits)
  const loaded: LoadedLane[] = []
  const missing = new Set<string>()
  for (const queue of queues) {
    const { lane, letters, next } = batch.singles.has(queue.lane) ? single(queue) : queue
    const items: Item[] = []
    if (!rows.get(lane)) missing.add(lane)
    for (const letter of letters) {
      const { endedBy: by, endedReason: reason = '' } = letter
      const ending = by === undefined ? undefined : { by, reason }
      const record = recordOf(letter)
      const found = functionOf(subscription, relevanceOf(subscription, record))
      const answer = found === undefined ? undefined : readEvent(subscription, record)
      const reading = answer instanceof Promise ? await answer : answer
      if (reading && !rows.get(reading.lane)) missing.add(reading.lane)
      items.push({ record, lane, apply: found === 'none' ? undefined : found, reading, folding: undefined, ending })
    }
    loaded.push({ lane, items, next })
  }
  await rows.load([...missing])
  return loaded.map(({ lane, items, next }) => ({
    lane,
    items: items.map((item) => ({ ...item, folding: rows.get(item.reading?.lane ?? lane) })),
    next,
  }))
}

/**
 * Processes the letters of held lanes in order. A lane stops at the first letter that fails (it is parked) or whose predecessor is
 * missing (it waits); later letters of the lane stay queued, and other lanes are not affected. The user's SQL runs inside the committing
 * transaction, with or without savepoints, see `performPage`.
 */
export async function processLanes(
  partition: Partition,
  { tasks, wholes, passed }: Pick<LaneBatch, 'tasks' | 'wholes' | 'passed'>,
  loaded: readonly LoadedLane[],
  performing?: Performing,
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const work = new Work(partition, refusals)
  for (const task of passed) work.ledger.notStarted(task)
  for (const { lane, items, next } of loaded) {
    const task = tasks.get(lane)
    work.begin(task)
    const [head, ...behind] = items
    const isLeftOut = task !== undefined && head !== undefined && endsHead(task)
    if (isLeftOut) work.leaveOut(head, task, task.act)
    let isThrough = true
    const whole = wholes?.get(lane)
    for (const item of isLeftOut ? behind : items) {
      if (whole && item.record.position <= whole.until) isThrough = work.leaveOutNext(item, whole)
      else if (item.ending) work.leaveOut(item, item.ending)
      else isThrough = await work.release(item, performing)
      if (!isThrough) break
    }
    if (isThrough) work.ledger.advance(lane, next)
  }
  return work.outcome()
}

/** Records that a redrive starts a lane, before its letters are tried, and which tasks no longer apply. */
export function beginLane(partition: Partition, task: RedriveTask, passed: readonly RedriveTask[]): Outcome {
  const work = new Work(partition, noRefusals)
  for (const other of passed) work.ledger.notStarted(other)
  work.ledger.begin(task)
  return work.outcome()
}

function single({ lane, letters: [first, second], next }: LetterQueue): LetterQueue {
  const behind = second && { sequence: second.sequence, position: second.event.position }
  return { lane, letters: first ? [first] : [], next: behind ?? next }
}
