import type { Json } from '../event/json.ts'

// A key that is a word of a program says what is there. One that is not (an address, a number) is often a value itself.
const wordKey = /^[A-Za-z_][A-Za-z_-]{0,39}$/
const mostKeys = 40
const mostDepth = 12

/**
 * What a payload looks like: its keys, and the types of what they have, without a single value. `{ amount: 5, to: 'Ada' }` is
 * `{ amount: 'number', to: 'string' }`. A list shows each kind of item once.
 */
export function shapeOf(value: unknown): Json {
  return shape(value, 0)
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
    const name = wordKey.test(key) && key !== '__proto__' ? key : '…'
    // Many keys that are values are told as one.
    if (!shown.has(name)) shown.set(name, shown.size < mostKeys ? shape(child, depth) : '…')
    if (shown.size > mostKeys) break
  }
  return Object.fromEntries(shown)
}
