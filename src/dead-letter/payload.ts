import { parseBody, type RecordedEvent } from '../event/event.ts'
import type { DeadLetter, Revision } from './letter.ts'

/**
 * The private parts of an event, for `redact` and `redactFailure`: its data, its metadata and its revision. An attempt can quote an earlier or
 * undone revision: give `revisions` of `operator.letter()`, too.
 */
export function payloadOf({
  event,
  revision,
  revisions = [],
}: {
  readonly event: Pick<RecordedEvent, 'body' | 'metadata'>
  readonly revision?: DeadLetter['revision']
  readonly revisions?: readonly Pick<Revision, 'body'>[]
}): unknown {
  return [
    tryParse(event.body),
    event.metadata === undefined ? undefined : tryParse(event.metadata),
    revision && tryParse(revision.body),
    ...revisions.map(({ body }) => tryParse(body)),
  ]
}

const latin1 = new TextDecoder('latin1')

/** A body that is not valid JSON counts as one value. */
function tryParse(body: string | Uint8Array): unknown {
  try {
    return parseBody(body)
  } catch {
    return typeof body === 'string' ? body : latin1.decode(body)
  }
}
