/** Fields that hold times, in milliseconds since 1970. */
const timeFields = new Set([
  'at',
  'since',
  'until',
  'heldAt',
  'endedAt',
  'endedBefore',
  'openedAt',
  'reopensAt',
  'retryAt',
  'retiredAt',
  'dueAt',
  'firstSeen',
  'lastSeen',
  'oldest',
])

/** A time as ISO 8601; null if it is absent or infinite. */
export function iso(ms: number | undefined): string | null {
  return ms === undefined || !Number.isFinite(ms) ? null : new Date(ms).toISOString()
}

/** Converts all times of a value to ISO 8601. Not for values that contain payloads: a payload field may have the same name. */
export function withIsoTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withIsoTimes)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      typeof inner === 'number' && timeFields.has(name) ? iso(inner) : withIsoTimes(inner),
    ]),
  )
}
