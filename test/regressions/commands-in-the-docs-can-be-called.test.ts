import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { createPlace } from '../cli/place.ts'
import { commandIn, why } from './cli-stores.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path)),
].map((path) => ({ path, ...partsOf(readFileSync(join(root, path), 'utf8')) }))

/** What stands for a value in the docs, with a value that is accepted. `"<why>"` is one already. */
const placeholders: Readonly<Record<string, string>> = {
  '<digest>': 'abcdef012345',
  '<id>': '01a1f059-eb56-7242-a196-fe90d7328112',
  '<position>': '1',
  '<subscription>': 'balances',
}

/** The lines of code blocks, and the lines around them. */
function partsOf(text: string): { readonly code: readonly string[]; readonly prose: readonly string[] } {
  const code: string[] = []
  const prose: string[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (line.trimStart().startsWith('```')) isCode = !isCode
    else (isCode ? code : prose).push(line)
  }
  return { code, prose }
}

/** Commands that are typed, and those that another command suggests. */
const typed = /^ *(?:\$ |.*(?:Next|see them): )?(?:\w+=\S+ )*(?:npx )?holdfast (?=\S)/

const commands = pages.flatMap(({ path, code }) =>
  code
    .filter((line) => typed.test(line))
    .flatMap((line) => commandIn(line.replace(typed, 'holdfast ').replace(/ +# .*| \|.*| > .*/, '')))
    .map((args) => ({ path, args: args.map((arg) => placeholders[arg] ?? arg) })),
)

const createCli = () =>
  createProgram({ perform: async () => undefined, version: '0', write: () => undefined, width: 100 })

it('every command in a code block of the docs can be called as it is', async () => {
  expect(commands.length).toBeGreaterThanOrEqual(90)
  for (const page of ['README.md', 'docs/tutorial.md', 'docs/how-to/cli.md', 'docs/how-to/dead-letters.md'])
    expect(commands.map(({ path }) => path)).toContain(page)
  const flaws: string[] = []
  for (const { path, args } of commands)
    await createCli()
      .parseAsync([...args], { from: 'user' })
      .catch((error: Error) => flaws.push(`${path}: ${args.join(' ')}: ${error.message}`))
  expect(flaws).toEqual([])
})

it('every command that a sentence of the docs names exists, with its options', () => {
  const named = pages.flatMap(({ path, prose }) =>
    [...prose.join('\n').matchAll(/`(?:npx )?holdfast ([^`]+)`/g)].map(([, text = '']) => ({ path, text })),
  )
  expect(named.length).toBeGreaterThanOrEqual(90)
  expect(named.flatMap(({ path, text }) => flawsOf(text).map((flaw) => `${path}: ${text}: ${flaw}`))).toEqual([])
})

/** A sentence may leave out arguments, or have a placeholder such as `<id>`, `[folder]` or `…` for them. */
function flawsOf(text: string): string[] {
  const words = text.split(/\s+/)
  const program = createCli()
  let command: Command = program
  const flaws: string[] = []
  for (const [i, word] of words.entries()) {
    if (word.startsWith('-')) {
      const known = [...command.options, ...program.options].some(({ long, short }) => [long, short].includes(word))
      if (!known && word !== '--help') flaws.push(`no option ${word}`)
      continue
    }
    const isValue = words[i - 1]?.startsWith('--') === true
    if (isValue || /^[<["'…|]/.test(word) || command.commands.length === 0) continue
    const next = command.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (next) command = next
    else flaws.push(`no command ${word}`)
  }
  return flaws
}

it('the breaker that the docs isolate can be isolated, and reset', async () => {
  using place = createPlace()
  await place.json(['migrate'])
  const acts = commands
    .filter(({ path, args: [group, act] }) => path === 'docs/how-to/cli.md' && group === 'breakers' && act !== 'list')
    .map(({ args }) => args)
  expect(acts.map(([, act]) => act)).toEqual(['isolate', 'reset'])
  for (const act of acts) expect({ act, ...(await place.call([...act, ...why])) }).toMatchObject({ code: 0 })
})
