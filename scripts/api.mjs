// The public surface, one report for each door of package.json, made from the built types.
//
//   npm run api              writes api/*.txt
//   npm run api -- --check   compares, prints what differs, and fails if anything does
//
// A report has every exported name with its whole declaration, and the declarations that those reach and no door exports: a change of
// either is a change of what users compile against.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
// TypeScript 7 has no JavaScript API; the oldest version that is supported has one, and reads what the newest writes.
const ts = /** @type {typeof import('../test/types/oldest/node_modules/typescript/lib/typescript.js')} */ (
  createRequire(join(root, 'test/types/oldest/package.json'))('typescript')
)

/**
 * @typedef {import('../test/types/oldest/node_modules/typescript/lib/typescript.js').Node} Node
 * @typedef {import('../test/types/oldest/node_modules/typescript/lib/typescript.js').SourceFile} SourceFile
 * @typedef {import('../test/types/oldest/node_modules/typescript/lib/typescript.js').Statement} Statement
 * @typedef {{ file: string, name: string, isType: boolean }} Target a name at the top of a file
 * @typedef {{ source: SourceFile, own: Map<string, Statement[]>, imported: Map<string, Target>, exported: Map<string, Target>, stars: string[] }} Module
 */

/**
 * @param {string} types the folder with the built `.d.ts` files, as `dist` has them
 * @param {Readonly<Record<string, string>>} doors the entry file of each door in that folder
 * @returns {Map<string, string>} the report of each door
 */
export function reportsOf(types, doors) {
  const modules = readModules()
  const ofDoors = Object.entries(doors).map(([door, entry]) => ({
    door,
    names: exportsOf(modules(join(types, entry))),
  }))
  const known = new Set(ofDoors.flatMap(({ names }) => Array.from(names.values(), keyOf)))
  return new Map(ofDoors.map(({ door, names }) => [door, reportOf(door, names, known, modules)]))

  /** @param {Module} module */
  function exportsOf(module) {
    /** @type {Map<string, Target>} */
    const names = new Map()
    for (const star of module.stars) for (const [name, target] of exportsOf(modules(star))) names.set(name, target)
    for (const [name, target] of module.exported) names.set(name, finalOf(target, modules))
    return names
  }
}

/**
 * @param {string} door
 * @param {Map<string, Target>} names
 * @param {Set<string>} known what some door exports
 * @param {(file: string) => Module} modules
 */
function reportOf(door, names, known, modules) {
  const printed = sorted(names).map(([name, target]) => printDeclaration(target, name, modules))
  /** @type {Map<string, Target>} */
  const hidden = new Map()
  const queue = [...names.values()]
  for (let target = queue.pop(); target; target = queue.pop()) {
    for (const reached of reachedFrom(target, modules)) {
      const key = keyOf(reached)
      if (known.has(key) || hidden.has(key)) continue
      hidden.set(key, reached)
      queue.push(reached)
    }
  }
  const unnamed = [...hidden.values()]
    .map((target) => printDeclaration(target, target.name, modules))
    .toSorted((a, b) => (a < b ? -1 : 1))
  const title = `${door}: ${names.size} exported names. Made by \`npm run api\`; do not edit.`
  const parts = [title, ...printed]
  if (unnamed.length > 0) parts.push('--- Reached by these, and exported by no door:', ...unnamed)
  return `${parts.join('\n\n')}\n`
}

