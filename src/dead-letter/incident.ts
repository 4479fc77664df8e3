import type { Failure, FailureClass } from '../failure/failure.ts'

/**
 *     open       letters with this fingerprint are held
 *     regressed  all earlier letters had ended, and new ones are held
 *     resolved   no letter is held any more
 */
export type IncidentState = 'open' | 'regressed' | 'resolved'

/** Letters of a subscription with the same failure. */
export interface Incident {
  readonly subscription: string
  readonly fingerprint: string
  readonly state: IncidentState
  readonly class: FailureClass
  /** The failure of the newest letter. */
  readonly errorType: string
  readonly message: string
  /** Milliseconds since 1970. Includes purged letters. */
  readonly firstSeen: number
  readonly lastSeen: number
  /** How many letters were ever held, including purged ones. `held`: how many are held now. */
  readonly letters: number
  readonly held: number
  /** How many lanes they hold now. */
  readonly lanes: number
  /** The positions of the newest letters, as examples. */
  readonly samples: readonly number[]
}

/** Computed from the number of held letters, the time since the first of them is held, and the time of the last end. */
export function incidentState(
  held: number,
  heldSince: number | undefined,
  lastEnded: number | undefined,
): IncidentState {
  if (held === 0) return 'resolved'
  return lastEnded !== undefined && heldSince !== undefined && heldSince > lastEnded ? 'regressed' : 'open'
}

/** An incident as a query returns it. */
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

/** `newest`: the letters that failed last. `failure`: the failure of the first of them. */
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
