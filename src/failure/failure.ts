import { sha256Hex } from '../event/sha256.ts'
import { cut, field, membersOf, messageOf, printed, storable, text } from './peek.ts'

export { disarm } from './peek.ts'

/**
 *     transient       may succeed on a retry: a timeout, a lock, a 503
 *     permanent       fails every time until the data or the code changes: bad data, a 404, a bug
 *     infrastructure  the database or the disk of this app is unavailable. The event is not the cause
 *     dependency      a service that the app calls is unavailable. The event is not the cause
 *     unknown         no rule recognises the error
 */
export const failureClasses = ['transient', 'permanent', 'infrastructure', 'dependency', 'unknown'] as const

export type FailureClass = (typeof failureClasses)[number]

/** Why an event could not be applied, in a form that can be stored, grouped and displayed. */
export interface Failure {
  readonly class: FailureClass
  /** The rule that determined the class, such as `schema` or `fold`. */
  readonly rule: string
  /** The evidence for the class, such as `HTTP 503`. Older letters have none. */
  readonly evidence?: string | null
  /** The `code` of the error, if any. */
  readonly code: string | null
  readonly errorType: string
  readonly message: string
  readonly stack: string | null
  readonly causes: readonly { readonly errorType: string; readonly message: string }[]
  /** Equal for failures that look like the same bug. */
  readonly fingerprint: string
}

const messageLength = 4_096
const stackLength = 16_384
const mostCauses = 8

/**
 * Describes any thrown value. It must never throw: it runs on the way to the dead letter, and an error here would lose the event.
 * So it accepts null, strings, proxies, throwing getters and circular causes.
 */
export function describeFailure(
  thrown: unknown,
  failureClass: FailureClass,
  rule: string,
  evidence: string | null = null,
): Failure {
  const { errorType, message } = describe(thrown)
  const stack = cut(text(field(thrown, 'stack')) ?? '', stackLength)
  const code = field(thrown, 'code')
  return {
    class: failureClass,
    rule,
    evidence: evidence === null ? null : cut(storable(evidence), 100),
    code: typeof code === 'string' || typeof code === 'number' ? cut(storable(String(code)), 100) : null,
    errorType,
    message,
    stack: stack || null,
    causes: causesOf(thrown),
    fingerprint: sha256Hex(`${rule}\n${errorType}\n${normalise(message)}\n${firstFrame(stack, message)}`).slice(0, 16),
  }
}

/** The same bug in another version of the code gets another fingerprint: it is new, or it came back. */
export function inVersion(failure: Failure, version: number): Failure {
  if (version === 1) return failure
  return { ...failure, fingerprint: sha256Hex(`${failure.fingerprint}\n${version}`).slice(0, 16) }
}

function describe(thrown: unknown): { errorType: string; message: string } {
  const name = text(field(thrown, 'name')) ?? text(field(field(thrown, 'constructor'), 'name'))
  return {
    errorType: cut(name || (thrown === null ? 'null' : typeof thrown), 200),
    message: cut(messageOf(thrown) ?? printed(thrown), messageLength),
  }
}

/** The chain of causes. An AggregateError has no cause; the errors that it collects are the reason, so they follow. */
function causesOf(thrown: unknown): { errorType: string; message: string }[] {
  const causes: { errorType: string; message: string }[] = []
  const seen = new Set<unknown>()
  const visit = (error: unknown): void => {
    if (error === undefined || error === null || seen.has(error) || causes.length === mostCauses) return
    seen.add(error)
    if (error !== thrown) causes.push(describe(error))
    for (const next of [field(error, 'cause'), ...membersOf(error)]) visit(next)
  }
  visit(thrown)
  return causes
}

/**
 * The message without the parts that differ between events: quoted parts, and words with a digit. One pass over the characters,
 * without a pattern that could backtrack.
 */
function normalise(message: string): string {
  let out = ''
  let word = ''
  let digits = false
  let quote = ''
  const endWord = () => {
    out += digits ? '#' : word
    word = ''
    digits = false
  }
  for (const char of message) {
    if (quote) {
      if (char === quote) quote = ''
    } else if (char === '"' || char === '`') {
      endWord()
      out += '"'
      quote = char
    } else if (isWordPart(char)) {
      word += char
      digits ||= char >= '0' && char <= '9'
    } else {
      endWord()
      out += char
    }
  }
  endWord()
  // -12.50, 1,234 and 10.0.0.1 are one number each, like 7.
  return out.replaceAll(/#(?:[.,+]#)+/g, '#')
}

function isWordPart(char: string): boolean {
  return (
    (char >= '0' && char <= '9') ||
    (char >= 'a' && char <= 'z') ||
    (char >= 'A' && char <= 'Z') ||
    char === '-' ||
    char === '_'
  )
}

/** The first frame outside Node and libraries, without line and column: these change with every edit. */
function firstFrame(stack: string, message: string): string {
  // A stack starts with the message, and a message may have several lines, such as 'at line 5'.
  const begin = stack.indexOf(message)
  for (const line of stack.slice(begin < 0 ? 0 : begin + message.length).split('\n')) {
    const frame = line.trim()
    if (!frame.startsWith('at ') || frame.includes('node:') || frame.includes('node_modules')) continue
    const [call = '', place = ''] = frame.replace(/:\d+:\d+\)?$/, '').split(' (', 2)
    return place ? `${call} ${lastSegment(place)}` : lastSegment(call)
  }
  return ''
}

function lastSegment(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
}
