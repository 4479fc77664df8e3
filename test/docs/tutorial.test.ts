import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { root } from './blocks.ts'

const page = 'docs/tutorial.md'
const record = process.env.HOLDFAST_RECORD === '1'

const initialised = JSON.stringify({
  name: 'bank',
  version: '1.0.0',
  main: 'index.js',
  scripts: { test: 'exit 1' },
  license: 'ISC',
  type: 'module',
  dependencies: { holdfast: '*', zod: '*' },
})

/**
 * Runs the page from its first command to its last: each `$` line is executed, and what it prints on stdout must stand below it. After a
 * deliberate change of an output, `HOLDFAST_RECORD=1 npx vitest run test/docs/tutorial.test.ts` writes the new one; read the diff.
 */
it('the tutorial does what it says, word for word', { timeout: 240_000 }, async () => {
  // As `npm init -y` and `npm install` leave it: the folder has its manifest and dependencies, and no file of Holdfast.
  using place = createPlace({ 'holdfast.config.ts': '', 'bank.ts': '', 'package.json': initialised })
  let isChanged = false

  const run = async (line: string): Promise<string> => {
    const args = wordsOf(line.slice('$ npx holdfast '.length))
    // A module that was changed is loaded anew only by another process.
    const isIsolated = isChanged || args[0] === 'start'
    const { stdout, stderr, code } = await (isIsolated ? place.run(args) : place.call(args))
    expect(code, `${line}\n${stderr}`).toBe(0)
    return steady(stdout, place.folder)
  }

  const markdown = await readFile(join(root, page), 'utf8')
  const parts = markdown.split(/((?:^<!-- file: \S+ -->\n)?^```\w+\n[\s\S]*?^```\n)/m)
  const told: string[] = []
  for (const part of parts) {
    const [, path, code] = /^<!-- file: (\S+) -->\n```ts\n([\s\S]*?)```\n$/.exec(part) ?? []
    if (path !== undefined && code !== undefined) {
      mkdirSync(dirname(join(place.folder, path)), { recursive: true })
      writeFileSync(join(place.folder, path), code)
      isChanged = true
    }
    if (!part.startsWith('```console\n')) {
      told.push(part)
      continue
    }
    const commands = part.split('\n').filter((line) => line.startsWith('$ npx holdfast '))
    expect({ part, commands }).not.toEqual({ part, commands: [] })
    let block = '```console\n'
    for (const line of commands) block += `${line}\n${await run(line)}`
    told.push(`${block}\`\`\`\n`)
  }
  if (record) await writeFile(join(root, page), told.join(''))
  expect(evenly(told.join(''))).toBe(evenly(await readFile(join(root, page), 'utf8')))
})

/** As a shell splits a line, as far as this page needs it. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  )
}

/** Without what differs from run to run. */
function steady(output: string, folder: string): string {
  return (
    output
      .replaceAll(`file://${folder}`, '…')
      .replaceAll(folder, '…')
      .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '…')
      .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…')
      .replaceAll(/<?\b\d+(?:ms|s|m) ago/g, '… ago')
      // How many there are depends on the version of Node.
      .replaceAll(/(?:^ +… \d+ frames? of \w+\n)+/gm, '            …\n')
      .replaceAll(/ +$/gm, '')
  )
}

/** The width of a column follows from what was left out. */
function evenly(markdown: string): string {
  return markdown.replaceAll(/ {2,}/g, '  ')
}
