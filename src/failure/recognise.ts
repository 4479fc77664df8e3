import { errorCodes, HoldfastError, StoreError } from '../errors.ts'
import type { Classified } from './classify.ts'
import { byAbort, byCode } from './codes.ts'
import { bySqlite, bySqlState } from './databases.ts'
import type { FailureClass } from './failure.ts'
import { byHttp } from './http.ts'
import { field, isA, isError, text } from './peek.ts'

/** Our own errors that are caused neither by the event nor by the program. All others except `StoreError` are permanent. */
export const ownErrors: Readonly<Record<string, FailureClass>> = {
  EXPECTED_VERSION: 'transient',
  BREAKER_OPEN: 'dependency',
  INTERNAL: 'unknown',
}

/** Bugs of the program. SyntaxError is not included: JSON.parse throws it for a truncated response of a server that is restarting. */
export const bugs = ['TypeError', 'ReferenceError', 'RangeError', 'URIError', 'EvalError'] as const

/** Classifies a single error, without its causes. */
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
    // Including a closed store: it is closed when the program ends, and an event that runs at that moment must not be parked.
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

/** Also errors of another copy of this package. The code INTERNAL alone is not specific enough. */
function isOurs(error: unknown, code: string): boolean {
  if (isA(error, HoldfastError)) return true
  const name = text(field(error, 'name')) ?? ''
  return ourNames.includes(name) && (errorCodes as readonly string[]).includes(code)
}

/** Data that does not match its schema: zod, valibot, and other Standard Schema libraries. */
function bySchema(error: unknown): Classified | undefined {
  const issues = field(error, 'issues')
  const first = isList(issues) ? field(issues, 0) : undefined
  const path = field(first, 'path')
  if (typeof field(first, 'message') !== 'string' || !(path === undefined || isList(path))) return undefined
  const count = field(issues, 'length')
  return { class: 'permanent', rule: 'schema', evidence: typeof count === 'number' ? `issues: ${count}` : null }
}

/** With a cause it is uncertain: fetch throws `TypeError: fetch failed` when the network fails, and the cause has the reason. */
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
