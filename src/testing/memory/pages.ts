import type { RecordedEvent } from '../../event/event.ts'
import type { Lag, LogPage, PageLimits } from '../../log/log-store.ts'
import type { Share } from '../../source/share.ts'
import type { Entry, State } from './state.ts'

export interface Page {
  readonly events: readonly RecordedEvent[]
  /** There may be more in the requested range. */
  readonly isCut: boolean
}

/** The index of the first event above a position. */
function indexAfter(events: readonly Entry[], position: number): number {
  let low = 0
  let high = events.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((events[middle] as Entry).record.position <= position) low = middle + 1
    else high = middle
  }
  return low
}

/** Events above a position and up to another, as many as fit, at least one. */
export function pageOf({ events }: State, after: number, upTo: number, limits: PageLimits, share: Share): Page {
  const page: RecordedEvent[] = []
  let bytes = 0
  for (let i = indexAfter(events, after); i < events.length; i++) {
    const entry = events[i] as Entry
    if (entry.record.position > upTo) break
    if (!isOf(entry, share)) continue
    bytes += entry.bytes
    if (page.length > 0 && bytes > limits.bytes) return { events: page, isCut: true }
    page.push(entry.record)
    if (page.length >= limits.events) return { events: page, isCut: true }
  }
  return { events: page, isCut: false }
}

/** All visible events, including those after a gap. */
export function momentPage(state: State, after: number, limits: PageLimits, share: Share): LogPage {
  const top = topOf(state)
  if (top <= after) return { events: [], through: after }
  const { events, isCut } = pageOf(state, after, top, limits, share)
  return { events, through: isCut ? (events.at(-1)?.position ?? top) : top }
}

/** The last position that follows a given one without a gap. */
export function solidOf({ events }: State, settled: number): number {
  let solid = settled
  for (let i = indexAfter(events, settled); events[i]?.record.position === solid + 1; i++) solid++
  return solid
}

export function topOf({ events }: State): number {
  return events.at(-1)?.record.position ?? 0
}

export function entryAt({ events }: State, position: number): Entry | undefined {
  const entry = events[indexAfter(events, position - 1)]
  return entry?.record.position === position ? entry : undefined
}

/** Whether there is an event of a share above one position and up to another. */
export function hasBetween({ events }: State, after: number, upTo: number, share: Share): boolean {
  for (let i = indexAfter(events, after); i < events.length; i++) {
    const entry = events[i] as Entry
    if (entry.record.position > upTo) return false
    if (isOf(entry, share)) return true
  }
  return false
}

export function lagOf({ events }: State, after: number, share: Share): Lag {
  let count = 0
  let since: number | undefined
  for (let i = indexAfter(events, after); i < events.length; i++) {
    const entry = events[i] as Entry
    if (!isOf(entry, share)) continue
    count++
    since ??= entry.appendedAt
  }
  return { events: count, since }
}

/** Events of a key after a version, as many as fit. */
export function keyPage(
  { byKey }: State,
  key: string,
  afterVersion: number,
  limits: PageLimits,
): readonly RecordedEvent[] {
  const page: RecordedEvent[] = []
  let bytes = 0
  // Versions are 1, 2, 3, … without gaps.
  for (const entry of (byKey.get(key) ?? []).slice(Math.max(0, afterVersion))) {
    bytes += entry.bytes
    if (page.length > 0 && (bytes > limits.bytes || page.length === limits.events)) break
    page.push(entry.record)
  }
  return page
}

function isOf({ slot }: Entry, { partition, of }: Share): boolean {
  return of === 1 || slot % of === partition
}
