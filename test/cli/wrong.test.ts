import { readdirSync } from 'node:fs'
import type { Argument, Command, Option } from 'commander'
import { createBreaker, type Store } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { itemsOf } from '../../src/archive/archive.ts'
import { createProgram } from '../../src/cli/program.ts'
import { describeNewest } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { createPlace, type Place, type Told } from './place.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

// The table is made of the program itself: a new command, argument or option is in it, or the test says what it has to be told of it.

const program = createProgram({ perform: async () => undefined, version: '0', write: () => undefined, width: 100 })

interface Leaf {
  readonly path: readonly string[]
  readonly command: Command
}

function* leaves(command: Command, path: readonly string[] = []): Generator<Leaf> {
  if (command.commands.length === 0) yield { path, command }
  for (const each of command.commands) yield* leaves(each, [...path, each.name()])
}
const all = [...leaves(program)].filter(({ path }) => path[0] !== 'help')

const hostile = [
  '',
  '\u001b[2J',
  "'; DROP TABLE holdfast_events; --",
  '../../etc/passwd',
  '\u202egnirts',
  'x'.repeat(600),
]
const noNumbers = ['x', '-1', '1.5', '1e3', '0x10', 'NaN', ' 5', '9'.repeat(30), ...hostile]
const noNames = ['nobody', 'balances ', 'balances~9', ...hostile]

/** What an option takes, by the word in its brackets: values that are none. `free` takes any text. */
const wrongValues: Readonly<Record<string, readonly string[] | 'free'>> = {
  n: noNumbers,
  number: noNumbers,
  position: noNumbers,
  version: noNumbers,
  share: ['0', '1.1', '-0.5', 'half', ...hostile],
  duration: ['5', '-5s', '1.5h', 'soon', '99999999999999s', ...hostile],
  time: ['yesterday', '2026-13-01', '2026-02-30', '2026-01-01T25:00:00Z', '2026-01-01T10:00', '-2h', ...hostile],
  class: ['Transient', 'poison', ...hostile],
  status: ['held', 'PARKED', ...hostile],
  stages: ['0', '1,,2', '1,-2', 'one', ...hostile],
  digest: ['12', 'abcdef', 'g'.repeat(64), '0'.repeat(65), ...hostile],
  'number:hash': ['5', 'x:y', `-1:${'0'.repeat(64)}`, `1:${'g'.repeat(64)}`, ...hostile],
  list: ['Lag', 'lag;held', 'lag,', ...hostile],
  json: ['{', 'undefined', "{'a':1}", '{"a":1}}', ...hostile],
  file: ['no/such/folder/file', 'node_modules'],
  'subscription...': 'free',
  text: 'free',
  lane: 'free',
  type: 'free',
  key: 'free',
  name: 'free',
  id: 'free',
  fingerprint: 'free',
}

/** What an argument takes, by its name: one that is right, and some that are not. */
const argumentValues: Readonly<Record<string, { readonly right: string; readonly wrong: readonly string[] }>> = {
  subscription: { right: 'balances', wrong: noNames },
  projection: { right: 'balances', wrong: ['mails', ...noNames] },
  position: { right: '2', wrong: ['0', '999', ...noNumbers] },
  key: { right: 'a', wrong: ['', 'a\0b', 'x'.repeat(5_000)] },
  type: { right: 'Credited', wrong: ['credited', 'Nothing', ...hostile] },
  event: { right: '1', wrong: ['0', '999', 'a@0', 'a@99', 'nobody@1', 'x', ...hostile] },
  id: { right: 'none', wrong: ['nobody', ...hostile] },
  breaker: { right: 'mails/acme', wrong: ['mails/acne', ...hostile] },
  version: { right: '1', wrong: ['0', '99', ...noNumbers] },
  file: { right: 'events.db', wrong: ['no/such/file', 'node_modules', ''] },
  url: { right: 'postgres://nobody@127.0.0.1:1/none', wrong: ['mysql://a@b/c', 'a text', ''] },
  shell: { right: 'bash', wrong: ['tcsh', ...hostile] },
  folder: { right: 'elsewhere', wrong: [] },
}

