// `npm run check`: types, lint, and the tests that a change reaches, in less than 90 seconds. CI runs all of them.
//
// What has changed is compared with the merge base of this branch and main, and includes what is not committed. `npm run check -- <ref>` compares
// with another commit.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chooseTests } from './related.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const begun = performance.now()
/** The answer has to be there at 90 s; what runs then is ended, and reported as left out. */
const deadlineMs = 85_000
/** Of test files, which run on two processes or more beside types and lint. */
const secondsOfTests = 75

const base = process.argv[2] ?? mergeBase()
const changed = [...lines('diff', '--name-only', base), ...lines('ls-files', '--others', '--exclude-standard')]
const choice = chooseTests({ changed, sources: readSources(), doors: readDoors(), seconds: secondsOfTests })

say(`${count(changed.length, 'changed file')} since ${base.slice(0, 12)}.`)
const steps = [step('types', 'npm', 'run', '-s', 'types'), step('lint', 'npm', 'run', '-s', 'lint')]
if (choice.run.length > 0) steps.push(step('tests', 'npx', 'vitest', 'run', '--reporter=dot', ...choice.run))
const results = await Promise.all(steps)

for (const { name, outcome, seconds, output } of results) {
  say(`${name}: ${outcome} (${seconds} s)`)
  if (outcome !== 'passed') process.stdout.write(output)
}
say(
  choice.run.length === 0
    ? 'No test file is reached by the change.'
    : `${count(choice.run.length, 'test file')}: ${choice.run.join(' ')}`,
)
if (choice.left.length > 0)
  say(
    `Left to CI, because they would take too long: ${count(choice.left.length, 'more test file')} that the change reaches.`,
  )
if (choice.everywhere.length > 0)
  say(`Any test may depend on ${choice.everywhere.join(', ')}: only CI runs all of them.`)
const verdict = results.some(({ outcome }) => outcome === 'failed')
  ? 'failed'
  : results.some(({ outcome }) => outcome === 'ended')
    ? 'incomplete'
    : 'ok'
if (results.some(({ outcome }) => outcome === 'ended'))
  say(`Ended after ${deadlineMs / 1_000} s, without a result: the machine is slow or busy.`)
say(`${verdict} after ${secondsSince(begun)} s. CI (.ci/run) runs everything.`)
process.exitCode = verdict === 'ok' ? 0 : 1

/**
 * @typedef {{ name: string, outcome: 'passed' | 'failed' | 'ended', seconds: string, output: string }} Result
 * @param {string} name
 * @param {string} command
 * @param {string[]} args
 * @returns {Promise<Result>}
 */
function step(name, command, ...args) {
  const started = performance.now()
  return new Promise((resolve) => {
    // A group of its own, so that its children can be ended with it.
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let output = ''
    let isEnded = false
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    const timer = setTimeout(
      () => {
        isEnded = true
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
      },
      deadlineMs - (performance.now() - begun),
    )
    child.once('error', (error) => (output += String(error)))
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve({
        name,
        outcome: isEnded ? 'ended' : code === 0 ? 'passed' : 'failed',
        seconds: secondsSince(started),
        output,
      })
    })
  })
}

/** The commit that this branch left main at, or else the last commit. */
function mergeBase() {
  for (const branch of ['origin/main', 'main']) {
    try {
      const found = git('merge-base', 'HEAD', branch).trim()
      if (found) return found
    } catch {
      // There is no such branch here.
    }
  }
  return 'HEAD'
}

/** @param {string[]} args */
function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

/** @param {string[]} args */
function lines(...args) {
  return git(...args)
    .split('\n')
    .filter(Boolean)
}

function readSources() {
  const files = [
    ...lines('ls-files', '*.ts', '*.mjs'),
    ...lines('ls-files', '--others', '--exclude-standard', '*.ts', '*.mjs'),
  ]
  return new Map(
    files.filter((file) => existsSync(`${root}${file}`)).map((file) => [file, readFileSync(`${root}${file}`, 'utf8')]),
  )
}

/** @returns {Record<string, string>} */
function readDoors() {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  return Object.fromEntries(
    Object.entries(exports).flatMap(([door, target]) => {
      const source = /** @type {Record<string, string>} */ (target)['@holdfast/source']
      return source === undefined ? [] : [[door.replace(/^\./, 'holdfast'), source.slice(2)]]
    }),
  )
}

/** @param {number} start */
function secondsSince(start) {
  return ((performance.now() - start) / 1_000).toFixed(1)
}

/** @param {number} n @param {string} noun */
function count(n, noun) {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** @param {string} text */
function say(text) {
  console.log(text)
}
