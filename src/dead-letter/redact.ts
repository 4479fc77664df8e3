import type { Failure } from '../failure/failure.ts'
import { framesOf } from './stack.ts'

const gone = '***'
// Nothing that a person wrote as a word is longer; a token or a body in base64 is.
const longestWord = 40
// Whole values up to this length are looked for as they are, longer ones by all their parts of this length: so a value that was cut off
// is found as well. What is shorter than the first number only counts as a word, or the letter `a` would take all others with it.
const shortest = 3
const part = 8
// Of a payload with more text than this, nothing of a message is shown at all.
const mostText = 262_144

/**
 * A text without what may be of a payload: quoted parts, words with a digit or an @ in them, and very long words. With the payload at
 * hand, also every one of its values, wherever they stand. One pass for each, so it takes as long as the text is long.
 */
export function redact(text: string, payload?: unknown): string {
  const values = valuesOf(payload)
  if (values === undefined) return text === '' ? '' : gone
  const mask = new Uint8Array(text.length)
  maskQuoted(text, mask)
  maskWords(text, mask)
  maskValues(text, mask, values)
  return masked(text, mask)
}

/**
 * A failure without what may be of the payload of its event. What it is stays, but for values of the payload: the type of the error, its code,
 * the rule that classified it, and the frames, which are places in a program. The message stands no more at the head of the stack.
 */
export function redactFailure(failure: Failure, payload?: unknown): Failure {
  const values = valuesOf(payload)
  const name = (text: string) => {
    if (values === undefined) return text
    const mask = new Uint8Array(text.length)
    maskValues(text, mask, values)
    return masked(text, mask)
  }
  const frames = framesOf(failure).map((frame) => {
    // What is called may have been named by a payload; where it stands is a file.
    const place = frame.lastIndexOf('(')
    return place < 0 ? frame : `${name(frame.slice(0, place))}${frame.slice(place)}`
  })
  return {
    ...failure,
    // A code is often the user's own, and made of what they had at hand.
    ...(failure.evidence != null && { evidence: name(failure.evidence) }),
    code: failure.code === null ? null : name(failure.code),
    errorType: name(failure.errorType),
    message: redact(failure.message, payload),
    stack: frames.length === 0 ? null : frames.map((frame) => `    ${frame}`).join('\n'),
    causes: failure.causes.map(({ errorType, message }) => ({
      errorType: name(errorType),
      message: redact(message, payload),
    })),
  }
}

interface Values {
  /** In lower case. */
  readonly words: ReadonlySet<string>
  /** Of each length that there is. */
  readonly parts: ReadonlyMap<number, ReadonlySet<string>>
}

/** Undefined when there is too much. */
function valuesOf(payload: unknown): Values | undefined {
  const words = new Set<string>()
  const parts = new Map<number, Set<string>>()
  let left = mostText
  const add = (value: string) => {
    for (const word of value.split(/[^\p{L}\p{N}]+/u)) if (word) words.add(word)
    if (value.length < shortest) return
    const length = Math.min(value.length, part)
    const known = parts.get(length) ?? new Set()
    parts.set(length, known)
    for (let i = 0; i + length <= value.length; i++) known.add(value.slice(i, i + length))
  }
  for (const value of leavesOf(payload)) {
    left -= value.length
    if (left < 0) return undefined
    add(lower(value.trim()))
  }
  return { words, parts }
}

/** Texts and numbers, however deep. A loop and no recursion: a payload may be nested deeper than the stack. */
function* leavesOf(payload: unknown): Generator<string> {
  const left = [payload]
  const seen = new Set<object>()
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'string') yield value
    else if (typeof value === 'number' || typeof value === 'bigint') yield String(value)
    else if (typeof value === 'object' && value !== null && !seen.has(value)) {
      seen.add(value)
      for (const child of Object.values(value)) left.push(child)
    }
  }
}

/** Of ASCII letters alone, so that every character stays where it is. */
function lower(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** A quote that is never closed reaches to the end. The one in "can't" is none. */
function maskQuoted(text: string, mask: Uint8Array): void {
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i)
    if (quote) {
      if (char === quote && (quote !== "'" || !isLetter(text, i + 1))) quote = ''
      else mask[i] = 1
    } else if (char === '"' || char === '`' || (char === "'" && !isLetter(text, i - 1))) quote = char
  }
}

function isLetter(text: string, at: number): boolean {
  return /[\p{L}\p{N}]/u.test(text.charAt(at))
}

const wordEnd = /[\s()[\]{}<>,;:=!?|"'`]/

function maskWords(text: string, mask: Uint8Array): void {
  let from = 0
  for (let i = 0; i <= text.length; i++) {
    if (i < text.length && !wordEnd.test(text.charAt(i))) continue
    const word = text.slice(from, i)
    // The full stop of a sentence is no part of its last word.
    const end = word.endsWith('.') ? i - 1 : i
    if (word.length > longestWord || /[\p{N}@]/u.test(word)) mask.fill(1, from, end)
    from = i + 1
  }
}

function maskValues(text: string, mask: Uint8Array, { words, parts }: Values): void {
  if (words.size === 0 && parts.size === 0) return
  const sought = lower(text)
  for (const { 0: word, index } of sought.matchAll(/[\p{L}\p{N}]+/gu))
    if (words.has(word)) mask.fill(1, index, index + word.length)
  for (const [length, known] of parts) {
    for (let i = 0; i + length <= sought.length; i++)
      if (known.has(sought.slice(i, i + length))) mask.fill(1, i, i + length)
  }
}

function masked(text: string, mask: Uint8Array): string {
  let out = ''
  let from = 0
  while (from < text.length) {
    const isGone = mask[from] === 1
    let to = from
    while (to < text.length && (mask[to] === 1) === isGone) to++
    out += isGone ? gone : text.slice(from, to)
    from = to
  }
  return out
}
