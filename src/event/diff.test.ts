import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { childPath, diffJson, type JsonChange } from './diff.ts'

describe('the difference between two JSON values', () => {
  it('names what was added, removed and changed, by its path', () => {
    const before = { amount: 5, owner: 'Ada', lines: [{ sku: 'a', n: 1 }, { sku: 'b' }], 'odd key': 1 }
    const after = { amount: 7, lines: [{ sku: 'a', n: 2 }], currency: 'EUR', 'odd key': null }

    expect(diffJson(before, after)).toEqual([
      { change: 'changed', path: 'amount', before: 5, after: 7 },
      { change: 'removed', path: 'owner', before: 'Ada' },
      { change: 'changed', path: 'lines[0].n', before: 1, after: 2 },
      { change: 'removed', path: 'lines[1]', before: { sku: 'b' } },
      { change: 'changed', path: '["odd key"]', before: 1, after: null },
      { change: 'added', path: 'currency', after: 'EUR' },
    ])
  })

  it('takes a value of another kind as a whole', () => {
    expect(diffJson({ a: [1] }, { a: { 0: 1 } })).toEqual([
      { change: 'changed', path: 'a', before: [1], after: { 0: 1 } },
    ])
    expect(diffJson(undefined, { a: 1 })).toEqual([{ change: 'changed', path: '', before: undefined, after: { a: 1 } }])
  })

  it('is not led astray by names that every object has', () => {
    const hostile = JSON.parse('{"__proto__":1,"constructor":2}') as unknown
    expect(diffJson({}, hostile)).toEqual([
      { change: 'added', path: '__proto__', after: 1 },
      { change: 'added', path: 'constructor', after: 2 },
    ])
  })

  it('is none for equal values, and enough to come from one to the other', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (before, after) => {
        expect(diffJson(before, structuredClone(before))).toEqual([])
        const kept = new Map(leaves(before))
        const changes = diffJson(before, after)
        expect(changes.length === 0).toBe(isDeepStrictEqual(before, after))
        for (const change of changes) apply(kept, change)
        expect(kept).toEqual(new Map(leaves(after)))
      }),
    )
  })
})

/** Every value that is no list and no object, by its path. */
function* leaves(value: unknown, path = ''): Generator<[string, unknown]> {
  if (typeof value !== 'object' || value === null) return void (yield [path, value])
  for (const [key, child] of Object.entries(value))
    yield* leaves(child, childPath(path, Array.isArray(value) ? Number(key) : key))
}

function apply(kept: Map<string, unknown>, change: JsonChange): void {
  const { path } = change
  for (const old of kept.keys()) {
    const isIn = old === path || path === '' || old.startsWith(`${path}.`) || old.startsWith(`${path}[`)
    if (change.change !== 'added' && isIn) kept.delete(old)
  }
  if (change.change !== 'removed') for (const [at, leaf] of leaves(change.after, path)) kept.set(at, leaf)
}
