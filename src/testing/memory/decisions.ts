import type { Revision } from '../../dead-letter/letter.ts'
import type { Decision } from '../../rebuild/rebuild-store.ts'
import { revisionOf } from './letters.ts'
import { lettersOf, type Letter, type State } from './state.ts'

/** An operator discarded or resolved it; or this is still to be done here, because the decision was made in the previous version. */
export function isLeftOut({ status, endedAt, endedBy, endedReason }: Letter): boolean {
  if (endedAt === undefined) return endedBy !== undefined
  return status === 'discarded' || (status === 'resolved' && endedReason !== undefined)
}

export function decisionsOf(
  state: State,
  subscription: string,
  partition: number,
  after: number,
  through: number,
): readonly Decision[] {
  const subscribed = state.subscriptions.get(subscription)
  return lettersOf(state, subscription).flatMap((letter): Decision[] => {
    const { position } = letter.event
    if (letter.partition !== partition || position <= after || position > through) return []
    const revision: Revision | undefined = revisionOf(subscribed, letter)
    // An event that was edited and then discarded is not applied.
    if (isLeftOut(letter)) {
      const ending = { by: letter.endedBy ?? '', reason: letter.endedReason ?? '' }
      return [{ decision: 'discarded', position, ending }]
    }
    return revision ? [{ decision: 'revised', position, revision }] : []
  })
}

/**
 * An event that the generation holds can still be decided; one that it has passed without a letter, or with other data, can't.
 * This includes events that it passed with a revision that was undone later.
 */
export function straysOf(state: State, subscription: string, generation: string): readonly number[] {
  const live = state.subscriptions.get(subscription)
  const next = state.subscriptions.get(generation)
  if (!live || !next) return []
  return lettersOf(state, subscription).flatMap((letter) => {
    const { partition, event } = letter
    const row = next.partitions[partition]
    if (!row || event.position > row.checkpoint.position) return []
    const own = row.letters.get(event.position)
    const [body, other] = [live, next].map((one) => revisionOf(one, letter)?.body)
    if (!isLeftOut(letter) && body === undefined && other === undefined) return []
    return isStray(letter, own, body, other) ? [event.position] : []
  })
}

function isStray(
  letter: Letter,
  own: Letter | undefined,
  body: string | undefined,
  other: string | undefined,
): boolean {
  if (!own) return true
  if (own.endedAt === undefined) return false
  if (isLeftOut(letter)) return own.status !== 'discarded' && own.endedReason === undefined
  return body !== other
}