/** The word in the brackets; undefined for a flag. */
function takes(option: Option): string | undefined {
  return /[<[](.+?)[>\]]/.exec(option.flags)?.[1]
}

function valuesOf(argument: Argument) {
  const values = argumentValues[argument.name()]
  if (!values) throw new Error(`Say in argumentValues what <${argument.name()}> takes.`)
  return values
}

function rightArguments({ command }: Leaf): string[] {
  return command.registeredArguments.filter(({ required }) => required).map((each) => valuesOf(each).right)
}

/** What it takes to come as far as its arguments: why, that it is meant, and which. */
function rightOptions({ command }: Leaf, without?: string): string[] {
  const has = (long: string) => long !== without && command.options.some((option) => option.long === long)
  return [
    ...(has('--reason') ? ['--reason', 'a test'] : []),
    ...(has('--yes') ? ['--yes'] : []),
    ...(has('--letter') ? ['--all'] : []),
    ...(has('--data') ? ['--data', '{"amount":1}'] : []),
  ]
}

/** What is wrong with a refusal: it is a clear error that names what was wrong and the next step, exit 2, and nothing but that. */
function flawsOf(args: readonly string[], { code, stdout, stderr }: Told, names: readonly string[]): string[] {
  // A file or a store is no argument that could be looked up: what is off there may be elsewhere.
  const isMissing = /^(STORE_MISSING|FILE_EXISTS): /.test(stderr)
  const unclean = / {4}at |[^\P{Cc}\n]|\u202e/u
  const flaws = [
    ...(code === (isMissing ? 1 : 2) ? [] : [`exit ${code}`]),
    ...(stdout === '' ? [] : ['something on stdout']),
    ...(/^[A-Z]+(_[A-Z]+)*: .+\nNext: .+\n$/s.test(stderr) ? [] : ['not an error with a next step']),
    ...(names.some((name) => stderr.toLowerCase().includes(name.toLowerCase()))
      ? []
      : ['it does not say what is wrong']),
    ...(unclean.test(stderr) ? ['a stack, or what a terminal takes for a command'] : []),
  ]
  return flaws.map((flaw) => `${flaw}: ${JSON.stringify(args.map((arg) => arg.slice(0, 50)))}\n${stderr.slice(0, 400)}`)
}

/** As it is told: what is not harmless is spelled out, and what is long is cut. */
function told(value: string): string[] {
  const harmless = value.replaceAll(/[^ -~]+.*/g, '').slice(0, 40)
  return harmless === '' ? ['""', 'empty', 'missing', 'Give', 'no ', 'is none'] : [harmless]
}

async function contentOf(store: Store): Promise<string[]> {
  return store.snapshot(async (moment) => {
    const items: string[] = []
    for await (const { kind, name, text } of itemsOf(moment.archive())) items.push(`${kind} ${name} ${text}`)
    return items
  })
}

async function prepare(place: Place, store: Store, env: Readonly<Record<string, string>>): Promise<void> {
  const why = ['--reason', 'a test']
  for (const [key, type, amount] of [
    ['a', 'Credited', 5],
    ['b', 'Debited', 99],
    ['b', 'Credited', 1],
  ] as const)
    await place.json(['events', 'append', key, type, '--data', JSON.stringify({ amount }), ...why], { env })
  expect(await place.json(['start', '--drain'], { env })).toMatchObject({ code: 0 })
  const breaker = createBreaker({ store, name: 'mails/acme', opens: { failures: 1 } })
  await breaker.call(() => Promise.reject(new Error('down'))).catch(() => undefined)
  await breaker.close()
}

