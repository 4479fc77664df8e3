import type { Classified } from './classify.ts'
import { disarm, field } from './peek.ts'

/** Exceptions from the rule: 4xx permanent, 5xx transient. */
export const httpStatuses = {
  transient: [408, 425, 429],
  permanent: [
    501, // not implemented: a repeated request fails too
    505, // not this version of HTTP
  ],
} as const

/** The limits for a `Retry-After`. Zero would be a busy loop, and a lane that waits for a week would look stuck. */
const shortestWaitMs = 1_000
export const longestWaitMs = 3_600_000

const mostHeaders = 256
const seconds = /^\d{1,12}(?:\.\d{1,6})?$/
// A date without a time zone would differ between machines.
const httpDate = /^[A-Za-z0-9 ,:-]{10,40} GMT$/

/** An unsuccessful response. Values below 400 are ignored: an exit code of a process is also in `status`. */
export function byHttp(error: unknown, now: number): Classified | undefined {
  const status = statusOf(error)
  if (status === undefined || status < 400) return undefined
  const retryAfterMs = askedToWait(error, now)
  const isTransient =
    includes(httpStatuses.transient, status) ||
    (status >= 500 && !includes(httpStatuses.permanent, status)) ||
    // A service that sends `Retry-After` expects a retry: some send 403 instead of 429.
    retryAfterMs !== undefined
  return {
    class: isTransient ? 'transient' : 'permanent',
    rule: 'http',
    evidence: `HTTP ${status}`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

/**
 * The delay that the service asked for. Only from a response with a status: a `retryAfter` elsewhere may be in milliseconds or
 * mean something else.
 */
export function askedToWait(error: unknown, now: number): number | undefined {
  if (statusOf(error) === undefined) return undefined
  const response = field(error, 'response')
  const asked =
    waitMs(field(error, 'retryAfter'), now) ??
    waitMs(header(field(error, 'headers')), now) ??
    waitMs(header(field(response, 'headers')), now)
  return asked === undefined ? undefined : Math.min(Math.max(Math.ceil(asked), shortestWaitMs), longestWaitMs)
}

function statusOf(error: unknown): number | undefined {
  const response = field(error, 'response')
  return [
    field(error, 'status'),
    field(error, 'statusCode'),
    field(response, 'status'),
    field(response, 'statusCode'),
  ].find(
    (status): status is number =>
      typeof status === 'number' && Number.isInteger(status) && status >= 100 && status <= 599,
  )
}

/** Seconds, or an HTTP date. */
function waitMs(value: unknown, now: number): number | undefined {
  if (typeof value === 'number') return value >= 0 ? value * 1_000 : undefined
  // Node returns a repeated header as an array.
  const first = typeof value === 'string' ? value : field(value, 0)
  if (typeof first !== 'string') return undefined
  const trimmed = first.slice(0, 64).trim()
  if (seconds.test(trimmed)) return Number(trimmed) * 1_000
  const at = httpDate.test(trimmed) ? Date.parse(trimmed) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0)
}

/** From a Headers object, a Map, or a plain object, in any letter case. */
function header(headers: unknown): unknown {
  if (typeof headers !== 'object' || headers === null) return undefined
  try {
    if (headers instanceof Map) return find(headers)
    const get = field(headers, 'get')
    const value: unknown = typeof get === 'function' ? get.call(headers, 'retry-after') : undefined
    disarm(value)
    return typeof value === 'string' || typeof value === 'number' ? value : find(Object.entries(headers))
  } catch {
    return undefined
  }
}

function find(entries: Iterable<readonly [unknown, unknown]>): unknown {
  let read = 0
  for (const [name, value] of entries) {
    if (typeof name === 'string' && name.toLowerCase() === 'retry-after') return value
    if (++read === mostHeaders) break
  }
  return undefined
}

function includes(list: readonly number[], status: number): boolean {
  return list.includes(status)
}
