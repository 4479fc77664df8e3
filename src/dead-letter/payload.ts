import { parseBody, type RecordedEvent } from '../event/event.ts'
import type { DeadLetter } from './letter.ts'

/** The private parts of an event, for `redact` and `redactFailure`: its data, its metadata and its revision. */
export function payloadOf({
  event,
  revision,
}: {
  readonly event: Pick<RecordedEvent, 'body' | 'metadata'>
  readonly revision?: DeadLetter['revision']
}): unknown {
  return [
    tryParse(event.body),
    event.metadata === undefined ? undefined : tryParse(event.metadata),
    revision && tryParse(revision.body),
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
