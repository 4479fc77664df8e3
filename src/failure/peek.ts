/**
 * Functions that inspect a thrown value: null, a throwing proxy, a throwing getter. They never throw, because they run on the way
 * to the dead letter, and an error would lose the event.
 */
export function field(value: unknown, name: PropertyKey): unknown {
  try {
    return (value as Record<PropertyKey, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }
}

/** A string that JSON and databases can store: PostgreSQL refuses a text with U+0000, and the whole commit with it. */
export function storable(value: string): string {
  return value.toWellFormed().replaceAll('\0', '\uFFFD')
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? storable(value) : undefined
}

/** The message of an error; undefined if there is none. */
export function messageOf(error: unknown): string | undefined {
  return text(field(error, 'message'))
}

const mostMembers = 16

/** The errors of an AggregateError, or of a similar object. */
export function membersOf(error: unknown): unknown[] {
  const errors = field(error, 'errors')
  try {
    return Array.isArray(errors) ? errors.slice(0, mostMembers) : []
  } catch {
    return []
  }
}

/** Limits a list, which may be infinite or contain infinite lists. */
const mostPrinted = 100

export function printed(value: unknown): string {
  try {
    return storable(
      String(
        Array.isArray(value)
          ? Array.from({ length: Math.min(value.length, mostPrinted) }, (_, i) => shown(value[i]))
          : value,
      ),
    )
  } catch {
    return 'a value that cannot be shown as text'
  }
}

function shown(item: unknown): unknown {
  return Array.isArray(item) ? '[…]' : item
}

export function cut(value: string, longest: number): string {
  return value.length > longest ? `${value.slice(0, longest).toWellFormed()}…` : value
}

/** Whether it is an Error, also of another realm. */
export function isError(value: unknown): boolean {
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
  } catch {
    return false
  }
}

/** `instanceof` for values that may throw at it. */
export function isA<T>(value: unknown, kind: abstract new (...args: never) => T): value is T {
  try {
    return value instanceof kind
  } catch {
    return false
  }
}

/**
 * Handles the rejection of a promise that was returned where none is allowed. The result is refused anyway, but an unhandled
 * rejection would end the process.
 */
export function disarm(returned: unknown): void {
  if (typeof field(returned, 'then') !== 'function') return
  try {
    Promise.resolve(returned).catch(() => undefined)
  } catch {
    // A promise whose `constructor` throws can't be handled.
  }
}
