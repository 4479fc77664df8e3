import { type Haystack, lower } from './haystack.ts'
import { keyShape } from './shape.ts'

// docs/reference/privacy.md explains the rule and its limits.
const shortest = 3
const anywhere = 6
const part = 8
const partOfLongText = 12
const wordsOfShortText = 4
const digitsOfNumber = 3
const digitsInText = 4
const isoDate = /^\d{4}-\d\d-\d\d(?:[T ][\d:.]+ ?(?:Z|[+-]\d\d:?\d\d)?)?$/
const fragment = 5
const anyRun = /[\p{L}\p{M}\p{N}]+/gu
// Scripts without spaces between words. One character of the first is a syllable or a word, of the second a letter.
const syllables = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー]{2,}/gu
const unspaced = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]{2,}/gu
const longestName = 6
const severalWords = /[\p{L}\p{M}\p{N}_][^\p{L}\p{M}\p{N}_]+[\p{L}\p{M}\p{N}_]/u
const plainNumber = /^[+-]?\d[\d.,' ]*$/

// Words of error messages. They are shown if a longer text of the payload has them, too; not if they are a whole value.
const diagnosis = (
  'about after already array before boolean cannot character column constraint could database detail duplicate empty error exist ' +
  'exists expected expression failed failure false field foreign format found function group https index input integer invalid ' +
  'length limit match maximum message minimum missing number object order other outside parse permission present property query ' +
  'range received record reference refused relation request required response result schema should status store string syntax table ' +
  'their there these timeout token transaction trigger undefined unexpected unique unknown update valid value values violates where ' +
  'which would'
).split(' ')

// Shown although a name has them: `and` of `Bread and butter`. Not if they are a whole value.
const common = new Set('and are but for from has have into its not that the this was were with'.split(' '))

/** Hides each value of a payload. Returns false if it is too much work; then not all of it is hidden. */
export function hideValues(haystack: Haystack, payload: unknown, mostText: number): boolean {
  let left = mostText
  const seen = new Set<string>()
  for (const word of diagnosis) haystack.showWord(word)
  for (const leaf of leavesOf(payload, showKey(haystack))) {
    const value = String(leaf)
    left -= value.length
    if (left < 0) return false
    // Values in lists often repeat.
    if (seen.has(value)) continue
    seen.add(value)
    if (typeof leaf === 'string') hideText(haystack, value.trim())
    else hideNumber(haystack, value)
    if (haystack.isExhausted) return false
  }
  return true
}

/** Field names are shown in the shape of a payload, so they are not private as a word of a value: `customer` of `customer-17`. */
function showKey(haystack: Haystack): (key: string) => void {
  const seen = new Set<string>()
  return (key) => {
    if (seen.has(key)) return
    seen.add(key)
    for (const [word] of key.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+/gu))
      if (word.length >= fragment) haystack.showWord(lower(word))
  }
}

/** Texts and numbers at any depth. A loop instead of recursion: a payload can be nested deeper than the stack allows. */
function* leavesOf(payload: unknown, onField: (key: string) => void): Generator<string | number | bigint> {
  const left = [payload]
  const seen = new Set<object>()
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') yield value
    else if (typeof value === 'object' && value !== null && !seen.has(value) && !ArrayBuffer.isView(value)) {
      seen.add(value)
      if (value instanceof Date && !Number.isNaN(value.getTime())) yield value.toISOString()
      for (const [key, child] of entriesOf(value)) {
        left.push(child)
        // A key that is not an identifier is often a value: an address, a number.
        if (typeof key === 'object') left.push(key)
        if (typeof key !== 'string' || Array.isArray(value)) continue
        if (value instanceof Map || value instanceof Set || keyShape(key) !== key) yield key
        else onField(key)
      }
    }
  }
}

function entriesOf(value: object): Iterable<[unknown, unknown]> {
  if (value instanceof Map) return value.entries()
  return value instanceof Set ? value.entries() : Object.entries(value)
}

function hideText(haystack: Haystack, text: string): void {
  if (plainNumber.test(text)) {
    hideNumber(haystack, text)
    // 0042 is a code, not the number 42.
    if (text.length >= shortest && /^0\d+$/.test(text)) haystack.hideWord(text)
    hideRuns(haystack, text)
    return
  }
  hideForm(haystack, text)
  // oxlint-disable-next-line no-control-regex -- non-ASCII text can be composed or decomposed
  if (!/[^\0-\x7F]/.test(text)) return
  for (const form of ['NFC', 'NFD'] as const) {
    const other = text.normalize(form)
    if (other !== text) hideForm(haystack, other)
  }
}

