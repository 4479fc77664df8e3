import type { Failure, FailureClass } from '../failure/failure.ts'

/**
 *     open       letters with this fingerprint are held
 *     regressed  all that were had come to an end, and now there are new ones
 *     resolved   none is held any more
 */
export type IncidentState = 'open' | 'regressed' | 'resolved'

/** Letters of a subscription that failed alike. */
export interface Incident {
  readonly subscription: string
  readonly fingerprint: string
  readonly state: IncidentState
  readonly class: FailureClass
  /** Of the newest of them. */
  readonly errorType: string
  readonly message: string
  /** Milliseconds since 1970; also of letters that were purged. */
  readonly firstSeen: number
  readonly lastSeen: number
  /** How many were ever held, purged ones too, and how many of them still are. */
  readonly letters: number
  readonly held: number
  /** How many lanes they hold up now. */
  readonly lanes: number
  /** The positions of the newest, for a look at one. */
  readonly samples: readonly number[]
}

/** By how many are held, since when the first of those is, and when the last was ended. */
export function incidentState(
  held: number,
  heldSince: number | undefined,
  lastEnded: number | undefined,
): IncidentState {
  if (held === 0) return 'resolved'
  return lastEnded !== undefined && heldSince !== undefined && heldSince > lastEnded ? 'regressed' : 'open'
}

/** An incident as a query gives it. */
export interface IncidentRow {
  readonly fingerprint: string
  readonly letters: number
  readonly held: number
  readonly lanes: number
  readonly firstSeen: number
  readonly lastSeen: number
  readonly lastEnded: number | null
  readonly heldSince: number | null
}

/** `newest`: the letters that failed last; `failure`: that of the first of them. */
export function toIncident(
  subscription: string,
  { lastEnded, heldSince, ...row }: IncidentRow,
  newest: readonly { readonly position: number; readonly class: FailureClass }[],
  failure: Failure | undefined,
): Incident {
  return {
    subscription,
    ...row,
    state: incidentState(row.held, heldSince ?? undefined, lastEnded ?? undefined),
    class: newest[0]?.class ?? 'unknown',
    errorType: failure?.errorType ?? '',
    message: failure?.message ?? '',
    samples: newest.map(({ position }) => position),
  }
}
