import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildTypes, diffOf, doorsOf, fileOf, reportsOf } from '../../scripts/api.mjs'

const committed = fileURLToPath(new URL('../../api', import.meta.url))

let types: string
let reports: Map<string, string>
beforeAll(() => {
  types = buildTypes()
  reports = reportsOf(types, doorsOf())
}, 90_000)
afterAll(() => rmSync(types, { recursive: true, force: true }))

/** What a door exports. */
function namesOf(door: string): string[] {
  const [exported = ''] = (reports.get(door) ?? '').split('\n--- Reached')
  const declared = /^(?:only the type of )?(?:(\w+) is )?(?:interface|type|class|function|const|let) (\w+)/gm
  return [...exported.matchAll(declared)].map(([, renamed, name]) => renamed ?? name ?? '')
}

// Nothing showed that a signature, or what a door exports, had changed.
describe('the public surface', () => {
  it('is the one that is committed; if the change is meant, run `npm run api` and commit api/', () => {
    const differing = [...reports].map(([door, report]) => [
      door,
      diffOf(readFileSync(join(committed, fileOf(door)), 'utf8'), report),
    ])
    expect(differing.filter(([, diff]) => diff !== '')).toEqual([])
    expect(readdirSync(committed).toSorted()).toEqual([...reports.keys()].map(fileOf).toSorted())
  })

  it('shows a changed signature as a difference, also of what is reached and not exported', () => {
    const copy = mkdtempSync(join(tmpdir(), 'holdfast-surface-'))
    cpSync(types, copy, { recursive: true })
    const change = (file: string, from: string, to: string) => {
      const text = readFileSync(join(copy, file), 'utf8')
      expect(text).toContain(from)
      writeFileSync(join(copy, file), text.replace(from, to))
    }
    change('operator/operator.d.ts', 'pause(subscription: string, reason: string)', 'pause(subscription: string)')
    change('errors.d.ts', 'readonly hint?:', 'readonly advice?:')
    const changed = reportsOf(copy, doorsOf())
    rmSync(copy, { recursive: true, force: true })
    const diff = diffOf(reports.get('holdfast') ?? '', changed.get('holdfast') ?? '')
    expect(diff.split('\n').filter((line) => /^[-+]/.test(line))).toEqual(
      expect.arrayContaining([
        '-     pause(subscription: string, reason: string): Promise<void>;',
        '+     pause(subscription: string): Promise<void>;',
      ]),
    )
    expect(diff).toContain('advice?:')
  })

  it('has each door of the package, without comments, in order', () => {
    expect([...reports.keys()]).toEqual(Object.keys(doorsOf()))
    for (const door of reports.keys()) {
      expect(namesOf(door)).toEqual(namesOf(door).toSorted())
      expect(namesOf(door).length).toBeGreaterThan(0)
      expect(reports.get(door)).not.toContain('/**')
    }
  })
})

// `Archived*` were in the main door, and the ports of a store in none.
describe('a third store', () => {
  it('finds everything that the ports name in one door', () => {
    const alone = reportsOf(types, { store: 'store-door.d.ts' }).get('store') ?? ''
    const [, reached = ''] = alone.split('--- Reached by these, and exported by no door:')
    const names = [...reached.matchAll(/^(?:interface|type|class) (\w+)/gm)].map(([, name]) => name)
    // Of a constructor and of three functions; no port names them.
    expect(names).toEqual(['ErrorDetails', 'States'])
    for (const port of ['Log', 'Subscription', 'Letter', 'Redrive', 'Rebuild', 'Row', 'Audit', 'Breaker', 'Inbox'])
      expect(namesOf('holdfast/store')).toContain(`${port}Store`)
    expect(namesOf('holdfast/store')).toEqual(expect.arrayContaining(['ArchivePart', 'Store', 'StoreMoment']))
  })

  it('has the form of a copy to itself: the main door does not export it', () => {
    expect(namesOf('holdfast').filter((name) => name.startsWith('Archive'))).toEqual([])
  })
})
