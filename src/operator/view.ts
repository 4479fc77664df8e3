import type { DeadLetter, Revision } from '../dead-letter/letter.ts'
import type { LaneSummary, LetterName } from '../dead-letter/letter-store.ts'
import { foldStack, type StackFrames } from '../dead-letter/stack.ts'
import { readEvent, recordOf } from '../engine/interpret.ts'
import { parseBody, type RecordedEvent } from '../event/event.ts'
import type { Redrive } from '../redrive/redrive.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { findLetter } from './letters.ts'
import { type OperatorParts, whole } from './parts.ts'

/** The data as the code sees it, by the schema and its upcasts; or why it does not come so far. */
export type Decoded = { readonly data: unknown } | { readonly problem: string }

/** Everything there is to know of a letter. It has values of the payload in it: see `shapeOf` and `redactFailure` for what has none. */
export interface LetterView {
  readonly letter: DeadLetter
  /** Of what is tried: the newest revision, or the event as it came. */
  readonly decoded: Decoded
  /** Of the event as it came; the same where there is no revision. */
  readonly original: Decoded
  /** Of the last failure, with our own frames and Node's folded; undefined without one. */
  readonly stack: StackFrames | undefined
  /** As it stands; undefined when it flows. */
  readonly lane: LaneSummary | undefined
  readonly isHead: boolean
  /** The first that are queued behind it. */
  readonly behind: readonly DeadLetter[]
  readonly revisions: readonly (Revision & { readonly isTakenBack: boolean })[]
  /** The running redrive that is letting its lane go. */
  readonly redrive: Redrive | undefined
}

const mostBytes = 16_777_216

export async function viewLetter(
  parts: OperatorParts,
  name: LetterName,
  { behind = 10 }: { readonly behind?: number } = {},
): Promise<LetterView> {
  const { store, subscriptions } = parts
  const most = whole(behind, 'behind', 0, 1_000)
  const letter = await findLetter(store, name)
  const { subscription, partition, event, revision, failure } = letter
  const isHeld = letter.endedAt === undefined
  const lane = isHeld ? await store.letters.lane(subscription, letter.lane) : undefined
  const known = subscriptions.get(subscription)
  const original = await decode(known, event)
  return {
    letter,
    original,
    decoded: revision ? await decode(known, recordOf(letter)) : original,
    stack: failure && foldStack(failure),
    lane,
    isHead: lane?.headPosition === event.position,
    behind: lane ? await queuedBehind(parts, letter, most) : [],
    revisions: await store.letters.revisions({ subscription, partition, position: event.position }),
    redrive: lane && (await redriveOf(parts, subscription, lane)),
  }
}

/** Without the program that has the schema, the plain JSON. */
async function decode(subscription: Subscription | undefined, record: RecordedEvent): Promise<Decoded> {
  if (subscription) {
    const { event, failure } = await readEvent(subscription, record)
    return event ? { data: event.data } : { problem: failure.message }
  }
  try {
    return { data: parseBody(record.body) }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : 'The body can not be read.' }
  }
}

/** By the lane's own order, from its head: what stands behind a letter in the middle of a long lane is not looked for. */
async function queuedBehind(
  { store }: OperatorParts,
  { subscription, partition, lane, sequence, event }: DeadLetter,
  most: number,
): Promise<readonly DeadLetter[]> {
  if (most === 0) return []
  const events = most + 1
  const [queue] = await store.letters.queues(subscription, partition, [lane], {
    events,
    bytes: mostBytes,
    perLane: events,
  })
  const letters = queue?.letters ?? []
  const isBehind = (other: DeadLetter) =>
    other.sequence > sequence || (other.sequence === sequence && other.event.position > event.position)
  return letters.filter(isBehind).slice(0, most)
}

/** One that was begun has its name in the lane; one whose turn has not come yet is looked for among those that run. */
async function redriveOf(
  { store }: OperatorParts,
  subscription: string,
  { lane, redrive }: LaneSummary,
): Promise<Redrive | undefined> {
  if (redrive !== undefined) return store.redrives.find(redrive)
  const running = (await store.redrives.list({ subscription, limit: 20 })).filter(({ status }) => status === 'running')
  for (const candidate of running) {
    let after = 0
    for (;;) {
      const lanes = await store.redrives.lanes(candidate.id, 'pending', after, 1_000)
      if (lanes.some((other) => other.lane === lane)) return candidate
      const last = lanes.at(-1)
      if (!last || lanes.length < 1_000) break
      after = last.ordinal
    }
  }
  return undefined
}
