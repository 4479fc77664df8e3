import { sha256Hex } from '../event/sha256.ts'

export type FailureClass = 'transient' | 'permanent' | 'infrastructure' | 'dependency' | 'unknown'

/** Why an event could not be applied, in a form that can be kept, grouped and shown. */
export interface Failure {
  readonly class: FailureClass
  /** Which rule decided the class, such as `schema` or `fold`. */
  readonly rule: string
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
export function describeFailure(thrown: unknown, failureClass: FailureClass, rule: string): Failure {
  const { errorType, message } = describe(thrown)
  const stack = cut(text(field(thrown, 'stack')), stackLength)
  const code = field(thrown, 'code')
  return {
    class: failureClass,
    rule,
    code: typeof code === 'string' || typeof code === 'number' ? (cut(String(code).toWellFormed(), 100) ?? null) : null,
    errorType,
    message,
    stack: stack ?? null,
    causes: causesOf(thrown),
    fingerprint: sha256Hex(`${rule}\n${errorType}\n${normalise(message)}\n${firstFrame(stack, message)}`).slice(0, 16),
  }
}

/**
 * Takes the sting out of a promise that was returned where none is wanted. It is refused in any case; but if nobody listens to it,
 * its rejection would end the process.
 */
export function disarm(returned: unknown): void {
  const then = field(returned, 'then')
  if (typeof then === 'function') Promise.resolve(returned).catch(() => undefined)
}

function describe(thrown: unknown): { errorType: string; message: string } {
  const name = text(field(thrown, 'name')) ?? text(field(field(thrown, 'constructor'), 'name'))
  return {
    errorType: cut(name || (thrown === null ? 'null' : typeof thrown), 200) as string,
    message: cut(text(field(thrown, 'message')) ?? printed(thrown), messageLength) as string,
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

function field(value: unknown, name: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value.toWellFormed() : undefined
}

function printed(value: unknown): string {
  try {
    return String(value).toWellFormed()
  } catch {
    return 'something that can not be shown as text'
  }
}

function cut(value: string | undefined, longest: number): string | undefined {
  return value !== undefined && value.length > longest ? `${value.slice(0, longest).toWellFormed()}…` : value
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
function firstFrame(stack = '', message: string): string {
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
