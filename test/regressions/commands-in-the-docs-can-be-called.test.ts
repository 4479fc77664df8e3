import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { createPlace } from '../cli/place.ts'
import { commandIn, why } from './cli-stores.ts'

const page = (name: string) => readFileSync(fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)), 'utf8')
const commands = ['how-to/cli.md', 'how-to/rebuild.md'].flatMap((name) => {
  const lines = [...page(name).matchAll(/^(?:\S+=\S+ )?npx holdfast .*$/gm)].map(([line]) =>
    line.replace(/ +# .*| \|.*/, ''),
  )
  return commandIn(lines.join('\n'))
})

it('every command in the docs has the form that it has', async () => {
  expect(commands.length).toBeGreaterThanOrEqual(40)
  const flaws: string[] = []
  for (const args of commands) {
    const perform = async () => undefined
    const program = createProgram({ perform, version: '0', write: () => undefined, width: 100 })
    await program
      .parseAsync([...args], { from: 'user' })
      .catch((error: Error) => flaws.push(`${args.join(' ')}: ${error.message}`))
  }
  expect(flaws).toEqual([])
})

it('the breaker that the docs isolate can be isolated, and reset', async () => {
  using place = createPlace()
  await place.json(['migrate'])
  const acts = commands.filter(([group, act]) => group === 'breakers' && act !== 'list')
  expect(acts.map(([, act]) => act)).toEqual(['isolate', 'reset'])
  for (const act of acts) expect({ act, ...(await place.call([...act, ...why])) }).toMatchObject({ code: 0 })
})
