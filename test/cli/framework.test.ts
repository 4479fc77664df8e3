import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { createPlace } from './place.ts'

const source = fileURLToPath(new URL('../../src/cli', import.meta.url))
const program = createProgram({ perform: async () => undefined, version: '0', write: () => undefined, width: 100 })

function* leaves(command: Command, path: readonly string[] = []): Generator<{ path: string[]; command: Command }> {
  if (command.commands.length === 0) yield { path: [...path], command }
  for (const each of command.commands) yield* leaves(each, [...path, each.name()])
}
const all = [...leaves(program)].filter(({ path }) => path[0] !== 'help')

describe('every command', () => {
  it('is there', () => {
    const names = all.map(({ path }) => path.join(' '))
    for (const name of [
      'init',
      'start',
      'status',
      'migrate',
      'doctor',
      'config',
      'copy',
      'verify',
      'events tail',
      'completion',
    ])
      expect(names).toContain(name)
  })

  it('says how it is called', async () => {
    using place = createPlace()
    for (const { path } of all) {
      const { code, stdout, stderr } = await place.call([...path, '--help'])
      expect({ path, code, stderr }).toEqual({ path, code: 0, stderr: '' })
      expect(stdout).toMatch(new RegExp(`^Usage: holdfast ${path.join(' ')}`))
    }
  })

  it('without a store says what to do', async () => {
    using place = createPlace({ 'holdfast.config.ts': '' })
    for (const args of [['status'], ['doctor'], ['verify'], ['events', 'tail'], ['migrate'], ['start']]) {
      const { code, stderr } = await place.call(args)
      expect({ args, code }).toEqual({ args, code: 2 })
      expect(stderr).toMatch(/^CONFIG_(MISSING|INVALID): /)
      expect(stderr).toContain('holdfast init')
    }
  })

  it('makes no store by looking at one', async () => {
    using place = createPlace()
    for (const args of [
      ['status'],
      ['verify'],
      ['events', 'tail'],
      ['subscriptions', 'list'],
      ['start', '--no-migrate'],
    ]) {
      const { code, stderr } = await place.call(args)
      expect({ args, code }).toEqual({ args, code: 1 })
      expect(stderr).toMatch(/^STORE_MISSING: The file .* does not exist\.\nNext: .*holdfast migrate/)
    }
    expect(await place.json(['doctor'])).toMatchObject({ code: 3, ok: true, healthy: false })
    expect(existsSync(place.file)).toBe(false)
  })
})

describe('nothing', () => {
  it('writes but through the door', () => {
    for (const path of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || path.endsWith('.test.ts')) continue
      const text = readFileSync(join(source, path), 'utf8')
      const mayTouchIt = path === 'io.ts' || path === 'main.ts'
      expect({ path, touches: /process\.std|process\.exit/.test(text) && !mayTouchIt }).toEqual({
        path,
        touches: false,
      })
      expect(`${path}: ${text}`).not.toMatch(/(?<!=> )console\.(?!log\(\\`)/)
    }
  })
})

describe('the configuration', () => {
  it('is won by a flag, then by the environment, then by the file', async () => {
    using place = createPlace()
    const storeOf = async (args: string[], env: Record<string, string> = {}) => {
      const { settings } = await place.json<{ settings: { store: { value: string; from: string } } }>(
        ['config', ...args],
        { env },
      )
      return settings.store
    }
    expect(await storeOf([])).toEqual({ value: `sqlite:${place.file}`, from: 'holdfast.config' })
    const DATABASE_URL = 'postgres://me:geheim@db/app'
    expect(await storeOf([], { DATABASE_URL })).toEqual({
      value: 'postgres://me:***@db/app (schema holdfast)',
      from: 'DATABASE_URL',
    })
    const both = { DATABASE_URL, HOLDFAST_STORE: 'other.db' }
    expect(await storeOf([], both)).toEqual({
      value: `sqlite:${join(place.folder, 'other.db')}`,
      from: 'HOLDFAST_STORE',
    })
    expect(await storeOf(['--store', 'sqlite:third.db'], both)).toEqual({
      value: `sqlite:${join(place.folder, 'third.db')}`,
      from: '--store',
    })
    expect(await storeOf([], { DATABASE_URL: '' })).toMatchObject({ from: 'holdfast.config' })
  })

  it('says who it is', async () => {
    using place = createPlace()
    const userOf = async (args: string[], env = {}) =>
      (await place.json<{ settings: { user: object } }>(['config', ...args], { env })).settings.user
    expect(await userOf([])).toEqual({ value: 'ada', from: 'HOLDFAST_USER' })
    expect(await userOf(['--as', 'grace'])).toEqual({ value: 'grace', from: '--as' })
    expect(await userOf([], { HOLDFAST_USER: '' })).toEqual({ value: 'somebody@somewhere', from: 'the system' })
  })

  it('never shows a password', async () => {
    const file = `export default { store: { postgres: { connection: 'postgres://me:geheim@db/app', schema: 'bank' } } }`
    using place = createPlace({ 'holdfast.config.ts': file })
    for (const args of [
      ['config'],
      ['config', '--json'],
      ['config', '--store', 'mysql://me:geheim@db/app'],
      ['status', 'postgres://me:geheim@db/app'],
    ]) {
      const { stdout, stderr } = await place.call(args)
      expect(stdout + stderr).not.toContain('geheim')
      expect(stdout + stderr).toContain('***')
    }
  })

  it.each([
    ['export const x = 1', /has no default export/],
    ['export default { stor: 1 }', /has no option "stor"/],
    ["export default { store: { sqlite: '' } }", /store.sqlite is not a path/],
    [
      "export default { store: { sqlite: 'a', postgres: 'b' } }",
      /store needs exactly one of sqlite and postgres, and has both/,
    ],
    ['export default { subscriptions: [1] }', /not a list of projections/],
    ["throw new Error('no luck\\u001b[2J')", /can't be loaded. Error: no luck\\x1b/],
  ])('%s is refused with a reason', async (text, reason) => {
    using place = createPlace({ 'holdfast.config.ts': text })
    const { code, stdout, stderr } = await place.call(['status'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^CONFIG_INVALID: /)
    expect(stderr).toMatch(reason)
  })
})

it('a store can be whatever a function opens', async () => {
  const file = `
    import { createSqliteStore } from 'holdfast/sqlite'
    export default { store: () => createSqliteStore({ file: new URL('own.db', import.meta.url).pathname }) }`
  using place = createPlace({ 'holdfast.config.ts': file })
  expect(await place.json(['migrate'])).toMatchObject({
    code: 0,
    known: null,
    store: 'a function of the configuration',
  })
  expect(await place.json(['events', 'append', 'a', 'Odd', '--raw', '--data', '{}', '--reason', 'x'])).toMatchObject({
    code: 0,
  })
  expect(await place.json(['events', 'tail'])).toMatchObject({ code: 0, events: [{ type: 'Odd' }] })
  expect(existsSync(join(place.folder, 'own.db'))).toBe(true)
})
