import type { Deed } from '../audit/audit.ts'
import { EventIdConflictError } from '../errors.ts'
import type { AppendOutcome } from './log-store.ts'

/** The counts that an append adds to its audit entry. */
export function appendCounts(
  { version, position }: Extract<AppendOutcome, { outcome: 'appended' | 'repeated' }>,
  events: number,
): Deed['details'] {
  return { position, versionBefore: version - events, versionAfter: version }
}

/** The same for a log that was empty. */
export function firstCounts(events: number): Deed['details'] {
  return { eventsBefore: 0, eventsAfter: events }
}

/** An append to an empty log can only fail because of a repeated id. */
export function mustBeAppended(outcome: AppendOutcome, id: string): void {
  if (outcome.outcome === 'appended') return
  const why = outcome.outcome === 'id-conflict' ? outcome.why : 'it occurs twice'
  throw new EventIdConflictError(id, why)
}
