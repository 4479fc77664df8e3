/** The first words of each statement of a text, in capitals: as many as needed to identify it. */
export type Beginning = readonly string[]

const wordsKept = 4
const wordAt = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y
const dollarTag = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y
const comment = /\/\*|\*\//g
const continued = /(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:\s|--[^\n\r]*[\n\r])*'/y
const inEscapeString = /\\|'/g

// A text with none of these needs no further check.
const suspicious =
  /\b(?:commit|end|abort|rollback|begin|start|prepare|set|reset|discard|deallocate|listen|unlisten|load)\b/i

const sessionFunctions = /\b(?:set_config|pg_advisory_lock|pg_try_advisory_lock|pg_advisory_lock_shared|setseed)\b/i

/** Whether a text has a statement that would end the current transaction, or begin another. */
export function endsTransaction(text: string): boolean {
  return suspicious.test(text) && beginningsOf(text).some(isTransactional)
}

/** Whether a text may change the session beyond the transaction. */
export function leavesTraces(text: string): boolean {
  return sessionFunctions.test(text) || (suspicious.test(text) && beginningsOf(text).some(isSessionWide))
}

function isTransactional([first = '', second = '', third = '']: Beginning): boolean {
  switch (first) {
    case 'COMMIT':
    case 'END':
    case 'ABORT':
    case 'BEGIN':
    case 'START':
      return true
    case 'ROLLBACK':
      return (['WORK', 'TRANSACTION'].includes(second) ? third : second) !== 'TO'
    case 'PREPARE':
      return second === 'TRANSACTION'
    default:
      return false
  }
}

function isSessionWide([first = '', second = '']: Beginning): boolean {
  if (first === 'SET') return !['LOCAL', 'TRANSACTION', 'CONSTRAINTS'].includes(second)
  return ['RESET', 'DISCARD', 'PREPARE', 'DEALLOCATE', 'LISTEN', 'UNLISTEN', 'LOAD'].includes(first)
}

/**
 * Reads a text like PostgreSQL's lexer, as far as needed for statements and their first words: comments, strings and quoted names
 * are skipped. A doubled quote is treated as the end of one string and the start of the next, which has the same result.
 */
export function beginningsOf(text: string): Beginning[] {
  const beginnings: string[][] = []
  let words: string[] = []
  // The body of a function may be SQL between BEGIN ATOMIC and END, with its own semicolons.
  let depth = 0
  let last = ''
  let i = 0
  while (i < text.length) {
    const two = text.slice(i, i + 2)
    const tag = text[i] === '$' ? matchAt(dollarTag, text, i) : undefined
    const found = matchAt(wordAt, text, i)
    if (two === '--') i = endOfLine(text, i)
    else if (two === '/*') i = endOfComment(text, i + 2)
    else if (/^e'$/i.test(two)) i = endOfEscapeString(text, i + 2)
    else if (tag) i = after(text, tag, i + tag.length)
    else if (found) {
      const next = found.toUpperCase()
      depth = depthAfter(last, next, words, depth)
      last = next
      if (words.length < wordsKept) words.push(next)
      i += found.length
    } else if (text[i] === "'" || text[i] === '"') i = after(text, text[i] as string, i + 1)
    else {
      if (text[i] === ';' && depth === 0) {
        beginnings.push(words)
        words = []
        // Other first characters can't start a word that ends a transaction.
      } else if (words.length === 0 && !/\s|;/.test(text[i] as string)) words.push('')
      i++
    }
  }
  return [...beginnings, words]
}

function depthAfter(last: string, next: string, words: Beginning, depth: number): number {
  if (depth === 0) {
    const isRoutine = words[0] === 'CREATE' && words.some((word) => word === 'FUNCTION' || word === 'PROCEDURE')
    return isRoutine && last === 'BEGIN' && next === 'ATOMIC' ? 1 : 0
  }
  return next === 'CASE' ? depth + 1 : next === 'END' ? depth - 1 : depth
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

function after(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from)
  return found < 0 ? text.length : found + end.length
}

function endOfLine(text: string, from: number): number {
  const found = text.slice(from).search(/[\n\r]/)
  return found < 0 ? text.length : from + found
}

/** These comments can be nested. */
function endOfComment(text: string, from: number): number {
  comment.lastIndex = from
  for (let depth = 1; depth > 0; ) {
    const found = comment.exec(text)
    if (!found) return text.length
    depth += found[0] === '/*' ? 1 : -1
  }
  return comment.lastIndex
}

function endOfEscapeString(text: string, from: number): number {
  inEscapeString.lastIndex = from
  for (;;) {
    const found = inEscapeString.exec(text)
    if (!found) return text.length
    if (found[0] === "'") {
      const end = inEscapeString.lastIndex
      // After a new line the string may continue, and is still an escape string.
      const more = matchAt(continued, text, end)
      if (more === undefined) return end
      inEscapeString.lastIndex = end + more.length
      continue
    }
    inEscapeString.lastIndex++
  }
}
