/**
 * JSON.parse without a bug of V8 (seen in Node 24.21): after `{"a":1,"\\":2}` it reads `{"a":1,"\u0041":2}` with the key `\`
 * instead of `A`. It predicts the next key from earlier objects, and compares the prediction with the raw text before unescaping.
 * Two keys can even collapse into one, and a value is lost. A wrong key always contains a backslash. So if neither the text nor
 * any parsed key has a backslash, the result is correct. Otherwise the text is parsed again by our own parser.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('\\') || !hasBackslashKey(value)) return value
  return readValue({ text, at: 0 })
}

/** A loop instead of recursion: JSON.parse accepts values nested deeper than the stack. */
function hasBackslashKey(value: unknown): boolean {
  const left = [value]
  while (left.length > 0) {
    const one = left.pop()
    if (typeof one !== 'object' || one === null) continue
    if (!Array.isArray(one) && Object.keys(one).some((key) => key.includes('\\'))) return true
    for (const child of Object.values(one)) if (typeof child === 'object') left.push(child)
  }
  return false
}

interface Cursor {
  readonly text: string
  at: number
}

// For a text that is known to be JSON: each token starts where the last one ended. Strings are scanned by a loop: on millions of
// characters a pattern would overflow the stack.
const token = /\s*(["[\]{}:,]|[^\s[\]{}:,"]+)/y
const quote = 34
const backslash = 92

function next(cursor: Cursor): string {
  const { text } = cursor
  token.lastIndex = cursor.at
  const part = token.exec(text)?.[1] ?? ''
  cursor.at = token.lastIndex
  if (part !== '"') return part
  const from = cursor.at - 1
  let at = cursor.at
  for (let char = text.charCodeAt(at); char !== quote; char = text.charCodeAt(at)) at += char === backslash ? 2 : 1
  cursor.at = at + 1
  return text.slice(from, cursor.at)
}

function readValue(cursor: Cursor, first = next(cursor)): unknown {
  if (first === '[') return readArray(cursor)
  if (first === '{') return readObject(cursor)
  // A single string, number or word, without keys.
  return JSON.parse(first)
}

function readArray(cursor: Cursor): unknown[] {
  const array: unknown[] = []
  for (let part = next(cursor); part !== ']'; part = next(cursor)) if (part !== ',') array.push(readValue(cursor, part))
  return array
}

function readObject(cursor: Cursor): object {
  const entries: [string, unknown][] = []
  for (let part = next(cursor); part !== '}'; part = next(cursor)) {
    if (part === ',') continue
    next(cursor)
    entries.push([JSON.parse(part) as string, readValue(cursor)])
  }
  // Unlike an assignment, it treats `__proto__` as a normal name, as JSON.parse does.
  return Object.fromEntries(entries)
}
