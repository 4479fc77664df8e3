// Who may import whom, and what the core may not touch. `npm run lint` runs this over `src`.
//
//   core      decides. It imports only itself, and learns about time, chance and the outside through its arguments.
//   adapters  speak to one system each (sqlite, postgres, the process itself). They know the core, but not each other.
//   outer     (telemetry, server, cli, testing) is built on both, and neither leans on it.
//
// A folder that is not named here counts as core, so that a new one starts under the strict rules.
import { readdirSync, readFileSync } from 'node:fs'
import { posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

const adapters = ['sqlite', 'postgres', 'kafka', 'redis', 'webhook', 'watchdog']
const outer = ['telemetry', 'server', 'cli', 'testing']
const closedToAdapters = ['server', 'cli', 'testing']

/** The one file of the core that meets the real clock, timers, randomness and process. */
const systemRuntime = 'src/runtime/system.ts'

const clock = { rule: 'core-clock', instead: 'ask the Clock of src/runtime/ports.ts' }
const timers = { rule: 'core-timers', instead: 'wait with the Timers of src/runtime/ports.ts' }
const random = { rule: 'core-random', instead: 'draw from the Random of src/runtime/ports.ts' }
const outside = { rule: 'core-outside', instead: 'take what you need of it as an argument or through a port' }

/** A local of one of these names is reported too: a reader of the line can't tell the two apart. */
const forbiddenGlobals = new Map([
  ['performance', clock],
  ['setTimeout', timers],
  ['setInterval', timers],
  ['setImmediate', timers],
  ['queueMicrotask', timers],
  ['crypto', random],
  ['process', outside],
  ['fetch', outside],
])

const forbiddenMembers = new Map([
  ['Math.random', random],
  ['AbortSignal.timeout', timers],
])

/** The half of `Date` that is a calendar, where the answer depends on nothing but the argument. */
const pureDateMembers = ['parse', 'UTC', 'prototype']

/**
 * @typedef {{ rule: string, instead: string }} Finding
 * @typedef {Finding & { file: string, line: number }} Violation
 * @typedef {{ type: string, start: number, [field: string]: any }} Node
 * @typedef {{ node: Node, parent: Node, field: string, isType: boolean }} Visit `node` is `parent[field]`, or is in it
 */

/**
 * @param {Iterable<readonly [path: string, text: string]>} files their paths written like `src/log/append.ts`
 * @returns {Violation[]}
 */
export function checkBoundaries(files) {
  return [...files].flatMap(([file, text]) => {
    const layer = layerOf(file)
    if (layer === 'outer' || file.endsWith('.test.ts')) return []
    const { program, errors } = parseSync(file, text, { preserveParens: false })
    if (errors[0]) return [{ file, line: 1, rule: 'syntax', instead: `fix this first: ${errors[0].message}` }]

    const findingAt = (/** @type {Visit} */ visit) => {
      if (layer === 'adapter') return adapterImport(file, visit)
      return coreImport(file, visit) ?? (file === systemRuntime ? undefined : coreGlobal(visit))
    }
    return [...walk(program)].flatMap((visit) => {
      const finding = findingAt(visit)
      return finding ? [{ file, line: lineAt(text, visit.node.start), ...finding }] : []
    })
  })
}

/**
 * Files that import each other in a circle: none of them can be read alone. Types may refer to each other within a folder, which is one
 * idea; across folders not even types may, and values nowhere.
 *
 * @param {Iterable<readonly [path: string, text: string]>} files
 * @returns {Violation[]}
 */
export function checkCycles(files) {
  /** @type {Map<string, { to: string, line: number, isType: boolean }[]>} */
  const imports = new Map()
  for (const [file, text] of files) {
    if (file.endsWith('.test.ts')) continue
    const { program } = parseSync(file, text, { preserveParens: false })
    imports.set(
      file,
      program.body.flatMap((/** @type {any} */ node) => {
        const name = node.source?.value
        if (typeof name !== 'string' || !name.startsWith('.')) return []
        return { to: resolve(file, name), line: lineAt(text, node.start), isType: isOfTypes(node) }
      }),
    )
  }
  const rule = 'cycle'
  return [...imports].flatMap(([file, targets]) =>
    targets.flatMap(({ to, line, isType }) => {
      const isWithin = posix.dirname(file) === posix.dirname(to)
      const way = isType && isWithin ? undefined : wayBack(imports, to, file, isWithin)
      return way ? [{ file, line, rule, instead: `imports ${way.join(', which imports ')}: break the circle` }] : []
    }),
  )
}

/** @param {any} node an import or export declaration */
function isOfTypes({ importKind, exportKind, specifiers }) {
  if (importKind === 'type' || exportKind === 'type') return true
  const all = specifiers ?? []
  return all.length > 0 && all.every((/** @type {any} */ one) => one.importKind === 'type' || one.exportKind === 'type')
}

/**
 * The shortest way from one file to another.
 *
 * @param {ReadonlyMap<string, { to: string, isType: boolean }[]>} imports
 * @param {string} from
 * @param {string} target
 * @param {boolean} ofValues
 */
function wayBack(imports, from, target, ofValues) {
  /** @type {Map<string, string[]>} */
  const ways = new Map([[from, [from]]])
  for (const [file, way] of ways) {
    if (file === target) return way
    for (const { to, isType } of imports.get(file) ?? [])
      if (!ways.has(to) && !(ofValues && isType)) ways.set(to, [...way, to])
  }
  return undefined
}

/**
 * @param {string} file
 * @param {Visit} visit
 * @returns {Finding | undefined}
 */
function coreImport(file, { node, field }) {
  if (field !== 'source') return undefined
  const rule = 'core-imports'
  const name = node.value
  if (typeof name !== 'string') return { rule, instead: 'write the name of the file into the import()' }
  if (!name.startsWith('.')) return { rule, instead: `"${name}": leave it to an adapter, and type what you need of it` }
  const target = resolve(file, name)
  if (target.startsWith('src/') && layerOf(target) === 'core') return undefined
  return { rule, instead: `"${name}": let the core offer a port, and let the other side import that` }
}

/**
 * @param {string} file
 * @param {Visit} visit
 * @returns {Finding | undefined}
 */
function adapterImport(file, { node, field }) {
  if (field !== 'source' || typeof node.value !== 'string') return undefined
  const rule = 'adapter-imports'
  const folder = folderOf(resolve(file, node.value))
  if (closedToAdapters.includes(folder)) return { rule, instead: `"${node.value}": let ${folder} import the adapter` }
  if (!adapters.includes(folder) || folder === folderOf(file)) return undefined
  return { rule, instead: `"${node.value}": move what it shares with ${folder} into the core` }
}

/**
 * @param {Visit} visit
 * @returns {Finding | undefined}
 */
function coreGlobal(visit) {
  const name = visit.isType ? undefined : globalName(visit)
  if (name === undefined) return undefined
  const members = membersTaken(visit)
  const finding =
    forbiddenGlobals.get(name) ??
    members.map((member) => forbiddenMembers.get(`${name}.${member}`)).find(Boolean) ??
    (name === 'Date' && !isCalendar(visit, members) ? clock : undefined) ??
    // Handed on, taken apart or searched, the global object would hide every name above.
    (name === 'globalThis' && !(visit.field === 'object' && members[0]) ? outside : undefined)
  return finding && { ...finding, instead: `${name}: ${finding.instead}` }
}

/**
 * The global that is read here: `setTimeout`, or `globalThis.setTimeout`.
 *
 * @param {Visit} visit
 * @returns {string | undefined}
 */
function globalName({ node, parent, field }) {
  if (node.type === 'MemberExpression' && node.object.name === 'globalThis') return staticName(node)
  // After a dot, before a colon, or on the far side of an import or export a name is only a label.
  const isLabel = ['property', 'key', 'imported', 'exported'].includes(field) && !parent.computed
  return node.type === 'Identifier' && !isLabel ? node.name : undefined
}

/**
 * `now` in `Date.now`, in `Date['now']` and in `const { now } = Date`.
 *
 * @param {Visit} visit
 * @returns {(string | undefined)[]}
 */
function membersTaken({ parent, field }) {
  if (parent.type === 'MemberExpression' && field === 'object') return [staticName(parent)]
  if (field !== 'init' || parent.id?.type !== 'ObjectPattern') return []
  return parent.id.properties.map((/** @type {Node} */ property) => property.key?.name)
}

/**
 * @param {Visit} visit
 * @param {(string | undefined)[]} members
 */
function isCalendar({ parent, field }, members) {
  if (parent.type === 'NewExpression' && field === 'callee') return parent.arguments.length > 0
  if (parent.operator === 'instanceof') return true
  return members.length > 0 && members.every((member) => pureDateMembers.includes(member ?? ''))
}

/**
 * @param {Node} member
 * @returns {string | undefined}
 */
function staticName({ property, computed }) {
  return computed ? property.value : property.name
}

/**
 * @param {Node} parent
 * @param {boolean} insideType
 * @returns {Generator<Visit>}
 */
function* walk(parent, insideType = false) {
  for (const [field, value] of Object.entries(parent)) {
    for (const node of [value].flat()) {
      if (typeof node?.type !== 'string') continue
      // `x as T` and its like are values that carry a type; all else that starts with TS is gone when the program runs.
      const isType = insideType || (node.type.startsWith('TS') && !/(Expression|Assertion)$/.test(node.type))
      yield { node, parent, field, isType }
      yield* walk(node, isType)
    }
  }
}

/** @param {string} path */
function layerOf(path) {
  const folder = folderOf(path)
  if (adapters.includes(folder)) return 'adapter'
  return outer.includes(folder) ? 'outer' : 'core'
}

/** @param {string} path `sqlite` for `src/sqlite/store.ts`, and nothing for `src/errors.ts` */
function folderOf(path) {
  return /^src\/([^/]+)\//.exec(path)?.[1] ?? ''
}

/**
 * @param {string} file
 * @param {string} name
 */
function resolve(file, name) {
  if (name.startsWith('.')) return posix.join(posix.dirname(file), name)
  return name.replace(/^holdfast\/(.+)$/, 'src/$1/index.ts')
}

/**
 * @param {string} text
 * @param {number} offset
 */
function lineAt(text, offset) {
  return text.slice(0, offset).split('\n').length
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const paths = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[cm]?[jt]s$/.test(path))
    .map((path) => `src/${path.split(sep).join('/')}`)
  /** @type {[string, string][]} */
  const files = paths.map((path) => [path, readFileSync(root + path, 'utf8')])
  const violations = [...checkBoundaries(files), ...checkCycles(files)]
  for (const { file, line, rule, instead } of violations) console.log(`${file}:${line} ${rule} ${instead}`)
  if (violations.length > 0) process.exitCode = 1
  else console.error(`${paths.length} files keep to their side of the boundaries.`)
}
