import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { Command, Option } from 'commander'
import { createEngine, createLog, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { itemsOf } from '../../../src/archive/archive.ts'
import type { Io } from '../../../src/cli/io.ts'
import { main } from '../../../src/cli/main.ts'
import { createProgram } from '../../../src/cli/program.ts'
import { balances, bank, credited, debited } from '../../fixtures.ts'
import type { Chance } from '../chance.ts'
import { type Door, expectThat, type Outcome, type StoreKind } from '../door.ts'
import { oddText } from '../generate/text.ts'
import { silent } from './engine.ts'

const program = createProgram({ perform: async () => undefined, version: '0', write: () => undefined, width: 100 })
const commands = [...leavesOf(program)]

function* leavesOf(command: Command): Generator<Command> {
  if (command.commands.length === 0) yield command
  for (const each of command.commands) yield* leavesOf(each)
}

function pathOf(command: Command): string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : []
}

const variables = [
  'HOLDFAST_STORE',
  'DATABASE_URL',
  'HOLDFAST_SCHEMA',
  'HOLDFAST_USER',
  'HOLDFAST_NAME',
  'HOLDFAST_CONFIG',
]
const exits = [0, 1, 2, 3]
// What was interrupted, because it would run for ever, says so.
const interrupted = 130

export interface Told {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Every command with any arguments: it says what is wrong and what to do next, and changes nothing if it was called wrongly. */
export const cliDoor = (kind: StoreKind): Door => ({
  name: `cli.${kind}`,
  outcomes: ['accepted', 'refused'],
  cases: 40,
  open: async (ground) => {
    const root = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'))
    // Paths that lead upwards should not lead out of it.
    const folder = join(root, 'a/b/c/d')
    mkdirSync(folder, { recursive: true })
    const choice = ground.choose(kind)
    const open = () =>
      'sqlite' in choice
        ? createSqliteStore({ file: choice.sqlite })
        : createPostgresStore({ ...choice.postgres, connections: 2 })
    await fill(await open())
    writeFileSync(join(folder, 'holdfast.config.ts'), configText(choice))
    const look = await open()
    let before = await contentOf(look)
    return {
      give: async (chance) => {
        const told = await call(folder, argsOf(chance), envOf(chance), chance.percent(30) ? oddText(chance) : '')
        checkTold(told)
        const after = await contentOf(look)
        expectThat(told.code !== 2 || after === before, 'it was called wrongly, and something was changed', told)
        before = after
        return told.code === 2 ? 'refused' : 'accepted'
      },
      [Symbol.asyncDispose]: async () => {
        await look.close()
        rmSync(root, { recursive: true, force: true })
      },
    }
  },
})

/** The same bank as that of the store. */
const configText = (choice: object) => `
import { balances, bank } from ${JSON.stringify(new URL('../../fixtures.ts', import.meta.url).href)}
export default { store: ${JSON.stringify(choice)}, subscriptions: [balances], events: bank }
`

/** A lane that is held, with others behind it, and one that flows. */
async function fill(store: Store): Promise<void> {
  const log = createLog({ store, events: bank })
  await log.append('a', [credited(1), debited(2), credited(100)])
  await log.append('b', [debited(3)])
  await log.append('c', [credited(7)])
  const engine = createEngine({ store, subscriptions: [balances], logger: silent })
  await engine.start()
  await engine.drain()
  await engine.stop()
  await store.close()
}

/** Everything that lasts in it. */
function contentOf(store: Store): Promise<string> {
  return store.snapshot(async (moment) => {
    const items: string[] = []
    for await (const { kind, name, text } of itemsOf(moment.archive())) items.push(`${kind} ${name} ${text}`)
    return items.join('\n')
  })
}

/** A call that could be meant, with something wrong in it. */
export function argsOf(chance: Chance): string[] {
  const command = chance.pick(commands)
  const args = command.registeredArguments.map((argument) => valueOf(chance, argument.name()))
  const given = [
    ...command.options.filter(({ mandatory, long }) => chance.percent(mandatory || long === '--reason' ? 85 : 15)),
    ...program.options.filter(() => chance.percent(4)),
  ]
  const options = given.flatMap((option) => optionOf(chance, option))
  const all = [...pathOf(command), ...shuffled(chance, [...args.map((arg) => [arg]), options]).flat()]
  if (chance.percent(60)) all.push('--json')
  if (chance.percent(50)) all.push('--no-input')
  if (chance.percent(70) && command.options.some(({ long }) => long === '--yes')) all.push('--yes')
  if (chance.percent(8)) all.splice(chance.below(all.length + 1), 0, oddText(chance))
  if (chance.percent(4)) all.splice(chance.below(all.length + 1), 0, '--')
  if (chance.percent(4)) all.splice(chance.below(all.length), 1)
  if (chance.percent(3)) all.push(...all)
  // No system gives a program an argument with a zero in it.
  return all.map((arg) => arg.replaceAll('\0', ''))
}

function optionOf(chance: Chance, option: Option): string[] {
  const name = chance.percent(95) ? (option.long ?? option.short ?? '') : `${option.long ?? ''}${oddText(chance, 3)}`
  if (option.long === '--store')
    return [name, chance.pick(['', 'sqlite:', 'sqlite:x/y.db', 'x.db', 'http://x', 'mysql://a:b@c/d', '.'])]
  if (!option.required && !option.optional) return [name]
  const value = valueOf(chance, option.flags)
  return chance.percent(20) ? [`${name}=${value}`] : [name, value]
}

/** What could be meant, by what it is called. */
const goodValues: readonly (readonly [RegExp, readonly string[]])[] = [
  [/subscription|projection/, ['balances']],
  [/position|letter|event/, ['2', '4', '5', 'a@2']],
  [/lane|key/, ['a', 'b', 'c']],
  [/data|json/, ['{"amount":1}', '-']],
  [/type/, ['Credited', 'Debited']],
  [/<n>|version|limit|last|expect/, ['1', '2', '10']],
  [/time|since|until|older|duration|every|before/, ['1h', '10s', '2026-01-01']],
  [/file|output|<to>|store/, ['x.db', 'out.json']],
  [/reason|name|text/, ['because']],
  [/rate|share/, ['1', '0.5']],
  [/shell/, ['bash', 'zsh', 'fish']],
]

function valueOf(chance: Chance, name: string): string {
  if (chance.percent(20)) return oddText(chance)
  const [, values = ['1']] = goodValues.find(([pattern]) => pattern.test(name)) ?? []
  return chance.pick(chance.percent(90) ? values : chance.pick(goodValues)[1])
}

function shuffled<T>(chance: Chance, items: T[]): T[] {
  return chance.percent(85) ? items : items.toSorted(() => chance.below(3) - 1)
}

function envOf(chance: Chance): Record<string, string> {
  const env: Record<string, string> = { HOLDFAST_USER: 'ada' }
  if (chance.percent(10)) {
    const name = chance.pick(variables)
    const isStore = name === 'HOLDFAST_STORE' || name === 'DATABASE_URL'
    env[name] = isStore ? chance.pick(['', 'x', 'postgres:', 'a://b', 'sqlite:']) : oddText(chance).replaceAll('\0', '')
  }
  return env
}

// Nothing but what is to run for ever takes so long, on whatever machine.
const tooLongMs = 60_000

function isEndless(args: readonly string[]): boolean {
  return args.some((arg) => /^(start|-[a-z]*f|--follow|--watch|--wait|rebuild|redrive)/.test(arg))
}

/** In this process. What runs until it is told to end is told so when it has nothing more to say. */
export async function call(
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Told> {
  const output = { stdout: '', stderr: '' }
  const into = (name: 'stdout' | 'stderr') =>
    new Writable({
      decodeStrings: false,
      write: (text: string, _, done) => {
        output[name] += text
        done()
      },
    })
  const timers: NodeJS.Timeout[] = []
  const io: Io = {
    stdin: Readable.from([input]),
    stdout: into('stdout'),
    stderr: into('stderr'),
    env,
    cwd,
    osUser: 'somebody@somewhere',
    onInterrupt: (listener) => {
      const moments = isEndless(args) ? [300, 5_000] : [tooLongMs]
      for (const ms of moments) timers.push(setTimeout(() => listener('SIGINT'), ms))
      return () => timers.forEach(clearTimeout)
    },
  }
  const code = await main(args, io)
  return { args, env, code, ...output }
}

const unsafe = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u

export function checkTold(told: Told): Outcome {
  const { code, stdout, stderr, args } = told
  expectThat(exits.includes(code) || (code === interrupted && isEndless(args)), 'it ended with another code', told)
  const all = `${stdout}${stderr}`
  expectThat(!/^ {4}at .+:\d+:\d+\)?$/m.test(all), 'it told a stack', told)
  const isOfProgram = /FAILED(: |","message":")(Type|Reference|Range|Syntax)Error/.test(all)
  expectThat(!isOfProgram, 'it told an error of the program', told)
  const known = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  const isHelp =
    code === 0 &&
    known.some((arg) => ['-h', '--help', 'help', '-V', '--version'].includes(arg) || /^-[a-zA-Z]*[hV]/.test(arg))
  if (isHelp) return 'accepted'
  if (args[0] !== 'completion')
    expectThat(!unsafe.test(all.replaceAll('\n', '')), 'it told what a terminal could take for a command', told)
  if (known.includes('--json') && !isHelp)
    for (const line of stdout.split('\n').filter((each) => each !== ''))
      expectThat(isDocument(line), 'a line is no JSON', told)
  return code === 2 ? 'refused' : 'accepted'
}

function isDocument(line: string): boolean {
  try {
    return typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}
