import type { Deed } from '../audit/audit.ts'
import { EventIdConflictError } from '../errors.ts'
import type { AppendOutcome } from './log-store.ts'

/** What the transaction of an append counts for its deed. */
export function appendCounts(
  { version, position }: Extract<AppendOutcome, { outcome: 'appended' | 'repeated' }>,
  events: number,
): Deed['details'] {
  return { position, versionBefore: version - events, versionAfter: version }
}

/** The same where a log was empty before. */
export function firstCounts(events: number): Deed['details'] {
  return { eventsBefore: 0, eventsAfter: events }
}

/** Into an empty log everything goes, but for an id that stands there twice. */
export function mustBeAppended(outcome: AppendOutcome, id: string): void {
  if (outcome.outcome === 'appended') return
  const why = outcome.outcome === 'id-conflict' ? outcome.why : 'it stands there twice'
  throw new EventIdConflictError(id, why)
}
