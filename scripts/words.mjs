// The words that our English avoids (see CONTRIBUTING.md), and where they are in what users and contributors read: the docs, and the comments and texts of
// `src`, `bench` and `scripts`.
//
//   node scripts/words.mjs [path…]     prints file:line, the words and what to write instead; exits with 1 when it found any
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

const it =
  '(?:it|them|him|her|this|that|all|one|(?:the|a|an|its|this|that|each|every|held|parked|\\d+)(?: \\w+){1,2}|lanes?|letters?|events?|what \\w+ \\w+)'
const noun =
  '(?:JSON|function|text|number|list|array|object|Date|time|duration|AbortSignal|event|events|name|option|directory|folder|file|store|position|version|key|command|subscription|projection|handler|config|URL|letter|lane|fold|SQL|policy|breaker|backoff|UUID|valid|\\w+ of ours)'

/** In the order of the table of our style: a pattern and what to write instead. */
/** @type {[RegExp, string][]} */
export const words = [
  [/\bmend(?:s|ed|ing)?\b/giu, 'fix, fixed'],
  [new RegExp(`\\blet(?:s|ting)? ${it} go\\b|\\blet go\\b|\\blets go of\\b`, 'giu'), 'release, redrive'],
  [
    /\b(?:nobody|somebody|whoever)(?:'s|’s)?\b|\bwho is alone\b/giu,
    'no process, another process, the owner, the operator',
  ],
  [/\bunless you say\b/giu, 'default: `10s`'],
  [/\b(?:the )?others? go(?:es)? on\b|\blets? the others\b/giu, 'other keys are not affected'],
  [
    /\b(?:it|that|this) is (?:told|said)\b|\b(?:is|are) told (?:what|that|when|how|about)\b|\bsays? why\b/giu,
    'reported, recorded; the reason is required',
  ],
  [/\bseen? to elsewhere\b|\bsee to events elsewhere\b/giu, 'handled manually'],
  [new RegExp(`\\b(?:is|are) no ${noun}\\b`, 'gu'), 'is not a …, must be a …'],
  [/\b(?:brought|bring|brings|bringing) (?:\w+ )?to an end\b|\bgone through\b/giu, 'processed'],
  [/\b(?:what|whatever|that|those that|all that) stands? behind\b/giu, 'later events of the same key'],
  // A quoted word is a name in code: the simulator derives random numbers from the name 'person'.
  [/(?<!')\bpersons?\b(?!al|')|\bpeople\b/giu, 'an operator, a user'],
  [/\bhow it is called\b/giu, 'usage'],
  [/\bwhat the log makes of it\b/giu, 'a replay of the log'],
]

/**
 * @param {string} text
 * @returns {{ line: number, found: string, instead: string }[]}
 */
export function offences(text) {
  /** @type {{ line: number, found: string, instead: string }[]} */
  const found = []
  for (const [pattern, instead] of words) {
    for (const match of text.matchAll(pattern)) {
      const line = text.slice(0, match.index).split('\n').length
      found.push({ line, found: match[0], instead })
    }
  }
  return found.toSorted((a, b) => a.line - b.line)
}

// The text of a migration is checksummed: not even its comments may change. This file names the words.
const skipped = new Set(['node_modules', 'dist', '.git', 'runs', 'migrations', 'words.mjs'])

function readmesOfTests() {
  const folders = readdirSync(join(root, 'test'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.map(({ name }) => join('test', name, 'README.md')).filter((path) => existsSync(join(root, path)))
}

/** What users and contributors read: pages, and sources without their tests. */
export function readByUsers(
  paths = [
    'README.md',
    'CHANGELOG.md',
    'CODE_OF_CONDUCT.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    '.github',
    'docs',
    'examples',
    'src',
    'bench',
    'scripts',
    ...readmesOfTests(),
  ],
) {
  /** @type {string[]} */
  const files = []
  const walk = (/** @type {string} */ path) => {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory()) {
      for (const name of readdirSync(path)) if (!skipped.has(name)) walk(join(path, name))
    } else if (stat && /\.(?:ts|mts|mjs|md|sql|yaml|yml)$/.test(path) && !path.endsWith('.test.ts')) files.push(path)
  }
  for (const path of paths) walk(join(root, path))
  return files.map((path) => relative(root, path))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const given = process.argv.slice(2)
  let count = 0
  for (const file of readByUsers(given.length > 0 ? given : undefined)) {
    for (const { line, found, instead } of offences(readFileSync(join(root, file), 'utf8'))) {
      console.log(`${file}:${line}: "${found.replaceAll('\n', ' ')}" → ${instead}`)
      count += 1
    }
  }
  console.error(`${count} found`)
  process.exitCode = count === 0 ? 0 : 1
}
