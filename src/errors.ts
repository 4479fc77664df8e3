/**
 * All error codes. Codes are stable, so programs can rely on them. `docs/reference/errors.md` has an entry for each code (a test compares
 * the two).
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
  'STORE_MISCONFIGURED',
  'STORE_REPLICA',
  'STORE_IN_USE',
  'STORE_NOT_EMPTY',
  'STORE_IMPORTED',
  'COPY_DIFFERS',
  'SCHEMA_NEWER',
  'SCHEMA_OLDER',
  'SCHEMA_MISSING',
  'MIGRATION_CHANGED',
  'NODE_TOO_OLD',
  'DRIVER_MISSING',
  'INTERNAL',
] as const

export type ErrorCode = (typeof errorCodes)[number]

export interface ErrorDetails {
  /** The next step for the user. */
  readonly hint?: string
  readonly cause?: unknown
}

/** `message`: the problem and its cause, followed by the hint. `hint`: the next step. `code`: a stable code. */
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

/** The log rejected an event. Nothing of its append was written. */
export class InvalidEventError extends HoldfastError {
  /** The path of the invalid value in the event, for example `data.lines[3].amount`. */
  readonly path: string

  constructor(code: ErrorCode, path: string, message: string, details: ErrorDetails = {}) {
    super(code, message, details)
    this.path = path
  }
}

/** Another append to the key came first. Read the key again and decide again. */
export class ExpectedVersionError extends HoldfastError {
  readonly key: string
  readonly expected: 'new' | number
  readonly actual: number
  /** The number of attempts. A command retries, so it can be more than 1. */
  readonly tries: number

  constructor(key: string, expected: 'new' | number, actual: number, tries = 1) {
    const wanted = expected === 'new' ? 'to be new' : `at version ${expected}`
    const often = tries === 1 ? '' : ` after ${tries} attempts`
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

/** The `idempotencyKey` was used for another command before. Nothing was written. */
export class CommandConflictError extends HoldfastError {
  readonly key: string
  readonly idempotencyKey: string
  /** The version of the first event of the other command. */
  readonly version: number

  constructor(key: string, idempotencyKey: string, version: number) {
    const message = `${JSON.stringify(idempotencyKey)} was executed on ${JSON.stringify(key)} with other content, at version ${version}.`
    super('COMMAND_CONFLICT', message, { hint: 'Use a different idempotencyKey for each command.' })
    this.key = key
    this.idempotencyKey = idempotencyKey
    this.version = version
  }
}

/** Another event has the same id. The same id with the same content is not an error: it is a repeated append. */
export class EventIdConflictError extends HoldfastError {
  readonly eventId: string

  constructor(eventId: string, why: string) {
    super('EVENT_ID_CONFLICT', `The event id ${JSON.stringify(eventId)} is taken: ${why}.`, {
      hint: 'Use a new id for a new event. To repeat an append, use exactly the same events.',
    })
    this.eventId = eventId
  }
}

/**
 * The store failed for a reason that does not depend on an event, such as a lost connection. The engine waits and tries again, without a
 * limit.
 */
export class StoreError extends HoldfastError {}