/** @param {Map<string, Target>} names */
function sorted(names) {
  return [...names].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** @param {Target} target */
function keyOf({ file, name }) {
  return `${file} ${name}`
}

/**
 * @param {Target} target
 * @param {string} as what the door calls it
 * @param {(file: string) => Module} modules
 */
function printDeclaration({ file, name, isType }, as, modules) {
  const { source, own } = modules(file)
  const declarations = own.get(name)
  if (!declarations) throw new Error(`${file} has no ${name}.`)
  const printer = ts.createPrinter({ removeComments: true })
  const text = declarations
    .map((node) => printer.printNode(ts.EmitHint.Unspecified, node, source))
    .map((printed) => printed.replace(/^export /, '').replace(/^declare /, ''))
    .join('\n')
    // Which file it is in is not part of the surface.
    .replaceAll(/import\("[^"]+"\)\./g, '')
  const isValue = declarations.some(
    (node) => ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node) || ts.isVariableStatement(node),
  )
  const renamed = as === name ? '' : `${as} is `
  return `${renamed}${isType && isValue ? 'only the type of ' : ''}${text}`
}

/**
 * The declarations of our own that a declaration names.
 *
 * @param {Target} target
 * @param {(file: string) => Module} modules
 * @returns {Target[]}
 */
function reachedFrom({ file, name }, modules) {
  const module = modules(file)
  /** @type {Target[]} */
  const found = []
  const visit = (/** @type {Node} */ node) => {
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) {
      const from = resolveFile(file, node.argument.literal.text)
      if (from && node.qualifier && ts.isIdentifier(node.qualifier))
        found.push(finalOf({ file: from, name: node.qualifier.text, isType: true }, modules))
    } else if (ts.isIdentifier(node) && !isLabel(node)) {
      const imported = module.imported.get(node.text)
      if (imported) found.push(finalOf(imported, modules))
      else if (module.own.has(node.text)) found.push({ file, name: node.text, isType: true })
    }
    ts.forEachChild(node, visit)
  }
  for (const declaration of module.own.get(name) ?? []) visit(declaration)
  return found.filter((reached) => keyOf(reached) !== keyOf({ file, name, isType: true }))
}

/**
 * The name of a member, a parameter or the declaration itself, which refers to nothing.
 *
 * @param {Node} node
 */
function isLabel(node) {
  const { parent } = node
  return parent !== undefined && 'name' in parent && parent.name === node
}

/**
 * Where a name is declared, through all files that hand it on.
 *
 * @param {Target} target
 * @param {(file: string) => Module} modules
 * @returns {Target}
 */
function finalOf(target, modules) {
  const module = modules(target.file)
  if (module.own.has(target.name)) return target
  const next = module.exported.get(target.name) ?? module.imported.get(target.name)
  if (next && keyOf(next) !== keyOf(target)) {
    const final = finalOf(next, modules)
    return { ...final, isType: final.isType || target.isType }
  }
  for (const star of module.stars) {
    const found = finalOf({ ...target, file: star }, modules)
    if (modules(found.file).own.has(found.name)) return found
  }
  return target
}

/** @returns {(file: string) => Module} */
function readModules() {
  /** @type {Map<string, Module>} */
  const known = new Map()
  return (file) => {
    const module = known.get(file) ?? readModule(file)
    known.set(file, module)
    return module
  }
}

/**
 * @param {string} file
 * @returns {Module}
 */
function readModule(file) {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  /** @type {Module} */
  const module = { source, own: new Map(), imported: new Map(), exported: new Map(), stars: [] }
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) readImport(module, file, statement)
    else if (ts.isExportDeclaration(statement)) readExport(module, file, statement)
    else readOwn(module, file, statement)
  }
  return module
}

/**
 * @param {Module} module
 * @param {string} file
 * @param {import('../test/types/oldest/node_modules/typescript/lib/typescript.js').ImportDeclaration} statement
 */
function readImport({ imported }, file, { importClause, moduleSpecifier }) {
  const from = ts.isStringLiteral(moduleSpecifier) ? resolveFile(file, moduleSpecifier.text) : undefined
  const bindings = importClause?.namedBindings
  if (!from || !bindings || !ts.isNamedImports(bindings)) return
  for (const { name, propertyName } of bindings.elements)
    imported.set(name.text, { file: from, name: (propertyName ?? name).text, isType: true })
}

/**
 * @param {Module} module
 * @param {string} file
 * @param {import('../test/types/oldest/node_modules/typescript/lib/typescript.js').ExportDeclaration} statement
 */
function readExport({ exported, stars }, file, { exportClause, moduleSpecifier, isTypeOnly }) {
  const from = moduleSpecifier && ts.isStringLiteral(moduleSpecifier) ? resolveFile(file, moduleSpecifier.text) : file
  if (!from) throw new Error(`${file} exports what another package has.`)
  if (!exportClause) return void stars.push(from)
  if (!ts.isNamedExports(exportClause)) throw new Error(`${file} exports a namespace.`)
  for (const { name, propertyName, isTypeOnly: isOne } of exportClause.elements)
    exported.set(name.text, { file: from, name: (propertyName ?? name).text, isType: isTypeOnly || isOne })
}

/**
 * @param {Module} module
 * @param {string} file
 * @param {Statement} statement
 */
