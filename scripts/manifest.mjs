// What a user needs of package.json.

const kept = [
  'name',
  'version',
  'description',
  'keywords',
  'homepage',
  'repository',
  'bugs',
  'type',
  'license',
  'engines',
  'sideEffects',
  'exports',
  'bin',
  'files',
  'peerDependencies',
  'peerDependenciesMeta',
  'dependencies',
]

/** Leads to `src`, which is not in the package. */
const ownCondition = '@holdfast/source'

/**
 * @param {Record<string, unknown>} manifest
 * @returns {Record<string, unknown>}
 */
export function publishedManifest(manifest) {
  const entries = kept.filter((name) => name in manifest).map((name) => [name, manifest[name]])
  return { ...Object.fromEntries(entries), exports: withoutOwnCondition(manifest['exports']) }
}

/**
 * @param {unknown} target
 * @returns {unknown}
 */
function withoutOwnCondition(target) {
  if (typeof target !== 'object' || target === null) return target
  return Object.fromEntries(
    Object.entries(target)
      .filter(([condition]) => condition !== ownCondition)
      .map(([condition, next]) => [condition, withoutOwnCondition(next)]),
  )
}
