// Makes the tarball that is published: `npm run -s package`, or with `--to <folder>`. Prints what `npm pack --json` prints.
//
// The manifest of this folder has two things that a user must not get: the condition `@holdfast/source`, whose files are not in the package, and the
// settings of our own tools. So the package is put together in a folder of its own. Nothing here is changed meanwhile, not even `dist`: tests can run
// beside it.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { publishedManifest } from './manifest.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({ options: { to: { type: 'string', default: root }, refuse: { type: 'boolean' } } })

if (values.refuse) {
  console.error(
    'The package is not published from this folder.\nRun: npm run -s package, then npm publish <the tarball>. See docs/releasing.md.',
  )
  process.exit(1)
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
try {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(publishedManifest(manifest), undefined, 2)}\n`)
  // The pages link to the examples.
  const folders = ['docs', 'examples']
  const isShipped = (/** @type {string} */ name) => name.endsWith('.md') || name === 'LICENSE' || folders.includes(name)
  const filter = (/** @type {string} */ path) => basename(path) !== 'node_modules'
  for (const name of readdirSync(root).filter(isShipped))
    cpSync(join(root, name), join(folder, name), { recursive: true, filter })
  npm(root, 'exec', '--offline', '--', 'tsc', '-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist'))
  const to = resolve(values.to)
  mkdirSync(to, { recursive: true })
  process.stdout.write(npm(folder, 'pack', '--json', '--pack-destination', to))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** @param {string} cwd @param {string[]} args */
function npm(cwd, ...args) {
  return execFileSync('npm', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  })
}
