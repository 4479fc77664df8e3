import { describeFailure, type Failure } from '../failure/failure.ts'
import { Haystack, type Sought } from './haystack.ts'
import { framesOf } from './stack.ts'
import { hideValues } from './values.ts'

const gone = '***'
// Sixteen times the maximum size of an event. For a payload with more text, messages are hidden completely.
const mostText = 16_777_216

/**
 * Removes the values of a payload from a text and keeps everything else: names of tables and columns, status codes, paths.
 * docs/reference/privacy.md defines which text counts as a value. Takes time in proportion to the text and the payload.
 */
export function redact(text: string, payload: unknown): string {
  return hide([{ text, kind: 'message' }], payload)[0] ?? ''
}

/**
 * Removes the payload's values from a failure. The rule that classified it, the file paths of its frames, and SQL and HTTP codes are kept. The
 * stack does not start with the message any more.
 */
export function redactFailure(failure: Failure, payload: unknown): Failure {
  const { evidence, code, errorType, message, causes } = failure
  const sought: Sought[] = []
  const add = (text: string, kind: Sought['kind']) => sought.push({ text, kind }) - 1
  const isProtocol = evidence != null && protocolEvidence.test(evidence)
  const isOwn = code !== null && dataCode.test(code)
  const isData = isOwn || (isProtocol && evidence.startsWith(dataEvidence))
  const say = isData ? withoutQuoted : (text: string) => text
  const shown = {
    evidence: evidence == null || isProtocol ? undefined : add(evidence, 'name'),
    code: code === null || (isProtocol && evidence.endsWith(` ${code}`)) ? undefined : add(code, 'name'),
    errorType: add(errorType, 'name'),
    message: add(isData && !isOwn ? withoutRefused(message, causes) : say(message), 'message'),
    causes: causes.map((cause) => [add(cause.errorType, 'name'), add(say(cause.message), 'message')] as const),
    frames: framesOf(failure).map((frame) => {
      // The name of the function can come from a payload; the place is a file.
      const place = frame.lastIndexOf('(')
      return place < 0 ? [add(frame, 'place')] : [add(frame.slice(0, place), 'name'), add(frame.slice(place), 'place')]
    }),
  }
  const texts = hide(sought, payload)
  const textOf = (at: number) => texts[at] ?? gone
  const frames = shown.frames.map((parts) => `    ${parts.map(textOf).join('')}`)
  return {
    ...failure,
    ...(shown.evidence !== undefined && { evidence: textOf(shown.evidence) }),
    ...(shown.code !== undefined && { code: textOf(shown.code) }),
    errorType: textOf(shown.errorType),
    message: textOf(shown.message),
    stack: frames.length === 0 ? null : frames.join('\n'),
    causes: shown.causes.map(([type, said]) => ({ errorType: textOf(type), message: textOf(said) })),
  }
}

const protocolEvidence = /^(?:HTTP \d{3}|SQLSTATE [0-9A-Z]{5}|SQLITE_[A-Z]+)$/
/** `invalid input syntax for type integer: "…"`: the quoted value can be derived from a payload without being in it. */
const dataEvidence = 'SQLSTATE 22'
const dataCode = /^22[0-9A-Z]{3}$/
const quoted = /(?<!encoding )"[^"]*("|$)/g
// A message of PostgreSQL has one or two.
const mostRefused = 20

function withoutQuoted(text: string): string {
  return text.replaceAll(quoted, `"${gone}"`)
}

/** Hides only what its causes quote: an ORM quotes names of tables and columns in the error around that of the database. */
function withoutRefused(text: string, causes: Failure['causes']): string {
  const refused = causes.flatMap(({ message }) => message.match(quoted) ?? [])
  if (refused.length > mostRefused) return withoutQuoted(text)
  return refused.reduce((shown, value) => (value.length > 2 ? shown.replaceAll(value, `"${gone}"`) : shown), text)
}

/** Never throws: it runs while a failure is recorded, with any value that code can throw. */
function hide(sought: readonly Sought[], payload: unknown): string[] {
  try {
    const haystack = new Haystack(sought)
    const isAll = hideValues(haystack, payload, mostText)
    const texts = haystack.texts()
    return isAll ? texts : texts.map((text, i) => (text !== '' && sought[i]?.kind === 'message' ? gone : text))
  } catch {
    return sought.map(() => gone)
  }
}

/** An error for a log, without the payload's values: its type, code, message and stack. */
export function redactError(error: unknown, payload: unknown): Error {
  const { errorType, code, message, stack } = redactFailure(describeFailure(error, 'unknown', ''), payload)
  const shown = Object.assign(new Error(message), code !== null && { code })
  if (errorType !== 'Error') Object.defineProperty(shown, 'name', { value: errorType, configurable: true })
  shown.stack = `${errorType}: ${message}${stack === null ? '' : `\n${stack}`}`
  return shown
}
