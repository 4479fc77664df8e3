import type { DeadLetter, Revision } from '../dead-letter/letter.ts'
import type { LaneSummary, LetterName } from '../dead-letter/letter-store.ts'
import { foldStack, type StackFrames } from '../dead-letter/stack.ts'
import { readEvent, recordOf } from '../subscription/interpret.ts'
import { parseBody, type RecordedEvent } from '../event/event.ts'
import type { Redrive } from '../redrive/redrive.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { redriveOf } from './busy.ts'
import { findLetter } from './letters.ts'
import { whole } from '../runtime/options.ts'
import type { OperatorParts } from './parts.ts'

/** The data after schema and upcasts, as the code receives it; or the reason why it cannot be read. */
export type Decoded = { readonly data: unknown } | { readonly problem: string }

/** All information about a letter, including payload values. For output without values, see `shapeOf` and `redactFailure`. */
export interface LetterView {
  readonly letter: DeadLetter
  /** The data that is processed: the newest revision, or the original event. */
  readonly decoded: Decoded
  /** The data of the original event. The same as `decoded` without a revision. */
  readonly original: Decoded
  /** The stack of the last failure, without frames of Holdfast and Node.js. Undefined without a failure. */
  readonly stack: StackFrames | undefined
  /** Undefined if the lane is not held. */
  readonly lane: LaneSummary | undefined
  readonly isHead: boolean
  /** The next letters of the same lane. */
  readonly behind: readonly DeadLetter[]
  readonly revisions: readonly (Revision & { readonly isTakenBack: boolean })[]
  /** The running redrive that contains its lane. */
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

/** If this program does not have the subscription, and so no schema: the parsed JSON. */
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

/** Reads from the head of the lane. In a long lane, the successors of a letter far from the head are not found. */
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
