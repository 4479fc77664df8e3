/** A difference between two JSON values, at a path such as `lines[3].amount`; the empty path is the whole value. */
export type JsonChange =
  | { readonly change: 'added'; readonly path: string; readonly after: unknown }
  | { readonly change: 'removed'; readonly path: string; readonly before: unknown }
  | { readonly change: 'changed'; readonly path: string; readonly before: unknown; readonly after: unknown }

const plainKey = /^[A-Za-z_$][\w$-]*$/

export function childPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  if (!plainKey.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === '' ? key : `${path}.${key}`
}

/**
 * The differences between two JSON values, in the order of the keys. Arrays are compared by index: an item inserted at the front
 * changes all following items.
 */
export function diffJson(before: unknown, after: unknown): JsonChange[] {
  const changes: JsonChange[] = []
  compare(before, after, '', changes)
  return changes
}

function compare(before: unknown, after: unknown, path: string, changes: JsonChange[]): void {
  if (Object.is(before, after)) return
  if (Array.isArray(before) && Array.isArray(after)) {
    const longest = Math.max(before.length, after.length)
    for (let i = 0; i < longest; i++)
      compareChild(i < before.length, i < after.length, before[i], after[i], childPath(path, i), changes)
  } else if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [had, has] = [Object.hasOwn(before, key), Object.hasOwn(after, key)]
      compareChild(had, has, before[key], after[key], childPath(path, key), changes)
    }
  } else {
    changes.push({ change: 'changed', path, before, after })
  }
}

function compareChild(
  had: boolean,
  has: boolean,
  before: unknown,
  after: unknown,
  path: string,
  changes: JsonChange[],
): void {
  if (had && has) compare(before, after, path, changes)
  else if (had) changes.push({ change: 'removed', path, before })
  else changes.push({ change: 'added', path, after })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
