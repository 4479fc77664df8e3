import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const text = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

const withoutPages = ['node_modules', 'dist', 'data']

/** All pages of Markdown in a folder and in those below it. */
export async function pages(folder = ''): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true })
  const found = entries.filter(({ name }) => !name.startsWith('.') && !withoutPages.includes(name))
  const nested = found.map(async (entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return pages(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
  return (await Promise.all(nested)).flat()
}

export interface Block {
  readonly language: string
  /** The file it is cut from, as the comment above it says: `path`, or `path#region` for a part of it. */
  readonly from: string | undefined
  readonly code: string
}

/** A block in a list is indented; its code is given without that. */
export function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/(?:^ *<!-- (\S+) -->\n)?^( *)```(\w+)\n([\s\S]*?)^ *```$/gm)].map(
    ([, from, margin = '', language = '', code = '']) => ({
      language,
      from,
      code: code.replaceAll(new RegExp(`^${margin}`, 'gm'), ''),
    }),
  )
}

/** What a block must look like: the whole file, or what is between `#region name` and `#endregion`, moved to the margin. */
export async function cut(from: string): Promise<string> {
  const [path = '', region] = from.split('#')
  const file = await text(path)
  if (region === undefined) return file
  const lines = file.split('\n')
  const begin = lines.findIndex((line) => line.trim().endsWith(`#region ${region}`))
  const length = lines.slice(begin).findIndex((line) => line.trim().endsWith('#endregion'))
  if (begin < 0 || length < 0) throw new Error(`${path} has no region ${region}.`)
  const inside = lines.slice(begin + 1, begin + length)
  const margin = Math.min(...inside.filter((line) => line !== '').map((line) => line.search(/\S/)))
  return inside.map((line) => `${line.slice(margin)}\n`).join('')
}
