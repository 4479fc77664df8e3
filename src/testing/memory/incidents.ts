import { type Incident, incidentState } from '../../dead-letter/incident.ts'
import type { LetterStore } from '../../dead-letter/letter-store.ts'
import { lettersOf, compareText, type Letter, type State } from './state.ts'

const mostSamples = 3

/** Existing and purged letters. */
export function incidentsOf(
  state: State,
  { subscription, fingerprint, open = false, limit }: Parameters<LetterStore['incidents']>[0],
): readonly Incident[] {
  const failed = lettersOf(state, subscription).filter(({ failure }) => failure !== undefined)
  const ofFingerprint = Map.groupBy(failed, ({ failure }) => failure?.fingerprint ?? '')
  const purged = state.subscriptions.get(subscription)?.incidents ?? new Map()
  return [...new Set([...ofFingerprint.keys(), ...purged.keys()])]
    .filter((one) => fingerprint === undefined || one === fingerprint)
    .map((one) => incidentOf(state, subscription, one, ofFingerprint.get(one) ?? []))
    .filter(({ held }) => held > 0 || !open)
    .toSorted((a, b) => b.lastSeen - a.lastSeen || compareText(a.fingerprint, b.fingerprint))
    .slice(0, limit)
}

function incidentOf(state: State, subscription: string, fingerprint: string, letters: readonly Letter[]): Incident {
  const purged = state.subscriptions.get(subscription)?.incidents.get(fingerprint)
  const held = letters.filter(({ endedAt }) => endedAt === undefined)
  const newest = letters
    .toSorted((a, b) => seenAt(b) - seenAt(a) || b.event.position - a.event.position)
    .slice(0, mostSamples)
  const failure = newest[0]?.failure
  const ends = [...letters.map(({ endedAt }) => endedAt), purged?.lastEnded].filter((at) => at !== undefined)
  const firsts = [...letters.map(({ heldAt }) => heldAt), ...(purged ? [purged.firstSeen] : [])]
  const lasts = [...letters.map(seenAt), ...(purged ? [purged.lastSeen] : [])]
  const heldSince = held.length > 0 ? Math.min(...held.map(({ heldAt }) => heldAt)) : undefined
  return {
    subscription,
    fingerprint,
    state: incidentState(held.length, heldSince, ends.length > 0 ? Math.max(...ends) : undefined),
    class: failure?.class ?? 'unknown',
    errorType: failure?.errorType ?? '',
    message: failure?.message ?? '',
    firstSeen: Math.min(...firsts),
    lastSeen: Math.max(...lasts),
    letters: letters.length + (purged?.letters ?? 0),
    held: held.length,
    lanes: new Set(held.map(({ lane }) => lane)).size,
    samples: newest.map(({ event }) => event.position),
  }
}

/** The time of the last attempt. */
export function seenAt({ attempts, heldAt }: Letter): number {
  return attempts.at(-1)?.at ?? heldAt
}
