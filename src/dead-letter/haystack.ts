import { Cuts } from './cuts.ts'
import { namedIn } from './named.ts'
import { Parts } from './parts.ts'
import { readingsOf } from './readings.ts'

/**
 *     message  a message for humans
 *     name     a code or the name of a type or function: one word, possibly composed of several
 *     place    the path of a file: only values that can't be the name of a folder by chance are hidden
 */
export interface Sought {
  readonly text: string
  readonly kind: 'message' | 'name' | 'place'
}

const gone = '***'
const mostGroups = 8
// About a second of work.
const mostSteps = 16_777_216
// Longer words are hidden also in identifiers: they are rarely the name of a table or column.
const longestInIdentifier = 8
const insideNumber = /[\p{L}\p{N}]/u
const insideWord = /[\p{L}\p{M}\p{N}_]/u
// 503 and 23505 are codes here, even if the payload has the same number.
const status =
  /(?:HTTP(?:\/\d(?:\.\d)?)?|(?:status|response)(?:[ _-]?code)?)["']?\s*[:=]?\s*$|(?:fetch|request) failed(?: with)?:?\s*$/i
const sqlState = /SQLSTATE[\s:[=]*$/i
const reason =
  /^(?:400 \(?Bad Request|401 \(?Unauthorized|403 \(?Forbidden|404 \(?Not Found|405 \(?Method Not Allowed|408 \(?Request Timeout|409 \(?Conflict|413 \(?(?:Payload|Content) Too Large|422 \(?Unprocessable|429 \(?Too Many Requests|500 \(?Internal Server Error|501 \(?Not Implemented|502 \(?Bad Gateway|503 \(?Service Unavailable|504 \(?Gateway Timeout)\b/
const innerWords = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\p{Lu}_]+/gu

/**
 * The texts in which payload values are searched, indexed by their parts. Texts are short and payloads can be long, so the payload's values are
 * looked up one after the other, and none is kept. Each place of a text is visited once per index, however many values have it: the time is in
 * proportion to the texts and the payload. `isExhausted` is the safeguard: then the caller hides the texts completely.
 */
export class Haystack {
  readonly #sought: readonly Sought[]
  readonly #masks: readonly Int32Array[]
  /** All readings of all texts, concatenated, with the text and the place of origin of each character. */
  readonly #raw: string
  readonly #low: string
  readonly #owner: Int32Array
  readonly #from: Int32Array
  readonly #to: Int32Array
  /** Whether the texts contain a digit. If not, numbers are not searched. */
  readonly hasDigits: boolean
  readonly #mostSteps: number
  #steps = 0
  readonly #parts = new Map<number, Parts>()
  #words: Words | undefined
  #identifiers: Identifiers | undefined
  #numbers: Map<string, [number, number][]> | undefined
  #squeezed: { readonly parts: Parts; readonly at: readonly number[] } | undefined
  #cuts: Cuts | undefined
  /** 1 where a message names something of the schema or the code. */
  #schema: Uint8Array | undefined
  /** Places and lengths of parts that are in a value. Whether they are hidden depends on the words of the whole payload. */
  readonly #found: number[] = []
  /** Places of parts that only words of longer values have, where a text names something of the schema. */
  readonly #named = new Map<string, readonly number[]>()
  readonly #walked = new Set<readonly number[]>()
  readonly #walkedForWord = new Set<readonly number[]>()
  /** Words of values, and whether each is only a word of longer values. */
  readonly #fragments = new Map<string, boolean>()
  readonly #shown = new Set<string>()
  /** Words of the payload that are in an identifier of a text, and whether one is written like a name. */
  readonly #inIdentifier = new Map<string, boolean>()

  constructor(sought: readonly Sought[], steps = mostSteps) {
    this.#sought = sought
    this.#mostSteps = steps
    this.#masks = sought.map(({ text }) => new Int32Array(text.length + 1))
    const readings = sought.flatMap(({ text }, owner) => readingsOf(text).map((reading) => ({ ...reading, owner })))
    // No text has this character, so no match spans two texts.
    this.#raw = readings.map(({ text }) => `${text}\uFFFF`).join('')
    this.#low = lower(this.#raw)
    this.hasDigits = /\d/.test(this.#raw)
    this.#owner = new Int32Array(this.#raw.length).fill(-1)
    this.#from = new Int32Array(this.#raw.length)
    this.#to = new Int32Array(this.#raw.length)
    let at = 0
    for (const { text, from, to, owner } of readings) {
      for (let i = 0; i < text.length; i++, at++) {
        this.#owner[at] = owner
        this.#from[at] = from[i] as number
        this.#to[at] = to[i] as number
      }
      at++
    }
  }

  /** The number of comparisons so far. */
  get steps(): number {
    return this.#steps
  }

  get isExhausted(): boolean {
    return this.#steps > this.#mostSteps
  }

  /** The texts without the hidden values. Call it once, after all values. */
  texts(): string[] {
    for (const [word, isWord] of this.#fragments)
      if (!this.#shown.has(word))
        for (const at of this.#wordsOf().low.get(word) ?? [])
          if (!isWord || !this.#isNamed(at, word.length)) this.#hide(at, word.length, false)
    if (this.#cuts) for (const [at, length] of this.#cuts.found()) this.#hide(at, length)
    const kept: number[] = []
    for (const [part, places] of this.#named) {
      const { index, 0: word } = schemaWord.exec(part) as RegExpExecArray
      for (const at of places) kept.push(at + index, word.length)
    }
    for (let i = 0; i < this.#found.length; i += 2) {
      const [at, length] = [this.#found[i] as number, this.#found[i + 1] as number]
      if (this.#isDiagnosis(at, length)) kept.push(at, length)
      else this.#hide(at, length)
    }
    const masks = this.#masks.map(totals)
    // A word beside a hidden part belongs to the same value.
    const isBeside = (at: number) => masks[this.#owner[at] as number]?.[this.#from[at] as number]
    for (let i = 0; i < kept.length; i += 2) {
      const [at, length] = [kept[i] as number, kept[i + 1] as number]
      const { from, to } = this.#identifiersOf()
      for (let place = from[at] as number; place < (to[at] as number); place++)
        if (isBeside(place)) {
          this.#hide(at, length)
          break
        }
    }
    return this.#sought.map(({ text }, i) => masked(text, totals(this.#masks[i] as Int32Array)))
  }

  /**
   * Hides a value of up to 12 characters at any place, except as a word of an identifier. `isWord`: it is a word of a longer value, which does
   * not hide what a message names.
   */
  hideAnywhere(value: string, isWord = false): void {
    this.#find(value, isWord)
  }

  /** Hides a value where it is a whole word. `asWritten`: case-sensitive. `isWord`: as for `hideAnywhere`. */
  hideWord(value: string, { asWritten = false, isWord = false } = {}): void {
    const low = lower(value)
    const words = this.#wordsOf()
    this.#step(1)
    if (wholeWord.test(value)) {
      const found = asWritten
        ? [words.raw.get(value), words.innerRaw.get(value)]
        : [words.low.get(low), words.innerLow.get(low)]
      for (const places of found)
        for (const at of this.#once(places, isWord))
          if (!isWord || !this.#isNamed(at, value.length)) this.#hide(at, value.length)
      return
    }
    // Not taken: the same part can be at a place that is not a whole word, as a part of another value.
    for (const at of this.#once(this.#partsOf(value.length).places.get(low)))
      if (this.#isName(at) || (this.#isBorder(at - 1, insideWord) && this.#isBorder(at + value.length, insideWord)))
        this.#hide(at, value.length)
  }

  /** Hides a word of a value where it is a whole word, except if `showWord` names it. `isWord`: as for `hideAnywhere`. */
  hideFragment(word: string, isWord = false): void {
    this.#step(1)
    if (!this.#wordsOf().low.has(word)) return
    this.#fragments.set(word, isWord && schemaWord.test(word) && this.#fragments.get(word) !== false)
  }

  /** Shows a word of longer values: it is a word of the code or the schema. */
  showWord(word: string): void {
    const { low } = this.#wordsOf()
    if (low.has(word) || this.#identifiersOf().words.has(word)) this.#shown.add(word)
  }

  /** Shows a word of the payload where it is a part of a longer identifier, or in the plural. Never if any value has it as a name. */
  showInIdentifier(word: string, isName: boolean): void {
    if (word.length > longestInIdentifier || !this.#identifiersOf().words.has(word)) return
    this.#inIdentifier.set(word, isName || (this.#inIdentifier.get(word) ?? false))
  }

  /**
   * Hides each part of a value that has at least `length` characters, because a text can contain a truncated value. `isWord`: as for
   * `hideAnywhere`; here the value can also be the longer one.
   */
  hideParts(value: string, length: number, isWord = false): void {
    for (const at of this.#partsOf(length).in(value)) {
      this.#step(1)
      this.#find(value.slice(at, at + length), isWord)
    }
  }

  /** Hides an identifier with digits in any grouping: `DE89 3704 0044` for `DE8937040044`. */
  hideSqueezed(value: string, length: number): void {
    const squeezed = this.#squeezedOf(length)
    for (const at of squeezed.parts.in(value)) {
      this.#step(1)
      for (const place of squeezed.parts.take(value.slice(at, at + length))) {
        const from = squeezed.at[place] as number
        this.#hide(from, (squeezed.at[place + length - 1] as number) - from + 1, true)
      }
    }
  }

  /** Hides a number by its digits, in any grouping and with the decimal point at any place. */
  hideNumber(digits: string): void {
    this.#step(1)
    const numbers = this.#numbersOf()
    for (const [at, end] of numbers.get(digits) ?? []) {
      const isFree = digits.length > 3 || this.#isName(at)
      if (!isFree && !(this.#isBorder(at - 1, insideNumber) && this.#isBorder(end, insideNumber))) continue
      this.#hide(at, end - at, digits.length >= 8)
    }
    numbers.delete(digits)
  }

  /** Hides the text next to an ellipsis, as far as it is a part of this value. */
  hideCut(value: string): void {
    this.#cuts ??= new Cuts(this.#low)
    this.#cuts.find(value, () => this.#step(1))
  }

  #step(count: number): boolean {
    this.#steps += count
    return !this.isExhausted
  }

  #find(part: string, isWord: boolean): void {
    const { length } = part
    const places = this.#partsOf(length).take(part)
    if (places.length === 0 && !this.#named.has(part)) return
    this.#step(places.length)
    const word = isWord ? schemaWord.exec(part) : null
    if (word) {
      const named: number[] = []
      for (const at of places)
        if (this.#isNamed(at + word.index, word[0].length)) named.push(at)
        else this.#found.push(at, length)
      if (named.length > 0) this.#named.set(part, named)
      return
    }
    for (const at of places) this.#found.push(at, length)
    const named = this.#named.get(part)
    if (named === undefined) return
    this.#step(named.length)
    for (const at of named) this.#found.push(at, length)
    this.#named.delete(part)
  }

  /** Places that are hidden now, so that they are not walked again for the next value with the same word. */
  #once(places: number[] | undefined, isWord = false): readonly number[] {
    if (places === undefined || places.length === 0 || this.#walked.has(places)) return []
    const walked = isWord ? this.#walkedForWord : this.#walked
    if (walked.has(places)) return []
    walked.add(places)
    this.#step(places.length)
    return places
  }

  /** Whether a part is in a name of the schema or the code, as a message has it. */
  #isNamed(at: number, length: number): boolean {
    if (this.#schema === undefined) {
      this.#schema = new Uint8Array(this.#raw.length)
      for (const [from, to] of namedIn(this.#raw))
        if (this.#sought[this.#owner[from] as number]?.kind === 'message') this.#schema.fill(1, from, to)
    }
    return this.#schema[at] === 1 && this.#schema[at + length - 1] === 1
  }

  /** Whether a part is a word that the code or the schema uses: the name of a field, or a short word in a longer identifier. */
  #isDiagnosis(at: number, length: number): boolean {
    const { from, to } = this.#identifiersOf()
    const [start, end] = [from[at] as number, to[at] as number]
    if (end - start > longestShown || start > at || end < at + length) return false
    const word = this.#low.slice(start, end)
    if (singulars(word).some((one) => this.#shown.has(one))) return true
    const isLonger = insideName.test(this.#raw.charAt(start - 1)) || insideName.test(this.#raw.charAt(end))
    return singulars(word).some((one) => this.#inIdentifier.get(one) === false && (isLonger || one !== word))
  }

  #hide(at: number, length: number, isLong = length >= 8): void {
    for (let i = at; i < at + length; i++) {
      const owner = this.#owner[i] as number
      if (owner < 0 || (!isLong && this.#sought[owner]?.kind === 'place')) continue
      const mask = this.#masks[owner] as Int32Array
      ;(mask[this.#from[i] as number] as number)++
      ;(mask[this.#to[i] as number] as number)--
    }
  }

  #isName(at: number): boolean {
    return this.#sought[this.#owner[at] as number]?.kind === 'name'
  }

  #isBorder(at: number, inside: RegExp): boolean {
    return !inside.test(this.#raw.charAt(at))
  }

  #partsOf(length: number): Parts {
    const known = this.#parts.get(length)
    if (known) return known
    const parts = new Parts(this.#low, length)
    this.#parts.set(length, parts)
    return parts
  }

  #wordsOf(): Words {
    if (this.#words) return this.#words
    const words = { low: new Map(), raw: new Map(), innerLow: new Map(), innerRaw: new Map() } satisfies Words
    for (const { 0: word, index } of this.#raw.matchAll(/[\p{L}\p{M}\p{N}_]+/gu)) {
      addTo(words.low, lower(word), index)
      addTo(words.raw, word, index)
      if (!this.#isName(index)) continue
      for (const { 0: inner, index: at } of word.matchAll(innerWords)) {
        if (inner === word) continue
        addTo(words.innerLow, lower(inner), index + at)
        addTo(words.innerRaw, inner, index + at)
      }
    }
    return (this.#words = words)
  }

  /** The run of letters around each character. In a name, each word of `CustomerError` is a run. */
  #identifiersOf(): Identifiers {
    if (this.#identifiers) return this.#identifiers
    const [from, to] = [new Int32Array(this.#raw.length), new Int32Array(this.#raw.length)]
    const words = new Set<string>()
    const add = (start: number, run: string) => {
      from.fill(start, start, start + run.length)
      to.fill(start + run.length, start, start + run.length)
      if (run.length <= longestShown) for (const word of singulars(lower(run))) words.add(word)
    }
    for (const { 0: run, index } of this.#raw.matchAll(/[\p{L}\p{M}]+/gu)) {
      if (!this.#isName(index)) add(index, run)
      else for (const { 0: inner, index: at } of run.matchAll(innerWords)) add(index + at, inner)
    }
    return (this.#identifiers = { from, to, words })
  }

  /** All numbers that grouped digits can mean: `1,234.50` is one number, `471,812` can be one or two. */
  #numbersOf(): Map<string, [number, number][]> {
    if (this.#numbers) return this.#numbers
    const numbers = (this.#numbers = new Map<string, [number, number][]>())
    for (const { 0: token, index } of this.#raw.matchAll(/\d+(?:[.,'’_ \u00A0\u202F]\d+)*/g)) {
      const groups = [...token.matchAll(/\d+/g)]
      for (let first = 0; first < groups.length; first++) {
        let digits = ''
        for (let last = first; last < Math.min(groups.length, first + mostGroups); last++) {
          const [from, to] = [groups[first], groups[last]] as [RegExpExecArray, RegExpExecArray]
          digits += to[0]
          const at = index + from.index
          if (first === last && this.#isProtocol(at, to[0].length)) continue
          const number = digits.replace(/^0+/, '')
          if (number.length < 3) continue
          const range: [number, number] = [at, index + to.index + to[0].length]
          const ranges = numbers.get(number)
          if (ranges) ranges.push(range)
          else numbers.set(number, [range])
        }
      }
    }
    return numbers
  }

  /** Whether these digits are an HTTP status or an SQLSTATE. */
  #isProtocol(at: number, digits: number): boolean {
    const before = this.#raw.slice(Math.max(0, at - 24), at)
    if (digits === 3) return status.test(before) || reason.test(this.#raw.slice(at, at + 32))
    return digits === 5 && sqlState.test(before)
  }

  #squeezedOf(length: number): { readonly parts: Parts; readonly at: readonly number[] } {
    if (this.#squeezed) return this.#squeezed
    let text = ''
    const at: number[] = []
    for (const { 0: run, index } of this.#low.matchAll(/[\p{L}\p{N}\uFFFF]+/gu)) {
      text += run
      for (let i = 0; i < run.length; i++) at.push(index + i)
    }
    return (this.#squeezed = { parts: new Parts(text, length, (part) => digitsIn(part) >= 3), at })
  }
}

// Of a key of the payload; with its plural.
const longestShown = 42
// One word, with the signs beside it; not if it has a digit.
const schemaWord = /(?<=^[^\p{L}\p{M}\p{N}_]*)[\p{L}\p{M}_]+(?=[^\p{L}\p{M}\p{N}_]*$)/u
const wholeWord = /^[\p{L}\p{M}\p{N}]+$/u
const insideName = /[\p{L}_]/u

/** The places of each word, in lower case and as written; `inner`: of each word of a name. */
interface Words {
  readonly low: Map<string, number[]>
  readonly raw: Map<string, number[]>
  readonly innerLow: Map<string, number[]>
  readonly innerRaw: Map<string, number[]>
}

interface Identifiers {
  readonly from: Int32Array
  readonly to: Int32Array
  readonly words: ReadonlySet<string>
}

function addTo(index: Map<string, number[]>, word: string, at: number): void {
  const places = index.get(word)
  if (places) places.push(at)
  else index.set(word, [at])
}

/** The word itself, and what it is the plural of. */
function singulars(word: string): string[] {
  if (!word.endsWith('s')) return [word]
  return word.endsWith('es') ? [word, word.slice(0, -1), word.slice(0, -2)] : [word, word.slice(0, -1)]
}

/** How many values hide each character. The mask has +1 where one begins and -1 where one ends. */
function totals(mask: Int32Array): Int32Array {
  let total = 0
  return mask.map((change) => (total += change))
}

function digitsIn(text: string): number {
  let count = 0
  for (const char of text) if (char >= '0' && char <= '9') count++
  return count
}

/** Lower case, with each character at its place. */
export function lower(text: string): string {
  const low = text.toLowerCase()
  return low.length === text.length ? low : text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

function masked(text: string, mask: Int32Array): string {
  let out = ''
  let from = 0
  while (from < text.length) {
    const isGone = (mask[from] as number) > 0
    let to = from
    while (to < text.length && (mask[to] as number) > 0 === isGone) to++
    out += isGone ? hidden(text.slice(from, to)) : text.slice(from, to)
    from = to
  }
  return out
}

/** Keeps the surrounding space, so that words stay separate. */
function hidden(text: string): string {
  const shown = text.trim()
  const before = text.slice(0, text.indexOf(shown))
  return shown === '' ? text : `${before}${gone}${text.slice(before.length + shown.length)}`
}