function hideForm(haystack: Haystack, text: string): void {
  hideUnspaced(haystack, text)
  if (text.length < shortest) return
  const low = lower(text)
  const words = new Set(text.split(/[\s,;]+/))
  const isLong = words.size > wordsOfShortText
  const isSeveral = severalWords.test(text)
  if (text.length < anywhere || /^[\p{L}\p{M}]+$/u.test(text)) haystack.hideWord(text)
  if (text.length >= part) haystack.hideParts(low, Math.min(isLong ? partOfLongText : part, text.length), isSeveral)
  else if (text.length >= anywhere) haystack.hideAnywhere(low)
  haystack.hideCut(low)
  if (words.size > 1)
    for (const word of words) if (!isLong || /[\p{Lu}\d@]/u.test(word)) hidePartOfText(haystack, trimmed(word), isLong)
  const isDate = isoDate.test(text)
  if (!isDate) hideFragments(haystack, text, isSeveral)
  if (!haystack.hasDigits || isDate) return
  hideDigits(haystack, low)
  hideRuns(haystack, text)
}

/** Hides the parts of a number in groups: `9013` of `4929 1234 5678 9013`. */
function hideRuns(haystack: Haystack, text: string): void {
  if (!haystack.hasDigits) return
  for (const [digits] of text.matchAll(/\d{4,}/g)) haystack.hideNumber(canonical(digits))
}

/** Hides each word of a value: `lovelace` of `lovelace@example.com`. `isSeveral`: the value has more than one. */
function hideFragments(haystack: Haystack, text: string, isSeveral: boolean): void {
  for (const { 0: run, index } of text.matchAll(anyRun)) {
    if (run.length < fragment || /^\d+$/.test(run)) continue
    const isAddress = text[index - 1] === '@' || text[index + run.length] === '@'
    // A part of an address is never a name of the schema.
    haystack.hideFragment(lower(run), isSeveral && !isAddress)
    for (const [word] of /\d/.test(run) ? run.matchAll(/[\p{L}\p{M}]+/gu) : [[run]]) {
      if (word === undefined || word.length < fragment) continue
      if (word !== run) haystack.hideFragment(lower(word))
      haystack.showInIdentifier(lower(word), isAddress || (/\p{Lu}/u.test(word) && /\p{Ll}/u.test(word)))
    }
  }
}

/** Hides texts in scripts that do not separate words: anywhere, also a part of a name. */
function hideUnspaced(haystack: Haystack, text: string): void {
  // oxlint-disable-next-line no-control-regex -- most texts are ASCII
  if (!/[^\0-\x7F]/.test(text)) return
  for (const [run] of text.matchAll(syllables)) haystack.hideParts(run, run.length > longestName ? 3 : 2)
  for (const [run] of text.matchAll(unspaced)) haystack.hideParts(lower(run), Math.min(run.length, longestName))
}

/** Of a short text, each word is hidden; of a long text, words that look like a name, an address or a number. */
function hidePartOfText(haystack: Haystack, word: string, isLong: boolean): void {
  if (word.length < shortest || /^\d+$/.test(word)) return
  if (common.has(lower(word)) || (isLong && !/^\p{Lu}|[\d@]/u.test(word))) return
  const isPlain = /^[\p{L}\p{M}]+$/u.test(word)
  if (isPlain || word.length < anywhere) haystack.hideWord(word, { asWritten: isLong && isPlain, isWord: true })
  else if (word.length < part) haystack.hideAnywhere(lower(word), !word.includes('@'))
  else haystack.hideParts(lower(word), part, !word.includes('@'))
}

/** A loop, because a regular expression for the end takes quadratic time. */
function trimmed(word: string): string {
  const start = word.search(/[\p{L}\p{N}+@]/u)
  if (start < 0) return ''
  let end = word.length
  // A letter can end with a combining mark, and a character outside the basic plane with a surrogate.
  while (end > start && !/[\p{L}\p{M}\p{N}\uDC00-\uDFFF]/u.test(word.charAt(end - 1))) end--
  return word.slice(start, end)
}

/** Hides numbers such as an account, a card or a telephone number. */
function hideDigits(haystack: Haystack, low: string): void {
  if (!/\d/.test(low)) return
  const squeezed = low.replaceAll(/[^\p{L}\p{N}]+/gu, '')
  if (squeezed.length >= part && squeezed.replaceAll(/\D+/g, '').length >= digitsInText)
    haystack.hideSqueezed(squeezed, part)
}

function hideNumber(haystack: Haystack, text: string): void {
  if (!haystack.hasDigits) return
  if (!plainNumber.test(text)) {
    // 1e+21
    if (/\d/.test(text)) haystack.hideWord(text.replace(/^-/, ''))
    return
  }
  const digits = canonical(text)
  if (digits.length < digitsOfNumber) return
  haystack.hideNumber(digits)
  const [whole = '', decimals] = text.replace(/^[+-]/, '').split('.')
  // 20.5 is 20.50 in a message about money, 500 is 500.00.
  if (decimals === undefined) haystack.hideNumber(`${digits}00`)
  else if (decimals.length === 1) haystack.hideNumber(`${digits}0`)
  if (decimals !== undefined && canonical(whole).length >= digitsInText) haystack.hideNumber(canonical(whole))
  hideDigits(haystack, text)
}

function canonical(text: string): string {
  return text.replaceAll(/\D+/g, '').replace(/^0+/, '')
}
