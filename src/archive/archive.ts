import type { AuditEntry } from '../audit/audit.ts'
import type { BreakerRecord } from '../breaker/breaker-store.ts'
import type { DeadLetter, HeldLane, Revision } from '../dead-letter/letter.ts'
import type { RecordedEvent } from '../event/event.ts'
import type { InboxMark } from '../handler/inbox-store.ts'
import type { RowWrite, TableSpec } from '../projection/row-store.ts'
import type { Redrive, RedriveLane } from '../redrive/redrive.ts'
import type { StoredSubscription } from '../subscription/subscription-store.ts'

export interface ArchivedEvent extends RecordedEvent {
  /** When it was appended, in milliseconds since 1970. */
  readonly appendedAt: number
}

export interface ArchivedLane {
  readonly lane: string
  readonly partition: number
  readonly done: number | undefined
  readonly hold: HeldLane | undefined
}

/** Includes revisions that were undone. */
export interface ArchivedRevision extends Revision {
  readonly partition: number
  readonly position: number
  readonly isTakenBack: boolean
}

/** What remains of purged letters. */
export interface ArchivedIncident {
  readonly fingerprint: string
  readonly letters: number
  readonly firstSeen: number
  readonly lastSeen: number
  readonly lastEnded: number
}

/** Its lanes follow it. */
export interface ArchivedRedrive extends Omit<Redrive, 'byState' | 'letters'> {
  /** The number of partitions that its lanes belong to. */
  readonly spread: number
}

export interface ArchivedRedriveLane extends RedriveLane {
  readonly ordinal: number
}

/**
 * A part of the persistent content of a store. Parts come in this order: all subscriptions by name; all events by position; then
 * for each subscription its rows by key, its lanes by name, its letters by position and partition, their revisions in the same
 * order and by number, its incidents by fingerprint, its redrives in order of request, each followed by its lanes, and its inbox
 * marks by key. Breakers by name and the audit come last.
 */
export type ArchivePart =
  | { readonly part: 'subscription'; readonly subscription: StoredSubscription }
  | { readonly part: 'events'; readonly events: readonly ArchivedEvent[] }
  | {
      readonly part: 'rows'
      readonly subscription: string
      readonly table: TableSpec
      readonly rows: readonly RowWrite[]
    }
  | { readonly part: 'lanes'; readonly subscription: string; readonly lanes: readonly ArchivedLane[] }
  | { readonly part: 'letters'; readonly subscription: string; readonly letters: readonly DeadLetter[] }
  | { readonly part: 'revisions'; readonly subscription: string; readonly revisions: readonly ArchivedRevision[] }
  | { readonly part: 'incidents'; readonly subscription: string; readonly incidents: readonly ArchivedIncident[] }
  | { readonly part: 'redrive'; readonly subscription: string; readonly redrive: ArchivedRedrive }
  | { readonly part: 'redrive-lanes'; readonly subscription: string; readonly lanes: readonly ArchivedRedriveLane[] }
  | { readonly part: 'inbox'; readonly subscription: string; readonly marks: readonly InboxMark[] }
  | { readonly part: 'breakers'; readonly breakers: readonly BreakerRecord[] }
  | { readonly part: 'audit'; readonly entries: readonly AuditEntry[] }

export const archiveKinds = [
  'subscription',
  'event',
  'row',
  'lane',
  'letter',
  'revision',
  'incident',
  'redrive',
  'redriveLane',
  'mark',
  'breaker',
  'deed',
] as const

/** One item of an archive, in a form that can be compared. */
export interface ArchiveItem {
  readonly kind: (typeof archiveKinds)[number]
  readonly name: string
  readonly text: string
}

/** Owners of partitions are temporary and are not compared; everything else must be equal. */
export async function* itemsOf(parts: AsyncIterable<ArchivePart>): AsyncGenerator<ArchiveItem> {
  for await (const part of parts) {
    switch (part.part) {
      case 'subscription': {
        const { name, partitions, ...subscription } = part.subscription
        const states = partitions.map((state) => ({ ...state, owner: undefined }))
        yield item('subscription', name, { ...subscription, states })
        break
      }
      case 'events':
        for (const event of part.events) yield item('event', String(event.position), event)
        break
      case 'rows':
        for (const row of part.rows) yield item('row', `${part.subscription} ${row.key}`, row)
        break
      case 'lanes':
        for (const lane of part.lanes) yield item('lane', `${part.subscription} ${lane.lane}`, lane)
        break
      case 'letters':
        for (const letter of part.letters)
          yield item('letter', `${part.subscription} ${letter.partition} ${letter.event.position}`, letter)
        break
      case 'revisions':
        for (const revision of part.revisions) {
          const { partition, position, number } = revision
          yield item('revision', `${part.subscription} ${partition} ${position} ${number}`, revision)
        }
        break
      case 'incidents':
        for (const incident of part.incidents)
          yield item('incident', `${part.subscription} ${incident.fingerprint}`, incident)
        break
      case 'redrive':
        yield item('redrive', part.redrive.id, part.redrive)
        break
      case 'redrive-lanes':
        for (const lane of part.lanes) yield item('redriveLane', `${lane.redrive} ${lane.ordinal}`, lane)
        break
      case 'inbox':
        for (const mark of part.marks) yield item('mark', `${part.subscription} ${mark.key}`, mark)
        break
      case 'breakers':
        for (const breaker of part.breakers) yield item('breaker', breaker.name, breaker)
        break
      case 'audit':
        for (const entry of part.entries) yield item('deed', String(entry.number), entry)
        break
      default:
        part satisfies never
    }
  }
}

function item(kind: ArchiveItem['kind'], name: string, value: object): ArchiveItem {
  return { kind, name, text: canonical(value) }
}

/** Equal text for equal content: fields in order of name, without undefined fields, bytes as numbers. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner instanceof Uint8Array) return { bytes: Array.from(inner) }
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}
