import type { HeldLane } from '../../dead-letter/letter.ts'
import { HoldfastError } from '../../errors.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import { unknownRow } from '../../subscription/interpret.ts'
import type { NextState } from '../ownership/subscription-state.ts'

/**
 * Whether a held lane blocks its whole partition: no later event starts before the lane is released. That is the case if the order is
 * that of the partition, or if an event can't be read and so may affect any row. Later events stay in the source and are not copied
 * into letters, because there may be millions of them.
 */
export function holdsUp({ consumer }: Subscription, lane: string): boolean {
  if (consumer.kind === 'handler') return consumer.order === 'partition'
  return consumer.keyOf !== undefined && lane === unknownRow
}

/** The lane that blocks the partition, if there is one. Called for every page, so it does not scan all held lanes. */
export function heldUpBy({ consumer }: Subscription, held: ReadonlyMap<string, HeldLane>): HeldLane | undefined {
  if (consumer.kind !== 'handler') return consumer.keyOf && held.get(unknownRow)
  const [first] = consumer.order === 'partition' ? held.values() : []
  return first
}

export function heldUpState({ name, beside }: Subscription, { headPosition, status }: HeldLane): NextState {
  // Operators can act only on the live version.
  const whatToDo =
    beside === undefined
      ? 'Fix the cause and redrive it, edit it, or discard it'
      : `Fix the code, or, if ${beside} holds it too, discard it there; then drop this version and rebuild it`
  const error = new HoldfastError(
    'SUBSCRIPTION_BLOCKED',
    `${name} is blocked: its event at position ${headPosition} is ${status}, and all later events wait for it.`,
    { hint: `${whatToDo}. To see it: holdfast dlq show ${name} ${headPosition}` },
  )
  return { state: 'blocked', by: 'order', error, attempts: 0, retryAt: undefined }
}
