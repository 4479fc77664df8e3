import type { LetterFilter } from '../../dead-letter/letter-store.ts'
import { isStorable } from '../../postgres/rows.ts'
import type { Letter } from './state.ts'

/** Whether all conditions hold for a letter. */
export function matches(letter: Letter, filter: LetterFilter): boolean {
  const { lane, partition, position, status, type, fingerprint, since, until, text } = filter
  const { event, failure, heldAt } = letter
  const isSame = <T>(wanted: T | undefined, actual: T | undefined) => wanted === undefined || wanted === actual
  return (
    // Such a text can't be in a database.
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

function hasText({ lane, event, attempts }: Letter, text: string): boolean {
  const isIn = (whole: string, part: string) => lower(whole).includes(lower(part))
  // Failures are kept in JSON, so that is how it is written there. Without any there is nothing to look into.
  const known = attempts.length > 0 ? JSON.stringify(attempts) : undefined
  const escaped = JSON.stringify(text).slice(1, -1)
  return isIn(lane, text) || isIn(event.id, text) || (known !== undefined && isIn(known, escaped))
}

/** Only the letters of ASCII, as the databases do it. */
function lower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
