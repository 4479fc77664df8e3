import { HoldfastError } from '../errors.ts'
import { isStorable } from '../event/storable.ts'

/** Every store refuses the same: JSON that is valid can't contain these characters unescaped. */
export function checkRevision(body: string): void {
  if (isStorable(body)) return
  throw new HoldfastError('OPTION_INVALID', 'The edit has a character that cannot be stored.', {
    hint: 'In JSON, write U+0000 and lone surrogates as \\u0000 and \\ud800.',
  })
}
