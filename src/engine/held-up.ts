import type { HeldLane } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { unknownRow } from './interpret.ts'
import type { NextState } from './state.ts'

/**
 * Whether a held lane holds up its whole partition, so that nothing behind it is begun before it is released. That is so where the
 * order is that of the partition, and where an event can't be read and so may be about any row. Later events stay in the source and
 * are not copied into letters: there may be millions of them.
 */
export function holdsUp({ consumer }: Subscription, lane: string): boolean {
  if (consumer.kind === 'handler') return consumer.order === 'partition'
  return consumer.keyOf !== undefined && lane === unknownRow
}

/** The lane that holds up the partition, if there is one. Asked with every page, so it does not look through all held lanes. */
export function heldUpBy({ consumer }: Subscription, held: ReadonlyMap<string, HeldLane>): HeldLane | undefined {
  if (consumer.kind !== 'handler') return consumer.keyOf && held.get(unknownRow)
  const [first] = consumer.order === 'partition' ? held.values() : []
  return first
}

export function heldUpState({ name, beside }: Subscription, { headPosition, status }: HeldLane): NextState {
  // Operators act on the live version only.
  const whatToDo =
    beside === undefined
      ? 'Fix the cause and redrive it, edit it, or discard it'
      : `Fix the code, or, if ${beside} holds it too, discard it there; then drop this version and rebuild it`
  const error = new HoldfastError(
    'SUBSCRIPTION_BLOCKED',
    `${name} is blocked: its event at position ${headPosition} is ${status}, and all later events have to wait for it.`,
    { hint: `${whatToDo}. holdfast dlq show ${name} ${headPosition} shows it.` },
  )
  return { state: 'blocked', by: 'order', error, attempts: 0, retryAt: undefined }
}
