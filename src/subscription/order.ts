import { HoldfastError } from '../errors.ts'
import type { HandlerOrder } from '../handler/handler.ts'

/** The stored facts about a handler whose code has another order than the recorded one. */
export interface OrderFacts {
  /** The recorded order; undefined for a handler from before orders were recorded. */
  readonly recorded: HandlerOrder | undefined
  /** The number of held lanes, and how many of them are lanes of a key: the head is an event of the key that names the lane. */
  readonly lanes: number
  readonly keyedLanes: number
  /** A live process that owns one of its partitions. */
  readonly owner: string | undefined
}

/**
 * Throws if a handler can't continue with another order. A lane is named by its key, or has a name per event: if both were mixed,
 * later events of a key would not wait for a held one. So no lane may be held, and no running process may hold lanes of the old
 * kind.
 *
 * Without a recorded order, the held lanes determine it. One lane of a key means `key`, because the order of later events depends
 * on it; `key` and `partition` name their lanes alike, so both can continue. The order of a live owner is not checked: during a
 * rolling upgrade it may be a program from before orders were recorded, and most likely has the same one.
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
    `The process ${owner} runs ${name} with order: '${recorded}', but this program has order: '${order}'.`,
    { hint: `Stop all processes with the old order first. ${orNewName}` },
  )
}

/** For a process whose order was replaced while it runs. */
export function orderReplaced(name: string, recorded: HandlerOrder, order: HandlerOrder): HoldfastError {
  return new HoldfastError(
    'ORDER_CHANGED',
    `Another process changed ${name} to order: '${recorded}', but this program has order: '${order}'.`,
    { hint: 'The subscription stopped. Restart this program with the new order.' },
  )
}

function stillHeld(name: string, from: HandlerOrder, to: HandlerOrder, lanes: number): HoldfastError {
  const many = lanes === 1 ? '1 lane is' : `${lanes} lanes are`
  return new HoldfastError(
    'ORDER_CHANGED',
    `${many} held for ${name} with order: '${from}', but this program has order: '${to}'.`,
    {
      hint: `Run it with order: '${from}' until they are redriven or discarded, then change the order. ${orNewName}`,
    },
  )
}

const orNewName = 'Or give the handler a new name, with from: { position } as its start.'
