import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command, Option } from 'commander'
import { expect, it } from 'vitest'
import { commandCodes } from '../../src/cli/errors.ts'
import { createProgram } from '../../src/cli/program.ts'

const page = fileURLToPath(new URL('../../docs/reference/cli.md', import.meta.url))
const begin = '<!-- commands -->'
const end = '<!-- end of commands -->'

// HOLDFAST_WRITE_DOCS=1 writes it anew.
it('the reference has every command with every option, as they are', () => {
  const text = readFileSync(page, 'utf8')
  const [head = '', rest = ''] = text.split(begin)
  const [, tail = ''] = rest.split(end)
  const whole = `${head}${begin}\n${sections()}${end}${tail}`
  if (process.env['HOLDFAST_WRITE_DOCS'] === '1') writeFileSync(page, whole)
  expect(readFileSync(page, 'utf8')).toBe(whole)
})

it('the reference has one entry for every code that only a command gives', () => {
  const cells = [...readFileSync(page, 'utf8').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code)
  expect(cells).toEqual([...commandCodes])
})

function sections(): string {
  const program = createProgram({ perform: async () => undefined, version: '0', write: () => undefined, width: 100 })
  return [...leaves(program)].map(section).join('')
}

function* leaves(command: Command): Generator<Command> {
  if (command.commands.length === 0) yield command
  for (const each of command.commands) yield* leaves(each)
}

function section(command: Command): string {
  const path = pathOf(command)
  const args = command.registeredArguments.map((each) => (each.required ? ` <${each.name()}>` : ` [${each.name()}]`))
  const aliases = command.aliases().map((alias) => `\`${alias}\``)
  const also = aliases.length === 0 ? '' : ` Also called ${aliases.join(', ')}.`
  const about = `${capital(command.description())}.${also}`
  const rows = [
    ...command.registeredArguments
      .filter(({ description }) => description !== '')
      .map((each) => `| \`${each.name()}\` | ${cell(each.description)} |`),
    ...command.options.map((option: Option) => `| \`${cell(option.flags)}\` | ${cell(option.description)} |`),
  ]
  const table = rows.length === 0 ? '' : `\n| | |\n| --- | --- |\n${rows.join('\n')}\n`
  return `\n### \`${path}${args.join('')}\`\n\n${about}\n${table}`.concat('\n').replace(/\n\n$/, '\n')
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
