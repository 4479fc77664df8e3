import { sha256Hex } from '../event/sha256.ts'
import { cut, field, messageOf, printed, storable, text } from './peek.ts'

export { disarm } from './peek.ts'

/**
 *     transient       may go through if it is tried again: a timeout, a lock, a 503
 *     permanent       fails every time until somebody changes something: bad data, a 404, a bug
 *     infrastructure  what everything here stands on is out of order: the database, the disk. No event is to blame
 *     dependency      somebody we call is out of order, by name where it is known. No event is to blame
 *     unknown         nobody could tell
 */
export const failureClasses = ['transient', 'permanent', 'infrastructure', 'dependency', 'unknown'] as const

export type FailureClass = (typeof failureClasses)[number]

/** Why an event could not be applied, in a form that can be kept, grouped and shown. */
export interface Failure {
  readonly class: FailureClass
  /** Which rule decided the class, such as `schema` or `fold`. */
  readonly rule: string
  /** What in the error decided it, such as `HTTP 503`. Letters that were written before there was one have none. */
  readonly evidence?: string | null
  /** The `code` of the error, where it has one. */
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
 * Describes anything that can be thrown. It must never throw itself: it runs on the way to the dead letter, and an error here
 * would lose the event it is about. So null, strings, proxies, throwing getters and circular causes are all at home.
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

/** The same bug in another version of the code is not the same any more: it is new, or it came back. */
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

function causesOf(thrown: unknown): { errorType: string; message: string }[] {
  const causes: { errorType: string; message: string }[] = []
  const seen = new Set<unknown>([thrown])
  let cause = field(thrown, 'cause')
  while (cause !== undefined && cause !== null && !seen.has(cause) && causes.length < mostCauses) {
    seen.add(cause)
    causes.push(describe(cause))
    cause = field(cause, 'cause')
  }
  return causes
}

/**
 * The message without what differs from one event to the next: quoted parts, and words with a digit in them. One pass over the
 * characters, no pattern that could backtrack.
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

/** The first frame that is neither Node's nor a library's, without its line and column: those move with every edit. */
function firstFrame(stack: string, message: string): string {
  // A stack begins with the message, and a message may have lines of its own, such as 'at line 5'.
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
