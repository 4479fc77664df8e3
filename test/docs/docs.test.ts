import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorCodes } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { breakerOptionNames } from '../../src/breaker/settings.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = (path: string) => readFile(join(root, path), 'utf8')
const firstCells = (markdown: string) => Array.from(markdown.matchAll(/^\| `([^`]+)` \|/gm), ([, cell]) => cell)

async function pages(folder = ''): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true })
  const found = entries.filter(({ name }) => !name.startsWith('.') && !['node_modules', 'dist', 'data'].includes(name))
  const nested = found.map(async (entry) =>
    entry.isDirectory()
      ? pages(join(folder, entry.name))
      : entry.name.endsWith('.md')
        ? [join(folder, entry.name)]
        : [],
  )
  return (await Promise.all(nested)).flat()
}

describe('the README', () => {
  it('shows code that runs: each block is a file of ours, to the letter', async () => {
    const blocks = [...(await text('README.md')).matchAll(/<!-- (\S+) -->\n```ts\n([\s\S]*?)```/g)]
    expect(blocks.length).toBeGreaterThan(0)
    for (const [, path = '', code] of blocks) expect(code).toBe(await text(path))
  })

  it('shows no code from anywhere else', async () => {
    const readme = await text('README.md')
    expect(readme.match(/```ts\n/g)?.length).toBe(readme.match(/-->\n```ts\n/g)?.length)
  })

  it('names only tests and scripts that are there', async () => {
    const readme = await text('README.md')
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

describe('a how-to', () => {
  it('shows code that runs: each block is a file of ours, to the letter', async () => {
    const all = await pages('docs/how-to')
    expect(all.length).toBeGreaterThan(0)
    for (const page of all) {
      const markdown = await text(page)
      const blocks = [...markdown.matchAll(/<!-- (\S+) -->\n```ts\n([\s\S]*?)```/g)]
      expect(blocks.length).toBe(markdown.match(/```ts\n/g)?.length ?? 0)
      for (const [, path = '', code] of blocks) expect(code).toBe(await text(path))
    }
  })
})

describe('the reference', () => {
  it('has one entry for every error code, and no other', async () => {
    expect(firstCells(await text('docs/reference/errors.md'))).toEqual([...errorCodes])
  })

  it('has one entry for every event and every state of the engine', async () => {
    const reference = await text('docs/reference/engine.md')
    const events = [...(await text('src/engine/events.ts')).matchAll(/^ {2}'([a-z._]+)':/gm)].map(([, name]) => name)
    const states = [...(await text('src/engine/state.ts')).matchAll(/readonly state: '([a-z-]+)'/g)].map(
      ([, name]) => name,
    )
    expect(events.length).toBeGreaterThan(5)
    expect(firstCells(reference.split('## Events')[1] ?? '')).toEqual(events)
    expect(firstCells(reference.split('## States')[1]?.split('## Events')[0] ?? '')).toEqual(states)
  })
})

describe('the page of breakers', () => {
  it('shows the example that runs, to the letter', async () => {
    const page = await text('docs/reference/breaker.md')
    const blocks = [...page.matchAll(/<!-- (\S+) -->\n```ts\n([\s\S]*?)```/g)]
    expect(blocks.length).toBe(page.match(/```ts/g)?.length)
    for (const [, path = '', code] of blocks) expect(code).toBe(await text(path))
  })

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

describe('every page', () => {
  it('links only to what is there', async () => {
    const all = await pages()
    expect(all.length).toBeGreaterThan(5)
    for (const page of all) {
      for (const [, target = ''] of (await text(page)).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (target.startsWith('https://')) continue
        const path = join(dirname(page), target)
        await expect(
          readFile(join(root, path)).catch(() => readdir(join(root, path))),
          `${page} → ${target}`,
        ).resolves.toBeDefined()
      }
    }
  })
})
