import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCodes } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { breakerOptionNames } from '../../src/breaker/settings.ts'
import { blocksOf, cut, pages, root, text } from './blocks.ts'

const firstCells = (markdown: string) => Array.from(markdown.matchAll(/^\| `([^`]+)` \|/gm), ([, cell]) => cell)

describe('the README and the page of proofs', () => {
  it('names only tests and scripts that are there', async () => {
    const readme = (await text('README.md')) + (await text('docs/proof.md'))
    const paths = [...readme.matchAll(/npx vitest run ([^`]+)`/g)].flatMap(([, list = '']) => list.split(' '))
    expect(paths.length).toBeGreaterThan(5)
    for (const path of paths)
      await expect(readdir(join(root, path.endsWith('.ts') ? dirname(path) : path))).resolves.toBeDefined()
    for (const path of paths.filter((name) => name.endsWith('.ts')))
      await expect(text(path)).resolves.toContain("from 'vitest'")
    const { scripts } = JSON.parse(await text('package.json')) as { scripts: Record<string, string> }
    for (const [, script = ''] of readme.matchAll(/npm run (?:-s )?([a-z]+)/g)) expect(scripts).toHaveProperty(script)
  })
})

describe('the reference', () => {
  it('has one entry for every error code, and no other', async () => {
    expect(firstCells(await text('docs/reference/errors.md'))).toEqual([...errorCodes])
  })

  it('has one entry for every event and every state of the engine', async () => {
    const reference = await text('docs/reference/engine.md')
    const events = [...(await text('src/engine/events.ts')).matchAll(/^ {2}'([a-z._]+)':/gm)].map(([, name]) => name)
    const states = [
      ...(await text('src/engine/ownership/subscription-state.ts')).matchAll(/readonly state: '([a-z-]+)'/g),
    ].map(([, name]) => name)
    expect(events.length).toBeGreaterThan(5)
    expect(firstCells(reference.split('## Events')[1] ?? '')).toEqual(events)
    expect(firstCells(reference.split('## States')[1]?.split('## Events')[0] ?? '')).toEqual(states)
  })
})

describe('the page of the architecture', () => {
  it('names every folder of src, and every room of the engine and of the stores', async () => {
    const page = await text('docs/architecture.md')
    const foldersOf = async (path: string) =>
      (await readdir(join(root, path), { withFileTypes: true })).flatMap((one) => (one.isDirectory() ? one.name : []))
    for (const path of ['src', 'src/engine', 'src/sqlite', 'src/postgres'])
      for (const folder of await foldersOf(path)) expect(page).toContain(`\`${folder}\``)
    const paths = Array.from(page.matchAll(/`((?:src|test|scripts)\/[\w./-]+)`/g), ([, path = '']) => path)
    expect(paths.length).toBeGreaterThan(8)
    for (const path of paths) await expect(stat(join(root, path))).resolves.toBeDefined()
  })
})

describe('the page of breakers', () => {
  it('has one entry for every state and every option', async () => {
    const page = await text('docs/reference/breaker.md')
    const source = await text('src/breaker/breaker.ts')
    const states = new Set(
      Array.from(source.matchAll(/readonly state: '([a-z-]+)'$|readonly state: '([a-z-]+)';/gm), ([, a, b]) => a ?? b),
    )
    expect(new Set(firstCells(page.split('## States')[1]?.split('## Options')[0] ?? ''))).toEqual(states)
    expect(firstCells(page.split('## Options')[1] ?? '')).toEqual([...breakerOptionNames])
  })
})

/** Written by `test/docs/tutorial.test.ts` into a project of its own, which runs it. */
const ownFiles = ['docs/tutorial.md']

describe('every page', () => {
  it('shows only code that runs: each block is cut from a file of ours, to the letter', async () => {
    const all = ['README.md', ...(await pages('docs'))].filter((page) => !ownFiles.includes(page))
    let shown = 0
    for (const page of all) {
      for (const { language, from, code } of blocksOf(await text(page))) {
        if (!['ts', 'yaml', 'sql', 'ini'].includes(language)) continue
        expect(from, `${page}: the block that begins with ${code.split('\n')[0]}`).toBeDefined()
        expect(code, `${page}: ${from}`).toBe(await cut(from ?? ''))
        shown++
      }
    }
    expect(shown).toBeGreaterThan(20)
  })

  it('links only to pages, files and headings that are there', async () => {
    const all = await pages()
    expect(all.length).toBeGreaterThan(5)
    for (const page of all) {
      for (const [, target = '', anchor] of (await text(page)).matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)) {
        if (target.startsWith('https://')) continue
        const path = target === '' ? page : join(dirname(page), target)
        const found = await readFile(join(root, path), 'utf8').catch(() =>
          readdir(join(root, path)).catch(() => undefined),
        )
        expect(found, `${page} → ${target}`).toBeDefined()
        const missing = [anchor].filter((name) => name !== undefined && !anchorsOf(String(found)).includes(name))
        expect(missing, `${page} → ${target}`).toEqual([])
      }
    }
  })

  it('is reached from the index, in the folders that the index is about', async () => {
    const index = await text('docs/README.md')
    const linked = [...index.matchAll(/\]\(([^)#]+)/g)].map(([, target = '']) => join('docs', target))
    const all = (await pages('docs')).filter((page) => !isDecision(page) && page !== 'docs/README.md')
    expect(all.filter((page) => !linked.includes(page))).toEqual([])
  })

  it('of a decision is in the list of decisions, with its number and its title', async () => {
    const decisions = (await pages('docs')).filter(isDecision)
    const lines = await Promise.all(
      decisions.map(async (page) => {
        const [, number = '', title = ''] = /^# (\d+)\. (.*)$/m.exec(await text(page)) ?? []
        expect(basename(page)).toMatch(`${number.padStart(4, '0')}-`)
        return `${number}. [${title}](${basename(page)})`
      }),
    )
    const list = await text('docs/decisions/README.md')
    expect(list.match(/^\d+\. .*$/gm)).toEqual(
      lines.toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)),
    )
  })
})

const isDecision = (page: string) => /^docs\/decisions\/\d/.test(page)

/** As GitHub makes them from headings. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
