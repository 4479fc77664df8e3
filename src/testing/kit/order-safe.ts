import type { EventCatalog } from '../../event/catalog.ts'
import { checkOptions } from '../../runtime/options.ts'
import { Claim, firstDifference, shown } from './claim.ts'
import { checkEvents, type TestEvent } from './events.ts'
import { twice, worldFor } from './idempotent.ts'
import { allOrders, countOrders, pathBetween, someOrders } from './orders.ts'
import { explain, OutsideWatch } from './outside.ts'
import { differingKey, isSame, madeOf, type Play, play, type Played } from './play.ts'
import { mostOf, seedOf } from './seed.ts'
import type { Subject, World } from './world.ts'

export interface OrderSafeOptions<D> {
  /** The environment of a handler. A projection needs none: its rows are compared. */
  readonly world?: () => World<D>
  /** The maximum number of orders; if there are more, a random sample. Default: 50. */
  readonly most?: number
  /** The seed of the sample and of late answers. Default: HOLDFAST_SEED, or 1. */
  readonly seed?: number
}

const leastPlays = 10

/**
 * The events of one key come in order; those of different keys come in any order. This function runs the events in every possible
 * order, or in a sample, with some late answers from outside. The result of each key must be the same.
 */
export async function expectOrderSafe<C extends EventCatalog, D = undefined>(
  subject: Subject<C, D>,
  events: readonly TestEvent<NoInfer<C>>[],
  options: OrderSafeOptions<D> = {},
): Promise<void> {
  const claim = new Claim('expectOrderSafe')
  checkOptions(options, 'expectOrderSafe', ['world', 'most', 'seed'])
  const { world } = options
  const most = mostOf(options.most, 50)
  const seed = seedOf(options.seed)
  const all: readonly TestEvent[] = events
  const given: Play<D> = {
    subject,
    events: all,
    world: worldFor(subject, world),
    come: 'at once',
  }
  checkEvents(all, 'expectOrderSafe')
  // One for all runs, so that globals are replaced only once.
  using during = new DisposableStack()
  during.use(new OutsideWatch())
  const expected = await twice(claim, given)
  const inOrder = (order: readonly number[], lateSeed: number) =>
    play({ ...given, events: order.map((i) => all[i] as TestEvent), lateSeed })

  const keys = all.map(({ key }) => key)
  const orders = [...(countOrders(keys, most) > most ? someOrders(keys, most, seed) : allOrders(keys))]
  // If there are few orders, there are still many ways to delay answers.
  const plays = given.world ? Math.max(orders.length, Math.min(leastPlays, most)) : orders.length
  for (let i = 0; i < plays; i++) {
    const order = orders[i % orders.length] as readonly number[]
    const lateSeed = seed + i
    if (!isSame(expected, await inOrder(order, lateSeed))) await narrow(order, lateSeed)
  }

  /** Finds two orders that differ in one exchange of neighbours, between the given order and a failing one. */
  async function narrow(order: readonly number[], lateSeed: number): Promise<never> {
    const path = pathBetween(
      all.map((_, i) => i),
      order,
    )
    let before = { order: path[0] as readonly number[], played: expected }
    for (const next of path) {
      const played = await inOrder(next, lateSeed)
      if (!isSame(expected, played)) return deny(claim, all, before, { order: next, played }, seed)
      before = { order: next, played }
    }
    throw new Error('the last order of the path is the failing one')
  }
}

interface InOrder {
  readonly order: readonly number[]
  readonly played: Played
}

function deny(claim: Claim, events: readonly TestEvent[], one: InOrder, other: InOrder, seed: number): never {
  const key = differingKey(one.played, other.played) ?? ''
  const [before, after] = [madeOf(one.played, key), madeOf(other.played, key)]
  const place = one.order.findIndex((index, i) => index !== other.order[i])
  const names = (order: readonly number[]) => order.map((i) => `${events[i]?.key} ${events[i]?.type}`)
  const isLate = place < 0
  const [left, right] = [names(one.order)[place], names(one.order)[place + 1]]
  claim.fail(
    [
      isLate
        ? `${one.played.name} depends on when services answer: the result for ${key} differs.`
        : `${one.played.name} depends on the order of different keys: the result for ${key} differs when ${right} comes before ${left}.`,
      `  in the order  ${names(one.order).join(', ')}`,
      `  the result is ${shown(before)}`,
      `  in the order  ${names(other.order).join(', ')}${isLate ? ' (with late answers)' : ''}`,
      `  the result is ${shown(after)}`,
      `  ${firstDifference(before, after) ?? 'They are not equal'}.`,
      'Only the events of one key come in order: the result of a key must depend only on its own events.',
      `HOLDFAST_SEED=${seed} tries the same orders again.`,
      ...explain(other.played.outside, 'handler'),
    ],
    { expected: before, actual: after },
  )
}
