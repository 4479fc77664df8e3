import { HoldfastError } from '../errors.ts'
import { refuseBeside } from '../rebuild/live.ts'
import type { RedriveAct, RedriveRequest } from '../redrive/redrive.ts'
import type { Selected } from '../redrive/selected.ts'
import { many } from '../runtime/count.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import { atMoment } from './moment.ts'
import { redriveBusy } from './busy.ts'
import { digestOf, type OperatorParts } from './parts.ts'
import { type ActOptions, type Asked, checkNamed, filterOf, type Selection, throughOf } from './selection.ts'

/** Small first stages: a fault that all letters share shows at the first one. */
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
  const wanted: RedriveRequest = {
    id: parts.nextId(),
    subscription,
    act,
    filter: filterOf(selection),
    through: throughOf(act, selection),
    by: parts.by,
    reason: parts.reasonOf(options.reason),
    at: Math.floor(parts.runtime.clock.now()),
    expected: digestOf(expected, 'operator.select'),
    rate: rateOf(rate),
    stages: stagesOf(canary),
    maxFailures:
      maxFailures === undefined ? canary && 0 : whole(maxFailures, 'maxFailures', 0, Number.MAX_SAFE_INTEGER),
  }
  refuseBeside(subscription)
  const perform = async (after?: number) => {
    await parts.partitionsOf(subscription)
    await checkNamed(parts, subscription, act, selection)
    return parts.store.redrives.ask({ ...wanted, after })
  }
  // Read the newest redrive before anything else, so that lanes which a later act takes are excluded. With `expected` the digest does that.
  const asked = await (expected === undefined ? atMoment(parts.store.redrives, subscription, perform) : perform())
  switch (asked.outcome) {
    case 'asked':
      return { redrive: asked.redrive, busy: asked.busy }
    case 'changed':
      throw new HoldfastError(
        'REDRIVE_CHANGED',
        `The selection of ${subscription} changed after the digest was computed: it now has ${many(asked.lanes, 'lane')}. Nothing was done.`,
        { hint: 'Select again, check what changed, and act with the new digest.' },
      )
    case 'nothing':
      throw await nothingToDo(parts, wanted, asked.busy)
    default:
      return asked satisfies never
  }
}

/** The lanes that an act would change now, with the digest for `expected`. */
export async function select(
  parts: OperatorParts,
  subscription: string,
  act: RedriveAct,
  selection: Selection,
): Promise<Selected> {
  const filter = filterOf(selection)
  const through = throughOf(act, selection)
  refuseBeside(subscription)
  await parts.partitionsOf(subscription)
  return parts.store.redrives.select({ subscription, act, filter, through })
}

export async function nothingToDo(
  parts: OperatorParts,
  wanting: Pick<RedriveRequest, 'subscription' | 'act' | 'filter'>,
  busy: number,
): Promise<HoldfastError> {
  if (busy > 0) return redriveBusy(parts, wanting, busy)
  const { subscription, act } = wanting
  const { lanes, byStatus } = await parts.store.letters.stats(subscription)
  if (lanes === 0)
    return new HoldfastError('REDRIVE_NOTHING', `No lane of ${subscription} is held. Nothing was done.`, {
      hint: `holdfast dlq list ${subscription} --all`,
    })
  const held = (['parked', 'retrying', 'waiting'] as const).map((status) => `${byStatus[status] ?? 0} ${status}`)
  const wanted = {
    redrive: 'that is parked or retrying',
    discard: 'that is parked, retrying or waiting for a breaker',
    resolve: 'that is parked, retrying or waiting for a breaker',
    skip: 'that waits for a version',
  }[act]
  return new HoldfastError(
    'REDRIVE_NOTHING',
    `No selected lane of ${subscription} has a head ${wanted}. It has ${many(lanes, 'held lane')}: ${held.join(', ')}.`,
    { hint: `holdfast dlq list ${subscription}` },
  )
}

function rateOf(rate: number | undefined): number | undefined {
  if (rate === undefined || (typeof rate === 'number' && Number.isFinite(rate) && rate > 0)) return rate
  throw new HoldfastError('OPTION_INVALID', `rate is ${String(rate)}.`, { hint: 'Give letters per second, above 0.' })
}

/** Turns the size of each stage into the total number of lanes up to that stage. */
function stagesOf(canary: ActOptions['canary']): number[] {
  if (canary === undefined) return []
  const sizes: unknown = canary === true ? canarySizes : canary
  if (!Array.isArray(sizes) || sizes.length === 0 || sizes.length > 100)
    throw new HoldfastError('OPTION_INVALID', 'canary must be true or a list of 1 to 100 stage sizes.', {
      hint: 'Give true, or a list such as [1, 2, 5, 20].',
    })
  let all = 0
  return sizes.map((size) => (all += whole(size, 'A stage of canary', 1, 1_000_000_000)))
}