describe('every command that is called wrongly', () => {
  let place: Place
  let before: string[]
  let files: string[]
  const seen = async () => {
    await using store = await place.open()
    return contentOf(store)
  }
  beforeAll(async () => {
    place = createPlace()
    await place.json(['migrate'])
    await using store = await place.open()
    await prepare(place, store, {})
    before = await contentOf(store)
    files = readdirSync(place.folder).toSorted()
  })
  afterAll(() => place[Symbol.dispose]())

  type Refuse = (args: readonly string[], ...names: string[]) => Promise<void>
  const flawsIn = async (work: (refuse: Refuse) => Promise<void>): Promise<string[]> => {
    const flaws: string[] = []
    await work(async (args, ...names) => void flaws.push(...flawsOf(args, await place.call(args), names)))
    return flaws
  }

  it('without what it needs says what that is', async () => {
    const flaws = await flawsIn(async (refused) => {
      for (const leaf of all) {
        const { path, command } = leaf
        const needed = command.registeredArguments.filter(({ required }) => required)
        for (const [i, argument] of needed.entries())
          await refused([...path, ...rightArguments(leaf).slice(0, i), ...rightOptions(leaf)], argument.name())
        for (const option of command.options.filter(({ mandatory }) => mandatory))
          await refused([...path, ...rightArguments(leaf), ...rightOptions(leaf, option.long)], option.long ?? '')
      }
    })
    expect(flaws).toEqual([])
  })

  it('with one argument too many says so', async () => {
    const flaws = await flawsIn(async (refused) => {
      for (const leaf of all) {
        const { path, command } = leaf
        const full = command.registeredArguments.map((each) => valuesOf(each).right)
        await refused([...path, ...full, 'superfluous', ...rightOptions(leaf)], 'too many arguments')
      }
    })
    expect(flaws).toEqual([])
  })

  it('with an option that it does not know says which', async () => {
    const flaws = await flawsIn(async (refused) => {
      for (const leaf of all) {
        for (const option of ['--never-heard-of', '-Q', '--never=heard'])
          await refused(
            [...leaf.path, ...rightArguments(leaf), ...rightOptions(leaf), option],
            option.split('=')[0] ?? '',
          )
      }
    })
    expect(flaws).toEqual([])
  })

  it('with an option that lacks its value says which', async () => {
    const flaws = await flawsIn(async (refused) => {
      for (const leaf of all) {
        for (const option of [...leaf.command.options, ...program.options]) {
          if (!option.required) continue
          await refused([...leaf.path, ...rightArguments(leaf), option.long ?? ''], option.long ?? '')
        }
      }
    })
    expect(flaws).toEqual([])
  })

  it('with a value that is none for its option says which', async () => {
    const flaws = await flawsIn(async (refused) => {
      for (const leaf of all) {
        for (const option of leaf.command.options) {
          const word = takes(option)
          if (word === undefined) continue
          const wrong = wrongValues[word]
          if (wrong === undefined) throw new Error(`Say in wrongValues what <${word}> of ${option.flags} takes.`)
          if (wrong === 'free') continue
          const { long = '' } = option
          for (const value of wrong) {
            const rest = rightOptions(leaf, long).filter((each) => long !== '--letter' || each !== '--all')
            await refused([...leaf.path, ...rightArguments(leaf), ...rest, `${long}=${value}`], long, ...told(value))
          }
        }
      }
    })
    expect(flaws).toEqual([])
  })

  it('with options that exclude each other says which', async () => {
    let pairs = 0
    const flaws = await flawsIn(async (refused) => {
      for (const leaf of all) {
        const { command, path } = leaf
        for (const option of command.options) {
          for (const other of (option as Option & { conflictsWith: string[] }).conflictsWith) {
            const second = command.options.find((each) => each.attributeName() === other)
            if (!second) throw new Error(`${path.join(' ')} has no option ${other}.`)
            const given = [option, second].flatMap((each) => [each.long ?? '', ...(takes(each) ? ['1'] : [])])
            await refused(
              [...path, ...rightArguments(leaf), '--reason', 'x', ...given],
              option.long ?? '',
              second.long ?? '',
            )
            pairs++
          }
        }
      }
    })
    expect(flaws).toEqual([])
    expect(pairs).toBeGreaterThan(10)
  })

  it('with settings that are none says which', async () => {
    const flaws = await flawsIn(async (refused) => {
      for (const [option, ...values] of [
        ['--config', 'no/such/config.ts'],
        ['--store', 'mysql://a@b/c', 'sqlite:', 'https://a/b'],
        ['--as', '', ' ', 'x'.repeat(300)],
      ] as const) {
        for (const value of values)
          await refused(
            ['status', `${option}=${value}`],
            option,
            value.slice(0, 40) === '' ? option : value.slice(0, 40),
          )
      }
      await refused(
        ['status', '--store', 'postgres://x@127.0.0.1:1/y', '--schema', 'Not a name'],
        'schema',
        'Not a name',
      )
    })
    expect(flaws).toEqual([])
  })

  const named = all.filter(({ command }) => command.registeredArguments.length > 0)

  async function flawsOfNames(
    call: (args: readonly string[]) => Promise<Told>,
    leaf: Leaf,
    pick: (values: readonly string[]) => readonly string[] = (values) => values,
  ): Promise<string[]> {
    const flaws: string[] = []
    for (const [i, argument] of leaf.command.registeredArguments.entries()) {
      const others = leaf.command.registeredArguments.map((each) => valuesOf(each).right)
      // A position says already which.
      const hasPosition = leaf.command.registeredArguments.some((each) => each.name() === 'position')
      const options = rightOptions(leaf).filter((option) => option !== '--all' || !hasPosition)
      for (const value of pick(valuesOf(argument).wrong)) {
        const args = [...leaf.path, ...options, '--', ...others.with(i, value)]
        flaws.push(...flawsOf(args, await call(args), [...told(value), argument.name()]))
      }
    }
    return flaws
  }

  it.each(named)('$path with the name of nothing says so', async (leaf) => {
    expect(await flawsOfNames((args) => place.call(args), leaf)).toEqual([])
    expect(await seen()).toEqual(before)
  })

  it('tells programs the same in one document', async () => {
    for (const leaf of all) {
      const [first] = leaf.command.registeredArguments
      const wrong = first === undefined ? ['superfluous'] : [valuesOf(first).wrong[0] ?? '\0', 'a', 'b', 'c']
      const args = [...leaf.path, ...wrong, '--json']
      const { code, stdout } = await place.call(args)
      expect({ args, code, document: JSON.parse(stdout) }).toMatchObject({
        args,
        code: 2,
        document: {
          ok: false,
          error: { code: expect.any(String), message: expect.any(String), hint: expect.any(String) },
        },
      })
      expect(stdout.trimEnd().split('\n')).toHaveLength(1)
    }
  })

  it('has changed nothing', async () => {
    expect(await seen()).toEqual(before)
    expect(readdirSync(place.folder).toSorted()).toEqual(files)
  })

  describeNewest('names of nothing', (server) => {
    const schemas = useSchemas(server)

    it('are refused, and nothing is changed', async () => {
      const schema = schemas.newSchema()
      const env = { DATABASE_URL: schemas.url, HOLDFAST_SCHEMA: schema }
      expect(await place.json(['migrate'], { env })).toMatchObject({ code: 0 })
      await using store = await schemas.open(schema)
      await prepare(place, store, env)
      const then = await contentOf(store)
      const flaws: string[] = []
      const call = (args: readonly string[]) => place.call(args, { env })
      // One that looks like a name, and one that no text of PostgreSQL has in it.
      for (const leaf of named.filter(({ path }) => !['copy', 'init', 'completion'].includes(path[0] ?? '')))
        flaws.push(...(await flawsOfNames(call, leaf, (values) => [...values.slice(0, 1), 'a\0b'])))
      expect(flaws).toEqual([])
      expect(await contentOf(store)).toEqual(then)
    })
  })
})
