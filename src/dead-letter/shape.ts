import type { Json } from '../event/json.ts'

// A key that looks like an identifier is a field name. Any other key (an address, a number) is often a value.
const wordKey = /^[A-Za-z_][A-Za-z_-]{0,39}\d{0,2}$/
const mostKeys = 40
const mostDepth = 12

/** The key if it is safe to show, otherwise `…`. */
export function keyShape(key: string): string {
  return wordKey.test(key) && key !== '__proto__' ? key : '…'
}

/**
 * The keys of a payload with the types of their values, without any value: `{ amount: 5, to: 'Ada' }` becomes
 * `{ amount: 'number', to: 'string' }`. A list shows each kind of item once.
 */
export function shapeOf(value: unknown): Json {
  return shape(value, 0)
}

/** A path of `diffJson` without keys that can be values: `totals["ada@example.com"].amount` becomes `totals[…].amount`. */
export function shapePath(path: string): string {
  return path
    .replaceAll(/\["(?:[^"\\]|\\.)*"\]/g, '[…]')
    .split('.')
    .map((part) => {
      const at = part.indexOf('[')
      const key = at === -1 ? part : part.slice(0, at)
      return key === '' || wordKey.test(key) ? part : `…${at === -1 ? '' : part.slice(at)}`
    })
    .join('.')
}

function shape(value: unknown, depth: number): Json {
  if (value === null) return 'null'
  if (typeof value !== 'object') return typeof value
  if (depth === mostDepth) return '…'
  return Array.isArray(value) ? listShape(value, depth + 1) : objectShape(value, depth + 1)
}

function listShape(list: readonly unknown[], depth: number): Json {
  const kinds = new Map<string, Json>()
  for (const item of list) {
    const kind = shape(item, depth)
    kinds.set(JSON.stringify(kind), kind)
    if (kinds.size > mostKeys) return ['…']
  }
  return [...kinds.values()]
}

function objectShape(object: object, depth: number): Json {
  const shown = new Map<string, Json>()
  for (const [key, child] of Object.entries(object)) {
    const name = keyShape(key)
    // All hidden keys are shown as one.
    if (!shown.has(name)) shown.set(name, shown.size < mostKeys ? shape(child, depth) : '…')
    if (shown.size > mostKeys) break
  }
  return Object.fromEntries(shown)
}
