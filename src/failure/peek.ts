/**
 * Looking at what was thrown. It may be anything: null, a proxy that throws at every touch, a getter that does. None of these
 * functions ever throws, because all of this runs on the way to the dead letter, and an error there would lose the event.
 */
export function field(value: unknown, name: PropertyKey): unknown {
  try {
    return (value as Record<PropertyKey, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }
}

/** A string as JSON and databases can hold it: PostgreSQL refuses a text with a zero in it, and with it the whole commit. */
export function storable(value: string): string {
  return value.toWellFormed().replaceAll('\0', '\uFFFD')
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? storable(value) : undefined
}

/** What an error says; undefined for what says nothing. */
export function messageOf(error: unknown): string | undefined {
  return text(field(error, 'message'))
}

/** Of a list no more than anybody reads: it may have no end, and lists in it that have none either. */
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
    return 'something that can not be shown as text'
  }
}

function shown(item: unknown): unknown {
  return Array.isArray(item) ? '[…]' : item
}

export function cut(value: string, longest: number): string {
  return value.length > longest ? `${value.slice(0, longest).toWellFormed()}…` : value
}

/** Whether it is an Error, also one of another realm. */
export function isError(value: unknown): boolean {
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
  } catch {
    return false
  }
}

/** `instanceof`, of what may throw at that too. */
export function isA<T>(value: unknown, kind: abstract new (...args: never) => T): value is T {
  try {
    return value instanceof kind
  } catch {
    return false
  }
}

/**
 * Takes the sting out of a promise that was returned where none is wanted. It is refused in any case; but if nobody listens to it,
 * its rejection would end the process.
 */
export function disarm(returned: unknown): void {
  if (typeof field(returned, 'then') !== 'function') return
  try {
    Promise.resolve(returned).catch(() => undefined)
  } catch {
    // A promise whose `constructor` throws: nobody can listen to it.
  }
}
