import type { RecordedEvent } from '../event/event.ts'
import type { DeadLetter } from './letter.ts'

/** What is tried of a letter: the event as it came, with the data of its newest revision if it has one. */
export function triedEvent({ event, revision }: Pick<DeadLetter, 'event' | 'revision'>): RecordedEvent {
  return revision ? { ...event, body: revision.body } : event
}
