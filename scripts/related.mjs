// Which tests `npm run check` runs: those that a change reaches, the nearest first, as many as fit into the time.
import { posix } from 'node:path'

/**
 * @typedef {object} Choice
 * @property {string[]} run The nearest first.
 * @property {string[]} left Reached, and left to CI for want of time.
 * @property {string[]} everywhere Changed files that no import leads to and every test may depend on.
 */

/**
 * Seconds that a test file takes on two idle cores, roughly. By these `npm run check` decides how many files it runs, with a deadline for when they are
 * wrong, and `vitest.config.ts` in which order. The first that fits counts.
 *
 * @type {readonly [RegExp, number][]}
 */
const costs = [
  [/^bench\/bench\.test\.ts$/, 80],
  [/^test\/(rebuild|crash)\/kill\.test\.ts$/, 40],
  [/^test\/(handlers|redrive)\/(kills|deadly)\.test\.ts$/, 40],
  [/^src\/postgres\/contract\.test\.ts$/, 40],
  [/^test\/(chaos\/chaos|gap\/gap)\.test\.ts$/, 35],
  [/^examples\/bank\//, 30],
  [/^test\/regressions\/engine-postgres\.test\.ts$/, 30],
  [/^test\/package\//, 25],
  [/^(examples|test\/(chaos|conformance|crash|crashpoints|failures|fuzz|handlers|planted|sim|watchdog))\//, 15],
  [/(^|[/-])(contract|stress|model|crash)\.test\.ts$/, 15],
  [/^src\/postgres\//, 4],
  [/^src\//, 0.7],
  [/^test\/ground\//, 0.7],
  [/^test\//, 3],
]
/** From here on a test file is not run by `npm run check` just because it was changed itself. */
const long = 15

/** No import leads to these, and any test may depend on them. */
const settings =
  /^(package(-lock)?\.json|tsconfig.*\.json|vitest\.config\.ts|\.npmrc|test\/postgres\/(setup|server|cluster|template|binaries)\.ts)$/

/**
 * @param {object} input
 * @param {readonly string[]} input.changed Paths from the root, with forward slashes; a deleted file too.
 * @param {ReadonlyMap<string, string>} input.sources The text of every TypeScript and JavaScript file, by path.
 * @param {Readonly<Record<string, string>>} input.doors What the names of the package lead to: `holdfast` to `src/index.ts`.
 * @param {number} input.seconds Of test files, all together.
 * @returns {Choice}
 */
export function chooseTests({ changed, sources, doors, seconds }) {
  const distances = distancesFrom(
    changed,
    importersOf(sources, doors, new Set([...sources.keys(), ...changed])),
    sources,
  )
  const reached = [...distances]
    .filter(([file]) => isTest(file) && sources.has(file))
    .toSorted(([a, near], [b, far]) => near - far || costOf(a) - costOf(b) || (a < b ? -1 : 1))
    .map(([file]) => file)
  /** @type {Choice} */
  const choice = { run: [], left: [], everywhere: changed.filter((file) => settings.test(file)) }
  let spent = 0
  for (const file of reached) {
    // A test that was changed itself is run, unless it is a long one: nothing else tells whether it is right.
    const isChanged = distances.get(file) === 0 && costOf(file) < long
    const fits = isChanged || spent + costOf(file) <= seconds
    if (fits) spent += costOf(file)
    ;(fits ? choice.run : choice.left).push(file)
  }
  return choice
}

/** @param {string} file */
function isTest(file) {
  return file.endsWith('.test.ts')
}

/** @param {string} file From the root, with forward slashes. */
export function costOf(file) {
  return costs.find(([pattern]) => pattern.test(file))?.[1] ?? 1
}

/**
 * How many steps each file is away from a change.
 *
 * @param {readonly string[]} changed
 * @param {ReadonlyMap<string, readonly string[]>} importers
 * @param {ReadonlyMap<string, string>} sources
 */
function distancesFrom(changed, importers, sources) {
  /** @type {Map<string, number>} */
  const distances = new Map()
  let ring = changed.flatMap((file) => (isCode(file) ? [file] : testsThatName(file, sources)))
  for (let distance = 0; ring.length > 0; distance++) {
    for (const file of ring) if (!distances.has(file)) distances.set(file, distance)
    ring = [...new Set(ring.flatMap((file) => importers.get(file) ?? []))].filter((file) => !distances.has(file))
  }
  return distances
}

/** @param {string} file */
function isCode(file) {
  return /\.(m?ts|mjs)$/.test(file)
}

/**
 * A page or a data file has no importers. What reads it has its name, or that of one of its folders, in a string.
 *
 * @param {string} file
 * @param {ReadonlyMap<string, string>} sources
 */
function testsThatName(file, sources) {
  const names = [posix.basename(file), ...(file.endsWith('.md') ? ["'.md'", '\\.md'] : [])]
  return [...sources]
    .filter(([path, text]) => isTest(path) && names.some((name) => text.includes(name)))
    .map(([path]) => path)
}

/**
 * Which files import a file. By the text: also a script that a test starts is named in it, as `new URL('engine.ts', import.meta.url)`.
 *
 * @param {ReadonlyMap<string, string>} sources
 * @param {Readonly<Record<string, string>>} doors
 * @param {ReadonlySet<string>} files Those that can be imported, and those that were.
 */
function importersOf(sources, doors, files) {
  /** @type {Map<string, string[]>} */
  const importers = new Map()
  for (const [path, text] of sources) {
    for (const [, name = ''] of text.matchAll(/['"`]([\w@./-]+)['"`]/g)) {
      const target = doors[name] ?? posix.join(posix.dirname(path), name)
      if (target === path || !files.has(target)) continue
      const known = importers.get(target)
      if (known) known.push(path)
      else importers.set(target, [path])
    }
  }
  return importers
}
