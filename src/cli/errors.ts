import type { ErrorCode } from '../errors.ts'
import { field, isA, messageOf, printed } from '../failure/peek.ts'
import { withoutSecrets } from './output/escape.ts'

/**
 * The error codes of the CLI, in addition to those of `src/errors.ts`. They are stable. A test compares them with
 * `docs/reference/cli.md`.
 */
export const commandCodes = [
  'USAGE',
  'NOT_FOUND',
  'NOT_CONFIRMED',
  'SELECTION_CHANGED',
  'CONFIG_MISSING',
  'CONFIG_INVALID',
  'STORE_MISSING',
  'FILE_EXISTS',
  'INTERRUPTED',
  'FAILED',
] as const

export type CommandCode = (typeof commandCodes)[number]

/**
 *     0    success
 *     1    failure
 *     2    usage error: an argument is missing or invalid, or the thing it names does not exist. Nothing was changed
 *     3    success, with findings that need attention
 *     130  interrupted
 */
export type Exit = 0 | 1 | 2 | 3 | 130

const exits: Readonly<Partial<Record<string, Exit>>> & Readonly<Record<CommandCode, Exit>> = {
  USAGE: 2,
  NOT_FOUND: 2,
  NOT_CONFIRMED: 2,
  SELECTION_CHANGED: 1,
  CONFIG_MISSING: 2,
  CONFIG_INVALID: 1,
  STORE_MISSING: 1,
  FILE_EXISTS: 1,
  INTERRUPTED: 130,
  FAILED: 1,
}

/** The message says what happened and why; `hint` is the next step. */
export class CommandError extends Error {
  readonly code: CommandCode | ErrorCode
  readonly hint: string | undefined
  /** More fields of the JSON document, beside `error`. */
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

/** Library codes that mean a usage error. */
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

/** Converts any thrown value to what the CLI prints. A library error may come from another copy of the package, so its code identifies it. */
export function toTold(error: unknown): Told {
  if (isA(error, CommandError)) {
    const { code, message, hint, more } = error
    return { code, message: withoutSecrets(message), hint, exit: exitOf(code), more }
  }
  // A configuration file is code and may throw anything.
  const [code, hint] = [field(error, 'code'), field(error, 'hint')]
  if (isA(error, Error) && typeof code === 'string' && /^[A-Z]+(_[A-Z]+)*$/.test(code) && 'hint' in error) {
    const said = typeof hint === 'string' ? hint : undefined
    const whole = messageOf(error) ?? ''
    const what = said !== undefined && whole.endsWith(` ${said}`) ? whole.slice(0, -said.length - 1) : whole
    return { code: code as ErrorCode, message: withoutSecrets(what), hint: said, exit: exitOf(code), more: undefined }
  }
  const what = isA(error, Error) ? `${printed(field(error, 'name'))}: ${messageOf(error) ?? ''}` : printed(error)
  const next = 'This error is unexpected. Set HOLDFAST_DEBUG=1 to print its stack.'
  return { code: 'FAILED', message: withoutSecrets(what), hint: next, exit: 1, more: undefined }
}
