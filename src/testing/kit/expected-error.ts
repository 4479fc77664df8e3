import { HoldfastError } from '../../errors.ts'

/** The name of its class, its `code`, or a pattern for its message. */
export type ExpectedError = string | RegExp

/** Without it, any error would match. */
export function checkExpectedError(error: unknown): asserts error is ExpectedError {
  if (typeof error === 'string' || error instanceof RegExp) return
  throw new HoldfastError('OPTION_INVALID', `The expected error is ${String(error)}.`, {
    hint: "Give the name of its class, its code, or a pattern for its message: 'RangeError', /only 30/.",
  })
}

export interface ErrorTraits {
  readonly type: string
  readonly code: string | null
  readonly message: string
}

export function isExpectedError({ type, code, message }: ErrorTraits, expected: ExpectedError): boolean {
  return typeof expected === 'string' ? type === expected || code === expected : expected.test(message)
}

export function traitsOf(thrown: unknown): ErrorTraits {
  if (!(thrown instanceof Error)) return { type: typeof thrown, code: null, message: String(thrown) }
  const { code } = thrown as { code?: unknown }
  return { type: thrown.name, code: typeof code === 'string' ? code : null, message: thrown.message }
}

export function named({ type, code, message }: ErrorTraits): string {
  return `${type}${code === null || code === type ? '' : ` (${code})`}: ${message}`
}
