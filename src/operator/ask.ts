import { HoldfastError } from '../errors.ts'
import { refuseBeside } from '../rebuild/live.ts'
import type { RedriveAct, RedriveRequest } from '../redrive/redrive.ts'
import { checkOptions } from '../runtime/options.ts'
import { type OperatorParts, whole } from './parts.ts'
import { type ActOptions, type Asked, checkNamed, filterOf, type Selection } from './selection.ts'

/** One, then two more, then five more, …: a fault that all letters share shows at the first. */
const canarySizes = [1, 2, 5, 20, 100, 1_000]

export async function ask(
  parts: OperatorParts,
  subscription: string,
  act: RedriveAct,
  selection: Selection,
  options: ActOptions,
): Promise<Asked> {
  checkOptions(options, act, ['reason', 'expected', 'rate', 'canary', 'maxFailures'])
  const { expected, rate, canary, maxFailures } = options
  const request: RedriveRequest = {
    id: parts.nextId(),
    subscription,
    act,
    filter: filterOf(selection),
    by: parts.by,
    reason: parts.reasonOf(options.reason),
    at: parts.runtime.clock.now(),
    expected: expected === undefined ? undefined : whole(expected, 'expected', 0, Number.MAX_SAFE_INTEGER),
    rate: rateOf(rate),
    stages: stagesOf(canary),
    maxFailures:
      maxFailures === undefined ? canary && 0 : whole(maxFailures, 'maxFailures', 0, Number.MAX_SAFE_INTEGER),
  }
  refuseBeside(subscription)
  await parts.partitionsOf(subscription)
  await checkNamed(parts, subscription, act, selection)
  const asked = await parts.store.redrives.ask(request)
  switch (asked.outcome) {
    case 'asked':
      return { redrive: asked.redrive, busy: asked.busy }
    case 'changed':
      throw new HoldfastError(
        'REDRIVE_CHANGED',
        `There are ${asked.lanes} lanes now, and ${request.expected} were seen. Nothing was done.`,
        { hint: 'Look again, and ask again.' },
      )
    case 'nothing':
      throw await nothingToDo(parts, request, asked.busy)
    default:
      return asked satisfies never
  }
}

/** How many lanes would be acted on. Nobody has ever seen -1 of them, so nothing is done. */
export async function count(
  parts: OperatorParts,
  subscription: string,
  act: RedriveAct,
  selection: Selection,
): Promise<number> {
  refuseBeside(subscription)
  await parts.partitionsOf(subscription)
  const asked = await parts.store.redrives.ask({
    id: parts.nextId(),
    subscription,
    act,
    filter: filterOf(selection),
    by: parts.by,
    reason: 'counted',
    at: parts.runtime.clock.now(),
    expected: -1,
    rate: undefined,
    stages: [],
    maxFailures: undefined,
  })
  if (asked.outcome === 'changed') return asked.lanes
  if (asked.outcome === 'nothing') return 0
  throw new HoldfastError('INTERNAL', 'A question was taken for a request.')
}

export async function nothingToDo(
  { store }: OperatorParts,
  { subscription, act }: Pick<RedriveRequest, 'subscription' | 'act'>,
  busy: number,
): Promise<HoldfastError> {
  if (busy > 0) {
    const many = busy === 1 ? 'The lane is' : `All ${busy} lanes are`
    return new HoldfastError('REDRIVE_BUSY', `${many} in another redrive of ${subscription} already.`, {
      hint: 'Watch that one, or cancel it.',
    })
  }
  const { lanes, byStatus } = await store.letters.stats(subscription)
  const held = (['parked', 'retrying', 'waiting'] as const).map((status) => `${byStatus[status] ?? 0} ${status}`)
  const wanted = {
    redrive: 'that is parked or retrying',
    discard: 'that is parked, retrying or waiting for a breaker',
    resolve: 'that is parked, retrying or waiting for a breaker',
    skip: 'that waits for a version',
  }[act]
  return new HoldfastError('REDRIVE_NOTHING', `No lane of ${subscription} has such a head ${wanted}.`, {
    hint: lanes === 0 ? 'None of its lanes is held.' : `It has ${lanes} held lanes: ${held.join(', ')}.`,
  })
}

function rateOf(rate: number | undefined): number | undefined {
  if (rate === undefined || (typeof rate === 'number' && Number.isFinite(rate) && rate > 0)) return rate
  throw new HoldfastError('OPTION_INVALID', `rate is ${String(rate)}.`, { hint: 'Give letters per second, above 0.' })
}

/** From the size of each stage to how many there may be in all. */
function stagesOf(canary: ActOptions['canary']): number[] {
  if (canary === undefined) return []
  const sizes: unknown = canary === true ? canarySizes : canary
  if (!Array.isArray(sizes) || sizes.length === 0 || sizes.length > 100)
    throw new HoldfastError('OPTION_INVALID', 'canary is neither true nor a list of sizes.', {
      hint: 'Give true, or such as [1, 2, 5, 20].',
    })
  let all = 0
  return sizes.map((size) => (all += whole(size, 'A stage of canary', 1, 1_000_000_000)))
}
