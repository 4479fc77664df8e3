import { HoldfastError } from '../errors.ts'
import type { HandlerOrder } from '../handler/handler.ts'

/** What a store has of a handler whose code has another order than the one that is recorded. */
export interface OrderFacts {
  /** The one that is recorded; undefined for one that was made before orders were. */
  readonly recorded: HandlerOrder | undefined
  /** How many lanes are held, and how many of them are those of a key: the head is an event of the key that the lane is named by. */
  readonly lanes: number
  readonly keyedLanes: number
  /** A process that owns one of its partitions and is alive. */
  readonly owner: string | undefined
}

/**
 * Throws where a handler can't go on with another order. A lane has the name of its key, or one of its own for each event: were they
 * mixed, later events of a key would not wait for what is held of it. So nothing may be held, and no process may go on to hold lanes of
 * the old kind.
 *
 * Without a recorded order the held lanes tell it. One lane of a key is enough to say `key`, because there the order of later events is at
 * stake; `key` and `partition` name their lanes alike, so either goes on. A live owner is not asked about its order: it may be a program from
 * before orders were recorded, in the middle of a rolling upgrade, and most likely has the same one.
 */
export function checkOrder(
  name: string,
  order: HandlerOrder,
  { recorded, lanes, keyedLanes, owner }: OrderFacts,
): void {
  if (recorded === undefined) {
    const isKeyed = keyedLanes > 0
    if (lanes > 0 && isKeyed !== (order !== 'none')) throw stillHeld(name, isKeyed ? 'key' : 'none', order, lanes)
    return
  }
  if (recorded === order) return
  if (lanes > 0) throw stillHeld(name, recorded, order, lanes)
  if (owner === undefined) return
  throw new HoldfastError(
    'ORDER_CHANGED',
    `The process ${owner} runs ${name} with order: '${recorded}', and this program has order: '${order}'.`,
    { hint: `Stop every process that has the old order first. ${orNewName}` },
  )
}

/** For a process that finds its order replaced while it runs. */
export function orderReplaced(name: string, recorded: HandlerOrder, order: HandlerOrder): HoldfastError {
  return new HoldfastError(
    'ORDER_CHANGED',
    `${name} was changed to order: '${recorded}' by another process, and this program has order: '${order}'.`,
    { hint: 'It stops here. Start this program again with that order.' },
  )
}

function stillHeld(name: string, from: HandlerOrder, to: HandlerOrder, lanes: number): HoldfastError {
  const many = lanes === 1 ? '1 lane is' : `${lanes} lanes are`
  return new HoldfastError(
    'ORDER_CHANGED',
    `${many} held of ${name} with order: '${from}', and this program has order: '${to}'.`,
    {
      hint: `Run it with order: '${from}' until they are redriven or discarded, then change it. ${orNewName}`,
    },
  )
}

const orNewName = 'Or give the handler a new name, with from: { position } where it should begin.'
