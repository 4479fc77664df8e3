import type { ErrorCode } from '../errors.ts'
import { field, isA, messageOf, printed } from '../failure/peek.ts'
import { withoutSecrets } from './output/escape.ts'

/**
 * What only a command can say, beside the codes of `src/errors.ts`. They are stable, and stand in `docs/reference/cli.md` (a test
 * compares the two).
 */
export const commandCodes = [
  'USAGE',
  'NOT_FOUND',
  'NOT_CONFIRMED',
  'COUNT_CHANGED',
  'CONFIG_MISSING',
  'CONFIG_INVALID',
  'STORE_MISSING',
  'FILE_EXISTS',
  'INTERRUPTED',
  'FAILED',
] as const

export type CommandCode = (typeof commandCodes)[number]

/**
 *     0    done
 *     1    it failed
 *     2    it was called wrongly: an argument is missing, is none, or names nothing. Nothing was changed
 *     3    it was done, and found something that a person should see
 *     130  it was interrupted
 */
export type Exit = 0 | 1 | 2 | 3 | 130

const exits: Readonly<Partial<Record<string, Exit>>> & Readonly<Record<CommandCode, Exit>> = {
  USAGE: 2,
  NOT_FOUND: 2,
  NOT_CONFIRMED: 2,
  COUNT_CHANGED: 1,
  CONFIG_MISSING: 2,
  CONFIG_INVALID: 1,
  STORE_MISSING: 1,
  FILE_EXISTS: 1,
  INTERRUPTED: 130,
  FAILED: 1,
}

/** Says what happened, why, and in `hint` the next command. */
export class CommandError extends Error {
  readonly code: CommandCode | ErrorCode
  readonly hint: string | undefined
  /** For programs, beside the error. */
  readonly more: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: CommandCode | ErrorCode,
    message: string,
    hint?: string,
    details: { readonly cause?: unknown; readonly more?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.name = 'CommandError'
    this.code = code
    this.hint = hint
    this.more = details.more
  }
}

export interface Told {
  readonly code: CommandCode | ErrorCode
  readonly message: string
  readonly hint: string | undefined
  readonly exit: Exit
  readonly more: Readonly<Record<string, unknown>> | undefined
}

/** Codes of the library that mean that the arguments were wrong. */
const calledWrongly = new Set([
  'OPTION_INVALID',
  'NAME_INVALID',
  'SUBSCRIPTION_UNKNOWN',
  'EVENT_TOO_LARGE',
  'EVENT_TOO_DEEP',
  'EVENT_TOO_MANY_KEYS',
  'EVENT_NOT_JSON',
  'EVENT_FORBIDDEN_KEY',
  'EVENT_SCHEMA',
  'EVENT_TYPE_UNKNOWN',
  'EVENT_FIELD_INVALID',
  'VERIFY_NEEDS_LOG',
  'LETTER_UNKNOWN',
  'LETTER_NOT_HEAD',
  'REDRIVE_UNKNOWN',
  'REDRIVE_NOTHING',
  'BREAKER_UNKNOWN',
  'REVISION_NONE',
  'REBUILD_UNKNOWN',
  'REBUILD_BESIDE',
  'STATE_NEEDS_FOLD',
])

function exitOf(code: string): Exit {
  return exits[code] ?? (calledWrongly.has(code) ? 2 : 1)
}

/** What went wrong, for a person or a program. An error of the library may come from another copy of it, so it is known by its code. */
export function toTold(error: unknown): Told {
  if (isA(error, CommandError)) {
    const { code, message, hint, more } = error
    return { code, message: withoutSecrets(message), hint, exit: exitOf(code), more }
  }
  // A configuration is a program, and may throw anything.
  const [code, hint] = [field(error, 'code'), field(error, 'hint')]
  if (isA(error, Error) && typeof code === 'string' && /^[A-Z]+(_[A-Z]+)*$/.test(code) && 'hint' in error) {
    const said = typeof hint === 'string' ? hint : undefined
    const whole = messageOf(error) ?? ''
    const what = said !== undefined && whole.endsWith(` ${said}`) ? whole.slice(0, -said.length - 1) : whole
    return { code: code as ErrorCode, message: withoutSecrets(what), hint: said, exit: exitOf(code), more: undefined }
  }
  const what = isA(error, Error) ? `${printed(field(error, 'name'))}: ${messageOf(error) ?? ''}` : printed(error)
  const next = 'It is not an error of the kind we know. HOLDFAST_DEBUG=1 shows where it comes from.'
  return { code: 'FAILED', message: withoutSecrets(what), hint: next, exit: 1, more: undefined }
}
