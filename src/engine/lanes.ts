import type { LetterQueue, QueueLimits } from '../dead-letter/letter-store.ts'
import type { RedriveTask } from '../redrive/redrive.ts'
import { readEvent, recordOf, relevanceOf } from './interpret.ts'
import type { Partition } from './partition.ts'
import { endsHead } from './redriving.ts'
import { functionOf, type Item, noRefusals, type Outcome, type Performing, type Refusals, Work } from './work.ts'

/** Held lanes whose turn it is, to be taken with one commit. */
export interface LaneBatch {
  readonly lanes: readonly string[]
  /** What people want of some of them, by lane. */
  readonly tasks: ReadonlyMap<string, RedriveTask>
  /** Those that are not as they were when somebody wanted them to be let go. */
  readonly passed: readonly RedriveTask[]
  readonly limits: QueueLimits
  /** Lanes of which one letter is taken and no more, so that it is clear which of them is to blame for something. */
  readonly singles: ReadonlySet<string>
}

/** The letters of a lane, read, and the first of those that are for another time. */
export interface LoadedLane {
  readonly lane: string
  readonly items: readonly Item[]
  readonly next: LetterQueue['next']
}

/** Loads what a batch needs: as many of its lanes as the limits leave room for, and the rows of all of them at once. */
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
 * Takes the letters of held lanes, in order, as far as they go. A lane stops at the first that fails, which is parked, or whose
 * predecessor is missing, which waits; the rest stay behind it, and the other lanes go on. SQL of the user's own runs inside the
 * transaction that will commit it, boldly or carefully, see `performPage`.
 */
export async function processLanes(
  partition: Partition,
  { tasks, passed }: Pick<LaneBatch, 'tasks' | 'passed'>,
  loaded: readonly LoadedLane[],
  performing?: Performing,
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const work = new Work(partition, refusals)
  for (const task of passed) work.pass(task)
  for (const { lane, items, next } of loaded) {
    const task = tasks.get(lane)
    work.begin(lane, task)
    const [head, ...behind] = items
    const isLeftOut = task !== undefined && head !== undefined && endsHead(task)
    if (isLeftOut) work.leaveOut(head, task, task.act)
    let isThrough = true
    for (const item of isLeftOut ? behind : items) {
      if (item.ending) work.leaveOut(item, item.ending)
      else isThrough = await work.release(item, performing)
      if (!isThrough) break
    }
    if (isThrough) work.advance(lane, next)
  }
  return work.outcome()
}

/** A lane that a person lets go, before anything of it is tried, and those that can't be. */
export function beginLane(partition: Partition, task: RedriveTask, passed: readonly RedriveTask[]): Outcome {
  const work = new Work(partition, noRefusals)
  for (const other of passed) work.pass(other)
  work.letGo(task)
  return work.outcome()
}

function single({ lane, letters: [first, second], next }: LetterQueue): LetterQueue {
  const behind = second && { sequence: second.sequence, position: second.event.position }
  return { lane, letters: first ? [first] : [], next: behind ?? next }
}
