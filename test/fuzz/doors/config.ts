import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig, HoldfastError } from 'holdfast'
import type { Chance } from '../chance.ts'
import { type Door, expectThat } from '../door.ts'
import { oddText } from '../generate/text.ts'
import { anyValue } from '../generate/value.ts'
import { call, checkTold } from './cli.ts'

const fields = ['store', 'subscriptions', 'events', 'logger', 'engine', 'onEngine'] as const

/** What a program may give as its configuration, value by value. */
export const configDoor: Door = {
  name: 'config',
  outcomes: ['accepted', 'refused'],
  cases: 1_000,
  open: async () => ({
    give: async (chance) => {
      const config: Record<string, unknown> = { store: { sqlite: 'a.db' }, subscriptions: [] }
      for (const field of fields) if (chance.percent(15)) config[field] = anyValue(chance)
      if (chance.percent(10)) config['store'] = { [chance.pick(['sqlite', 'postgres', 'x'])]: anyValue(chance) }
      if (chance.percent(5)) config[oddText(chance)] = 1
      try {
        defineConfig((chance.percent(5) ? anyValue(chance) : config) as object)
        return 'accepted'
      } catch (error) {
        expectThat(error instanceof HoldfastError, 'it was refused with no error of ours', error)
        return 'refused'
      }
    },
    [Symbol.asyncDispose]: async () => undefined,
  }),
}

/** As it stands in a file: what a command finds there instead of what it should. */
const expressions = [
  'undefined',
  'null',
  '0',
  '-1',
  'NaN',
  '1n',
  '""',
  '"x"',
  '"\\0"',
  'Symbol("s")',
  '[]',
  '[null]',
  '[1, "a"]',
  '[{ kind: "fold" }]',
  '[{ kind: "handler", name: "x" }]',
  '[{ kind: "subscription" }]',
  '{}',
  '{ kind: "fold" }',
  '{ sqlite: "" }',
  '{ sqlite: "\\0" }',
  '{ sqlite: "nowhere/x.db" }',
  '{ sqlite: "." }',
  '{ sqlite: "a.db", postgres: "x" }',
  '{ postgres: "postgres:" }',
  '{ postgres: "" }',
  '{ postgres: { connection: 5 } }',
  '{ postgres: { connection: {}, schema: "A b" } }',
  '{ postgres: { connection: { host: 5, port: "x" } } }',
  '{ lease: "x", poll: -1 }',
  '{ page: 5, cacheBytes: "x" }',
  '{ name: 5 }',
  '{ entry: () => undefined }',
  '{ entry: () => { throw null } }',
  '{ __proto__: null }',
  '() => undefined',
  '() => 5',
  '() => null',
  '() => ({})',
  '() => ({ log: {} })',
  '() => { throw null }',
  '() => { throw Object.create(null) }',
  '() => Promise.reject(undefined)',
  'async () => { throw new Proxy({}, { get() { throw 1 } }) }',
  'new Proxy({}, { get() { throw new Error("no") }, ownKeys() { throw 1 }, getPrototypeOf() { throw 2 } })',
  'new Proxy([], { get() { throw new Error("no") } })',
  'Object.create(null)',
  'new Date(NaN)',
  'new Map()',
  'class A {}',
  'Promise.resolve({})',
  'globalThis',
]

const whole = [
  (value: string) => `export default ${value}`,
  (value: string) => `throw (${value})`,
  () => 'export const other = 1',
  () => 'export default {',
  () => 'import "./nowhere.js"',
  () => 'await new Promise(() => undefined).constructor.reject("x")',
  () => '',
]

const commands = [
  ['config'],
  ['status'],
  ['doctor'],
  ['subscriptions', 'list'],
  ['projections', 'list'],
  ['dlq', 'list', 'x'],
  ['start', '--drain'],
  ['migrate'],
  ['verify'],
  ['events', 'append', 'a', 'B', '--data', '1', '--reason', 'x'],
]

export const configFileDoor: Door = {
  name: 'config-file',
  outcomes: ['accepted', 'refused'],
  cases: 50,
  open: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'))
    let number = 0
    return {
      give: async (chance) => {
        const file = `c${++number}.mjs`
        writeFileSync(join(folder, file), textOf(chance))
        const json = chance.percent(50) ? ['--json'] : []
        const told = await call(folder, [...chance.pick(commands), ...json, '--config', file], { HOLDFAST_USER: 'ada' })
        // What a function of the file throws, or gives that is no store, is told with its own words.
        const withoutOwn = (text: string) => text.replaceAll(/\b\w+Error\b/g, '')
        checkTold({ ...told, stdout: withoutOwn(told.stdout), stderr: withoutOwn(told.stderr) })
        return told.code === 0 ? 'accepted' : 'refused'
      },
      [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
}

function textOf(chance: Chance): string {
  if (chance.percent(15)) return chance.pick(whole)(chance.pick(expressions))
  const members = fields.flatMap((field) => {
    if (chance.percent(20)) return [`${field}: ${chance.pick(expressions)}`]
    return field === 'store' ? ["store: { sqlite: 'a.db' }"] : []
  })
  return `export default { ${members.join(', ')} }`
}
