import { type ArchiveItem, itemsOf } from '../../src/archive/archive.ts'
import type { Store } from '../../src/index.ts'

/** Times of the servers themselves: nobody else says a number as large. */
const firstOfTime = 1e12

/** What two stores must agree on, as text: the same for the same content, whatever the order of fields and however late it is. */
export function textOf(value: unknown): string {
  return JSON.stringify(plain(value)) ?? 'nothing'
}

function plain(value: unknown): unknown {
  if (typeof value === 'number' && value > firstOfTime) return 'a time'
  if (value instanceof Error) return { error: codeOf(value) }
  if (value instanceof Uint8Array) return { bytes: Array.from(value) }
  if (value instanceof Map) return { map: [...value].map(plain).toSorted(byText) }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.fromEntries(
    fields.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, plain(inner)]),
  )
}

/** A code is what programs go by; the words may be each store's own. */
function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : `${error.name}: ${error.message}`
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
}

/** Everything that lasts in a store, item by item. */
export async function everythingIn(store: Store): Promise<string[]> {
  return store.snapshot(async (moment) => {
    const items: string[] = []
    for await (const item of itemsOf(moment.archive())) items.push(itemText(item))
    return items
  })
}

function itemText({ kind, name, text }: ArchiveItem): string {
  return `${kind} ${name} ${textOf(JSON.parse(text))}`
}
