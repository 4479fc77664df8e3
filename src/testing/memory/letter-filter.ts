import type { LetterFilter } from '../../dead-letter/letter-store.ts'
import { hasText } from '../../dead-letter/searchable.ts'
import { isStorable } from '../../event/storable.ts'
import type { Letter } from './state.ts'

/** Whether a letter matches all conditions. */
export function matches(letter: Letter, filter: LetterFilter): boolean {
  const { lane, partition, position, status, type, fingerprint, since, until, text } = filter
  const { event, failure, heldAt } = letter
  const isSame = <T>(wanted: T | undefined, actual: T | undefined) => wanted === undefined || wanted === actual
  return (
    // Such a text can't be stored in a database.
    [lane, type, fingerprint, text].every((one) => one === undefined || isStorable(one)) &&
    isSame(lane, letter.logged ? event.key : letter.lane) &&
    isSame(partition, letter.partition) &&
    isSame(position, event.position) &&
    isSame(status, letter.status) &&
    isSame(type, event.type) &&
    isSame(filter.class, failure?.class) &&
    isSame(fingerprint, failure?.fingerprint) &&
    (since === undefined || heldAt >= since) &&
    (until === undefined || heldAt < until) &&
    (text === undefined || hasText(letter, text))
  )
}
