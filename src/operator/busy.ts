import type { DeadLetter } from '../dead-letter/letter.ts'
import type { LaneSummary } from '../dead-letter/letter-store.ts'
import { HoldfastError } from '../errors.ts'
import type { Redrive, RedriveRequest } from '../redrive/redrive.ts'
import { count } from '../runtime/count.ts'
import { headsOf } from './heads.ts'
import { titleOf } from './letters.ts'
import type { OperatorParts } from './parts.ts'

/** A lane that was started has the id of its redrive. For a lane that was not, search the running redrives. */
export async function redriveOf(
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

/** Another redrive has all selected lanes. The error names it, unless it has ended since. */
export async function redriveBusy(
  parts: OperatorParts,
  { subscription, act, filter }: Pick<RedriveRequest, 'subscription' | 'act' | 'filter'>,
  busy: number,
): Promise<HoldfastError> {
  const redrive = await redriveOfFirst(parts, { subscription, act, filter })
  const [lanes, where, such] =
    busy === 1
      ? [`The selected lane of ${subscription} is`, 'another redrive', ': ']
      : [`All ${count(busy)} selected lanes of ${subscription} are`, 'other redrives', ', such as ']
  const named = redrive === undefined ? '' : `${such}${redrive.id}`
  return new HoldfastError('REDRIVE_BUSY', `${lanes} in ${where}${named}. Nothing was done.`, {
    hint: redrive === undefined ? `holdfast redrives list ${subscription}` : waysOf(redrive),
  })
}

async function redriveOfFirst(
  parts: OperatorParts,
  { subscription, act, filter }: Pick<RedriveRequest, 'subscription' | 'act' | 'filter'>,
): Promise<Redrive | undefined> {
  const known = parts.subscriptions.get(subscription)
  if (!known) return undefined
  for await (const head of headsOf(parts.store, known, act, filter)) {
    const lane = await parts.store.letters.lane(subscription, head.lane)
    return lane && redriveOf(parts, subscription, lane)
  }
  return undefined
}

/** The letter can't be edited now: its lane is in a redrive, or is tried again, or waits for a version. */
export async function letterBusy(parts: OperatorParts, letter: DeadLetter): Promise<HoldfastError> {
  const { subscription, event } = letter
  const lane = await parts.store.letters.lane(subscription, letter.lane)
  const redrive = lane && (await redriveOf(parts, subscription, lane))
  if (redrive)
    return new HoldfastError('LETTER_BUSY', `${titleOf(letter)} is in the redrive ${redrive.id}.`, {
      hint: waysOf(redrive),
    })
  if (lane?.status === 'waiting' && lane.breaker === undefined)
    return new HoldfastError(
      'LETTER_BUSY',
      `${titleOf(letter)} can't be edited while its lane waits for version ${(lane.done ?? 0) + 1}.`,
      { hint: `If that will never come, skip it: holdfast dlq skip ${subscription} ${lane.headPosition} --dry-run` },
    )
  return new HoldfastError(
    'LETTER_BUSY',
    `${titleOf(letter)} is about to be tried. It can be edited while its lane is parked or waits for a breaker.`,
    { hint: `Wait for the attempt: holdfast dlq show ${subscription} ${event.position}` },
  )
}

/** What an operator can do about a redrive that is in the way. */
function waysOf({ id }: Redrive): string {
  return `holdfast redrives show ${id}, or: holdfast redrives cancel ${id} --reason "<why>"`
}
