/**
 * Every code Holdfast can give. Codes are stable: a program may switch on them, and `docs/reference/errors.md` has one
 * entry for each (a test compares the two).
 */
export const errorCodes = [
  'EVENT_TOO_LARGE',
  'EVENT_TOO_DEEP',
  'EVENT_TOO_MANY_KEYS',
  'EVENT_NOT_JSON',
  'EVENT_FORBIDDEN_KEY',
  'EVENT_SCHEMA',
  'EVENT_SCHEMA_NEWER',
  'EVENT_TYPE_UNKNOWN',
  'EVENT_FIELD_INVALID',
  'EVENT_UPCAST',
  'EVENT_ID_CONFLICT',
  'EVENT_DEADLY',
  'EXPECTED_VERSION',
  'COMMAND_CONFLICT',
  'NAME_INVALID',
  'OPTION_INVALID',
  'FOLD_STATE',
  'FOLD_KEY',
  'FOLD_FAILED',
  'PROJECTION_CHANGED',
  'PROJECTION_TABLE_TAKEN',
  'PROJECTION_VERSION',
  'PARTITIONS_CHANGED',
  'ORDER_CHANGED',
  'TRANSACTION_BROKEN',
  'TRANSACTION_INVALID',
  'SUBSCRIPTION_UNKNOWN',
  'SUBSCRIPTION_NEW',
  'SUBSCRIPTION_PAUSED',
  'SUBSCRIPTION_BLOCKED',
  'SUBSCRIPTION_FAILED',
  'SOURCE_REGRESSED',
  'SOURCE_TRIMMED',
  'SOURCE_INVALID',
  'ENGINE_STATE',
  'LANE_HELD',
  'ROW_AHEAD',
  'BREAKER_OPEN',
  'BREAKER_UNKNOWN',
  'VERIFY_NEEDS_LOG',
  'LETTER_UNKNOWN',
  'LETTER_ENDED',
  'LETTER_BUSY',
  'LETTER_NOT_HEAD',
  'REVISION_NONE',
  'REDRIVE_NOTHING',
  'REDRIVE_CHANGED',
  'REDRIVE_BUSY',
  'REDRIVE_UNKNOWN',
  'PURGE_CHANGED',
  'STATE_NEEDS_FOLD',
  'IMPORT_INVALID',
  'REBUILD_UNKNOWN',
  'REBUILD_LIVE',
  'REBUILD_BEHIND',
  'REBUILD_STRAYS',
  'REBUILD_BESIDE',
  'STORE_UNAVAILABLE',
  'STORE_BUSY',
  'STORE_CORRUPT',
  'STORE_CLOSED',
  'STORE_REFUSED',
  'STORE_REPLICA',
  'STORE_IN_USE',
  'STORE_NOT_EMPTY',
  'COPY_DIFFERS',
  'SCHEMA_NEWER',
  'SCHEMA_OLDER',
  'MIGRATION_CHANGED',
  'NODE_TOO_OLD',
  'DRIVER_MISSING',
  'INTERNAL',
] as const

export type ErrorCode = (typeof errorCodes)[number]

export interface ErrorDetails {
  /** What a person should do next. */
  readonly hint?: string
  readonly cause?: unknown
}

/** Says what happened and why in `message`, what to do next in `hint`, and which of the known cases it is in `code`. */
export class HoldfastError extends Error {
  readonly code: ErrorCode
  readonly hint: string | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(
      details.hint ? `${message} ${details.hint}` : message,
      'cause' in details ? { cause: details.cause } : undefined,
    )
    this.name = new.target.name
    this.code = code
    this.hint = details.hint
  }
}

/** An event that was refused at the door. Nothing of the append it came with was written. */
export class InvalidEventError extends HoldfastError {
  /** Where in the event the trouble is, such as `data.lines[3].amount`. */
  readonly path: string

  constructor(code: ErrorCode, path: string, message: string, details: ErrorDetails = {}) {
    super(code, message, details)
    this.path = path
  }
}

/** Somebody else appended to the key first. Read it again and decide again. */
export class ExpectedVersionError extends HoldfastError {
  readonly key: string
  readonly expected: 'new' | number
  readonly actual: number
  /** How often it was tried: more than once by a command. */
  readonly tries: number

  constructor(key: string, expected: 'new' | number, actual: number, tries = 1) {
    const wanted = expected === 'new' ? 'to be new' : `at version ${expected}`
    const often = tries === 1 ? '' : `, and others were first ${tries} times`
    super(
      'EXPECTED_VERSION',
      `${JSON.stringify(key)} was expected ${wanted}, but it is at version ${actual}${often}.`,
      {
        hint: 'Read the key again, decide again, and append with the version you read.',
      },
    )
    this.key = key
    this.expected = expected
    this.actual = actual
    this.tries = tries
  }
}

/** An `idempotencyKey` under which another command was executed. Nothing was written. */
export class CommandConflictError extends HoldfastError {
  readonly key: string
  readonly idempotencyKey: string
  /** The version of the first event that the other command wrote. */
  readonly version: number

  constructor(key: string, idempotencyKey: string, version: number) {
    const message = `${JSON.stringify(idempotencyKey)} was executed on ${JSON.stringify(key)} with other content, at version ${version}.`
    super('COMMAND_CONFLICT', message, { hint: 'Give another command another idempotencyKey.' })
    this.key = key
    this.idempotencyKey = idempotencyKey
    this.version = version
  }
}

/** An event id that is taken by another event. The same id with the same content is not an error: it is the same append. */
export class EventIdConflictError extends HoldfastError {
  readonly eventId: string

  constructor(eventId: string, why: string) {
    super('EVENT_ID_CONFLICT', `The event id ${JSON.stringify(eventId)} is taken: ${why}.`, {
      hint: 'Give a new event a new id; repeat an append with exactly the events it had.',
    })
    this.eventId = eventId
  }
}

/**
 * The store could not do what was asked, for a reason that lies in the store and not in any event. The engine answers
 * with waiting, for as long as it takes.
 */
export class StoreError extends HoldfastError {}
