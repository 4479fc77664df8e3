// Runs before `npm test` and `npm start`, so that both work on a fresh clone and on a machine whose own Node is older
// than the one Holdfast needs. It must parse on Node 18: a user with an older Node should see a sentence, not a stack
// trace.
//
// `npm run` puts node_modules/.bin first on the PATH, so the command after this one finds the pinned Node there. `node`
// alone would not work, because a shell remembers where it first found a command. Hence `npx node` in `npm start`.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const pinnedNode = `${root}node_modules/.bin/node`
const neededMajor = major(readJson('package.json')?.engines.node)
const ownNodeWillDo = major(process.versions.node) >= neededMajor

const reason = whyInstall()
if (reason) install(reason)
if (!ownNodeWillDo) requirePinnedNode()

/** @returns {string | undefined} */
function whyInstall() {
  if (!existsSync(`${root}node_modules`)) return 'node_modules is missing'
  const drift = lockDrift(readJson('package-lock.json'), readJson('node_modules/.package-lock.json'))
  if (drift) return drift
  // If the installed Node is new enough, the pinned one is not needed, and requiring it would reinstall on every run
  // where install scripts are turned off.
  if (!ownNodeWillDo && !existsSync(pinnedNode)) return 'node_modules/.bin/node is missing'
  return undefined
}

/**
 * Compares package-lock.json with npm's list of what it installed. File times would be cheaper, but a checkout or a copy
 * changes them without changing anything.
 *
 * @typedef {{ version?: string, integrity?: string, optional?: boolean, devOptional?: boolean }} Locked
 * @param {{ packages: Record<string, Locked> } | undefined} wanted
 * @param {{ packages: Record<string, Locked> } | undefined} installed
 * @returns {string | undefined}
 */
function lockDrift(wanted, installed) {
  if (!wanted) return undefined
  if (!installed) return 'the last npm install did not finish'
  for (const [path, want] of Object.entries(wanted.packages)) {
    const have = installed.packages[path]
    // An optional package that is absent was built for another platform.
    if (path === '' || (!have && (want.optional || want.devOptional))) continue
    const same = have && have.version === want.version && have.integrity === want.integrity
    if (!same) return `${path} differs from package-lock.json`
  }
  const extra = Object.keys(installed.packages).find((path) => !wanted.packages[path])
  return extra && `${extra} is no longer in package-lock.json`
}

/** @param {string} why */
function install(why) {
  say(`${why}: running npm ci`)
  // The tools are devDependencies, which npm leaves out under NODE_ENV=production.
  const args = ['ci', '--include=dev']
  const cli = process.env.npm_execpath
  // The output of npm goes to stderr: stdout belongs to the next command.
  /** @type {import('node:child_process').SpawnSyncOptions} */
  const options = { cwd: root, stdio: ['inherit', 2, 'inherit'] }
  const { status, error } =
    cli && basename(cli) === 'npm-cli.js'
      ? spawnSync(process.execPath, [cli, ...args], options)
      : spawnSync(`npm ${args.join(' ')}`, { ...options, shell: true })
  if (status !== 0) {
    say(`npm ci failed${error ? `: ${error.message}` : ''}. Its message is above. Fix the problem and run this again.`)
    process.exit(1)
  }
}

function requirePinnedNode() {
  const answer = existsSync(pinnedNode) ? spawnSync(pinnedNode, ['--version'], { encoding: 'utf8' }).stdout?.trim() : ''
  if (answer && major(answer) >= neededMajor) return
  say(
    [
      `Holdfast needs Node ${neededMajor} or newer. This is Node ${process.versions.node}, and the Node that`,
      `comes with the devDependencies is ${answer || 'not there'} (node_modules/.bin/node).`,
      '',
      'Do one of these:',
      '  npm rebuild node --ignore-scripts=false   if the packages were installed with --ignore-scripts',
      '  npm ci                                    if node_modules was copied from another machine',
      `  install Node ${neededMajor} yourself                  and run this again`,
    ].join('\n'),
  )
  process.exit(1)
}

/** @param {string} path */
function readJson(path) {
  try {
    return JSON.parse(readFileSync(root + path, 'utf8'))
  } catch {
    return undefined
  }
}

/** @param {string} version such as `v24.1.0` or `>=24` */
function major(version) {
  return Number(/\d+/.exec(version)?.[0])
}

/** @param {string} text */
function say(text) {
  process.stderr.write(`${text}\n`)
}