function readOwn({ own, exported }, file, statement) {
  const isExported =
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
  const names = ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map(({ name }) => name)
    : 'name' in statement
      ? [/** @type {Node} */ (statement.name)]
      : []
  for (const name of names) {
    if (!ts.isIdentifier(name)) continue
    own.set(name.text, [...(own.get(name.text) ?? []), statement])
    if (isExported) exported.set(name.text, { file, name: name.text, isType: false })
  }
}

/**
 * @param {string} file
 * @param {string} specifier
 * @returns {string | undefined} nothing for another package
 */
function resolveFile(file, specifier) {
  if (!specifier.startsWith('.')) return undefined
  return resolve(dirname(file), specifier.replace(/\.(js|ts)$/, '.d.ts'))
}

/**
 * The lines that differ, each with a few around it.
 *
 * @param {string} before
 * @param {string} after
 * @returns {string} nothing when they are the same
 */
export function diffOf(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')]
  let [start, end] = [0, 0]
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++
  if (start === a.length && a.length === b.length) return ''
  const changed = changesOf(a.slice(start, a.length - end), b.slice(start, b.length - end))
  const around = (/** @type {string[]} */ lines) => lines.map((line) => `  ${line}`)
  return [
    ...around(a.slice(Math.max(0, start - 3), start)),
    ...changed,
    ...around(a.slice(a.length - end).slice(0, 3)),
  ].join('\n')
}

/**
 * By the longest common subsequence.
 *
 * @param {string[]} a
 * @param {string[]} b
 */
function changesOf(a, b) {
  const width = b.length + 1
  const longest = new Uint32Array((a.length + 1) * width)
  const at = (/** @type {number} */ i, /** @type {number} */ j) => longest[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  }
  /** @type {string[]} */
  const lines = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      lines.push(`  ${a[i++]}`)
      j++
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) lines.push(`- ${a[i++]}`)
    else lines.push(`+ ${b[j++]}`)
  }
  // Long stretches that are the same say nothing.
  const isNear = (/** @type {number} */ n) =>
    lines.slice(Math.max(0, n - 3), n + 4).some((line) => !line.startsWith('  '))
  return lines.filter((_, n) => isNear(n))
}

/**
 * The doors of package.json, and their entry files among the built types.
 *
 * @returns {Record<string, string>}
 */
export function doorsOf() {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return Object.fromEntries(
    Object.entries(/** @type {Record<string, { types?: string }>} */ (exports)).flatMap(([door, { types }]) =>
      types === undefined ? [] : [[door === '.' ? name : `${name}${door.slice(1)}`, types.replace('./dist/', '')]],
    ),
  )
}

/** @param {string} door `sqlite.txt` for `holdfast/sqlite` */
export function fileOf(door) {
  return `${door.split('/').at(-1)}.txt`
}

/** Into a folder of its own, which goes with the process, so that a build that is there is left as it is. */
export function buildTypes() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-api-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const args = [
    '-p',
    'tsconfig.build.json',
    '--emitDeclarationOnly',
    '--declarationMap',
    'false',
    '--sourceMap',
    'false',
  ]
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const built = spawnSync(process.execPath, [tsc, ...args, '--outDir', folder], { cwd: root, encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`The types can not be built.\n${built.stdout}${built.stderr}`)
  return folder
}

/** @param {boolean} isCheck */
function main(isCheck) {
  const reports = reportsOf(buildTypes(), doorsOf())
  const folder = join(root, 'api')
  mkdirSync(folder, { recursive: true })
  const files = new Map([...reports].map(([door, report]) => [fileOf(door), report]))
  const stale = readdirSync(folder).filter((file) => !files.has(file))
  if (!isCheck) {
    for (const file of stale) rmSync(join(folder, file))
    for (const [file, report] of files) writeFileSync(join(folder, file), report)
    console.error(`${files.size} reports written to api/.`)
    return
  }
  const differing = [...files].flatMap(([file, report]) => {
    const path = join(folder, file)
    const diff = diffOf(existsSync(path) ? readFileSync(path, 'utf8') : '', report)
    return diff === '' ? [] : [`api/${file}\n${diff}`]
  })
  for (const file of stale) differing.push(`api/${file} is of a door that package.json does not have.`)
  if (differing.length === 0) {
    console.error(`${files.size} reports in api/ are those of the types.`)
    return
  }
  console.log(differing.join('\n\n'))
  console.error('The public surface changed. If it should, run `npm run api` and commit api/.')
  process.exitCode = 1
}

if (import.meta.main) main(process.argv.includes('--check'))
