import type { Failure } from '../failure/failure.ts'
import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { Redrive, RedriveLaneState } from '../redrive/redrive.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import type { OperatorParts } from './parts.ts'

/** The progress of a redrive. */
export interface RedriveProgressReport {
  readonly redrive: Redrive
  readonly isOver: boolean
  /** Lanes that have ended. */
  readonly lanesDone: number
  readonly lanes: number
  /** Letters processed so far. The rates are averages of about the last 10 seconds. */
  readonly letters: number
  readonly lettersPerSecond: number
  readonly lanesPerSecond: number
  /** The remaining lanes divided by `lanesPerSecond`. Undefined if no lane ended lately. */
  readonly etaSeconds: number | undefined
}

export interface WatchOptions {
  /** The interval between reports. Default: `500ms`. */
  readonly every?: Duration
  /** Stops watching. The redrive continues. */
  readonly signal?: AbortSignal
}

/** A lane of a redrive, with the failure of its head. */
export interface RedriveLaneReport {
  readonly ordinal: number
  readonly lane: string
  readonly partition: number
  /** The position of its head when the redrive was recorded. */
  readonly position: number
  readonly state: RedriveLaneState
  readonly letters: number
  /** The position that holds the lane now. Only for a failed or deferred lane; undefined if it was released since. */
  readonly headPosition: number | undefined
  readonly failure: Failure | undefined
  /** The letter that holds the lane. `redactFailure` needs its payload. */
  readonly head: DeadLetter | undefined
}

export async function findRedrive({ store }: OperatorParts, id: string): Promise<Redrive> {
  const redrive = typeof id === 'string' ? await store.redrives.find(id) : undefined
  if (redrive) return redrive
  throw new HoldfastError('REDRIVE_UNKNOWN', `The redrive ${JSON.stringify(id)} does not exist.`, {
    hint: 'Find it: holdfast redrives list',
  })
}

/** Lanes that were running when the redrive was cancelled are still completed. */
export function isOver({ status, byState }: Redrive): boolean {
  return status !== 'running' && byState.running === 0
}

/** Long enough to smooth single commits, short enough to show that a redrive has stalled. */
const windowMs = 10_000

interface Sample {
  readonly at: number
  readonly lanes: number
  readonly letters: number
}

export async function* watchRedrive(
  parts: OperatorParts,
  id: string,
  options: WatchOptions = {},
): AsyncGenerator<RedriveProgressReport> {
  checkOptions(options, 'watch', ['every', 'signal'])
  const { every = '500ms', signal } = options
  const everyMs = toMs(every, 'every')
  const { clock, timers } = parts.runtime
  const samples: Sample[] = []
  while (signal?.aborted !== true) {
    const redrive = await findRedrive(parts, id)
    const { lanes, letters, byState } = redrive
    const lanesDone = lanes - byState.pending - byState.running
    const now = { at: clock.mono(), lanes: lanesDone, letters }
    samples.push(now)
    while (samples.length > 2 && now.at - (samples[1] as Sample).at >= windowMs) samples.shift()
    const [first = now] = samples
    const seconds = (now.at - first.at) / 1_000
    const lanesPerSecond = seconds > 0 ? (now.lanes - first.lanes) / seconds : 0
    const isDone = isOver(redrive)
    yield {
      redrive,
      isOver: isDone,
      lanesDone,
      lanes,
      letters,
      lettersPerSecond: seconds > 0 ? (now.letters - first.letters) / seconds : 0,
      lanesPerSecond,
      etaSeconds: isDone ? 0 : lanesPerSecond > 0 ? (lanes - lanesDone) / lanesPerSecond : undefined,
    }
    if (isDone) return
    await timers.sleep(everyMs, signal)
  }
}

export async function redriveLanes(
  parts: OperatorParts,
  id: string,
  query: { readonly state?: RedriveLaneState; readonly after?: number; readonly limit?: number } = {},
): Promise<readonly RedriveLaneReport[]> {
  checkOptions(query, 'redriveLanes', ['state', 'after', 'limit'])
  const { state, after = 0, limit = 100 } = query
  const { letters, redrives } = parts.store
  const { subscription } = await findRedrive(parts, id)
  const lanes = await redrives.lanes(
    id,
    state,
    whole(after, 'after', 0, Number.MAX_SAFE_INTEGER),
    whole(limit, 'limit', 1, 1_000),
  )
  const reports: RedriveLaneReport[] = []
  for (const { ordinal, lane, partition, position, state: at, letters: ended } of lanes) {
    // Not for completed lanes: a redrive can have a hundred thousand of them.
    const held = at === 'failed' || at === 'deferred' ? await letters.lane(subscription, lane) : undefined
    const [head] = held ? await letters.list({ subscription, partition, position: held.headPosition, limit: 1 }) : []
    reports.push({
      ordinal,
      lane,
      partition,
      position,
      state: at,
      letters: ended,
      headPosition: held?.headPosition,
      failure: head?.failure,
      head,
    })
  }
  return reports
}
