/**
 * JSON.parse, without a fault of V8's (seen in Node 24.21): after `{"a":1,"\\":2}` it reads `{"a":1,"\u0041":2}` with the key
 * `\` instead of `A`. It guesses the next key from objects it made before, and compares the guess with the text as it stands there,
 * escapes not yet read; two keys can even fall together, and a value is lost. A wrong guess always has a backslash in it. So: no
 * backslash in the text, or none in any key that came out, and nothing can have gone wrong. Else the text is read again, by hand.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('\\') || !hasBackslashKey(value)) return value
  return readValue({ text, at: 0 })
}

/** A loop and no recursion: JSON.parse takes what is nested deeper than the stack. */
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

// Of a text that is known to be JSON: each token begins where the last one ended. Strings are walked by hand: on one of millions of
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
  // A string, a number or a word on its own: there is no key to guess.
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
  // Unlike an assignment it takes `__proto__` for a name like any other, as JSON.parse does.
  return Object.fromEntries(entries)
}
