import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createSqliteStore } from 'holdfast/sqlite'
import type { Store } from 'holdfast'
import type { Exit } from '../../src/cli/errors.ts'
import type { Io } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Told {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** What a person types, line by line, at a terminal. A function is asked when its line is wanted. */
  readonly typed?: readonly (string | (() => string | Promise<string>))[]
  readonly columns?: number
}

/** A folder with a project in it, as a user has it, and `holdfast` to be called there. */
export interface Place extends Disposable {
  readonly folder: string
  readonly file: string
  /** In a process of its own. */
  spawn(...args: string[]): ReturnType<typeof start>
  run(args: readonly string[], options?: RunOptions): Promise<Told>
  /** The same code in this process: a tenth of the time, and it can have a terminal. */
  call(args: readonly string[], options?: RunOptions): Promise<Told>
  json<T = Record<string, unknown>>(args: readonly string[], options?: RunOptions): Promise<T & { code: number | null }>
  open(): Promise<Store>
}

const config = `
import { defineConfig } from 'holdfast'
import { bank, balances, mails } from './bank.ts'
export default defineConfig({ store: { sqlite: 'events.db' }, subscriptions: [balances, mails], events: bank, engine: { poll: '20ms' } })
`

const bank = `
import { existsSync } from 'node:fs'
import { defineEvents, defineHandler, defineProjection, park, definePolicy } from 'holdfast'
import { z } from 'zod'
export const bank = defineEvents({
  Credited: z.object({ amount: z.number(), note: z.string().optional() }),
  Debited: z.object({ amount: z.number(), note: z.string().optional() }),
})
/** Until the file fixed is there, a debit that is too large throws, with its amount in the message. */
const is = (what) => existsSync(new URL(what, import.meta.url))
export const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance && !is('fixed')) throw new RangeError('can not take ' + data.amount + ' for ' + data.note)
      return { balance: row.balance - data.amount }
    },
  },
})
export const mails = defineHandler('mails', {
  events: bank,
  failure: definePolicy({ permanent: park, unknown: park }),
  on: {
    Credited: () => {
      if (is('mails-are-down')) throw new TypeError('no mail')
    },
  },
})
`

export function createPlace(files: Readonly<Record<string, string>> = {}): Place {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/holdfast'))
  symlinkSync(join(root, 'node_modules/zod'), join(folder, 'node_modules/zod'))
  const all = { 'package.json': '{"type":"module"}', 'holdfast.config.ts': config, 'bank.ts': bank, ...files }
  for (const [path, text] of Object.entries(all)) if (text !== '') writeFileSync(join(folder, path), text)
  const file = join(folder, 'events.db')
  const call = (args: readonly string[], options: RunOptions = {}) => callIn(folder, args, options)
  return {
    folder,
    file,
    spawn: (...args) => start(folder, args),
    run: async (args, options = {}) => start(folder, args, options).ended,
    call,
    json: async (args, options) => {
      const { code, stdout } = await call([...args, '--json'], options)
      const lines = stdout.trimEnd().split('\n')
      if (lines.length !== 1) throw new Error(`Not one document, but ${lines.length}: ${stdout}`)
      return { ...JSON.parse(stdout), code }
    },
    open: () => createSqliteStore({ file }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Nothing of the machine on which the tests run. */
const plainEnv = () => {
  const { PATH = '', HOME = '', TMPDIR = tmpdir() } = process.env
  return { PATH, HOME, TMPDIR, HOLDFAST_USER: 'ada' }
}

function start(cwd: string, args: readonly string[], { env = {}, input }: RunOptions = {}) {
  const script = join(root, 'src/cli/main.ts')
  const child = spawn(process.execPath, ['--no-warnings', '--conditions=@holdfast/source', script, ...args], {
    cwd,
    env: { ...plainEnv(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(input ?? '')
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (output.stderr += text))
  const ended = new Promise<Told>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, ...output }))
  })
  return { process: child, output, ended }
}

async function callIn(cwd: string, args: readonly string[], options: RunOptions): Promise<Told> {
  const { env = {}, input = '', typed, columns } = options
  const output = { stdout: '', stderr: '' }
  const isTTY = typed !== undefined
  const answers = [...(typed ?? [])]
  const keys = new PassThrough()
  const into = (name: 'stdout' | 'stderr') =>
    Object.assign(
      new Writable({
        decodeStrings: false,
        write: (text: string, _, done) => {
          output[name] += text
          // A question ends without a break; then the person types.
          if (name === 'stderr' && /(\? |: )$/.test(text)) void answer()
          done()
        },
      }),
      { isTTY, ...(columns !== undefined && { columns }) },
    )
  const answer = async () => {
    const next = answers.shift()
    keys.write(`${typeof next === 'function' ? await next() : (next ?? '')}\n`)
  }
  const io: Io = {
    stdin: Object.assign(isTTY ? keys : Readable.from([input]), { isTTY }),
    stdout: into('stdout'),
    stderr: into('stderr'),
    env: { ...plainEnv(), ...env },
    cwd,
    osUser: 'somebody@somewhere',
    onInterrupt: () => () => undefined,
  }
  const code: Exit = await main(args, io)
  return { code, ...output }
}
