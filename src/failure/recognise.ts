import { errorCodes, HoldfastError, StoreError } from '../errors.ts'
import type { Classified } from './classify.ts'
import { byAbort, byCode } from './codes.ts'
import { bySqlite, bySqlState } from './databases.ts'
import type { FailureClass } from './failure.ts'
import { byHttp } from './http.ts'
import { field, isA, isError, text } from './peek.ts'

/** Errors of our own that are neither the event's fault nor the program's. All others that are no `StoreError` are permanent. */
export const ownErrors: Readonly<Record<string, FailureClass>> = {
  EXPECTED_VERSION: 'transient',
  BREAKER_OPEN: 'dependency',
  INTERNAL: 'unknown',
}

/**
 * Certainly the program's. A SyntaxError is not among them: it is what JSON.parse says of the half answer of somebody who is just
 * being restarted.
 */
export const bugs = ['TypeError', 'ReferenceError', 'RangeError', 'URIError', 'EvalError'] as const

/** What we know about a single error, without its causes. */
export function byOurs(error: unknown, now: number): Classified | undefined {
  return (
    byHoldfast(error) ??
    bySqlite(error) ??
    bySqlState(error) ??
    byHttp(error, now) ??
    byAbort(error) ??
    byCode(error) ??
    bySchema(error) ??
    byBug(error)
  )
}

function byHoldfast(error: unknown): Classified | undefined {
  const code = text(field(error, 'code'))
  if (code === undefined || !isOurs(error, code)) return undefined
  const isStores = isA(error, StoreError) || field(error, 'name') === 'StoreError'
  return {
    // A store that was closed is no exception: it is closed when the program ends, and an event that is caught by that must stay.
    class: isStores
      ? 'infrastructure'
      : Object.hasOwn(ownErrors, code)
        ? (ownErrors[code] as FailureClass)
        : 'permanent',
    rule: 'holdfast',
    evidence: code,
  }
}

const ourNames = ['HoldfastError', 'InvalidEventError', 'ExpectedVersionError', 'EventIdConflictError', 'StoreError']

/** Also those of another copy of this package. INTERNAL alone is anybody's code. */
function isOurs(error: unknown, code: string): boolean {
  if (isA(error, HoldfastError)) return true
  const name = text(field(error, 'name')) ?? ''
  return ourNames.includes(name) && (errorCodes as readonly string[]).includes(code)
}

/** Data that does not fit its schema: zod, valibot, and whoever else keeps to Standard Schema. */
function bySchema(error: unknown): Classified | undefined {
  const issues = field(error, 'issues')
  const first = isList(issues) ? field(issues, 0) : undefined
  const path = field(first, 'path')
  if (typeof field(first, 'message') !== 'string' || !(path === undefined || isList(path))) return undefined
  const count = field(issues, 'length')
  return { class: 'permanent', rule: 'schema', evidence: typeof count === 'number' ? `issues: ${count}` : null }
}

/**
 * With a cause it is not certain any more: `TypeError: fetch failed` is how fetch says that the network failed, and its cause
 * tells how.
 */
function byBug(error: unknown): Classified | undefined {
  const name = field(error, 'name')
  const bug = bugs.find((known) => known === name)
  if (!bug || !isError(error) || (field(error, 'cause') ?? undefined) !== undefined) return undefined
  return { class: 'permanent', rule: 'bug', evidence: bug }
}

function isList(value: unknown): boolean {
  try {
    return Array.isArray(value)
  } catch {
    return false
  }
}
