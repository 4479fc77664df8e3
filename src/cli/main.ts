#!/usr/bin/env node
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Command, CommanderError } from 'commander'
import { nodeSqlite } from '../sqlite/connection/node.ts'
import { typedAgain } from './again.ts'
import type { Perform } from './command.ts'
import { Context, type Patience } from './context.ts'
import { CommandError, type Exit, toTold } from './errors.ts'
import { type Io, processIo } from './io.ts'
import { withoutSecrets } from './output/escape.ts'
import { Output } from './output/output.ts'
import { bold, dim, red } from './output/style.ts'
import { shellWord } from './output/words.ts'
import { createProgram } from './program.ts'
import type { GlobalFlags } from './settings.ts'
import { ownVersion } from './version.ts'

interface RootFlags extends GlobalFlags {
  readonly json?: boolean
  readonly color?: boolean
}

/** Runs one command and returns its exit code. It never throws. */
export async function main(args: readonly string[], io: Io = processIo()): Promise<Exit> {
  const known = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length)
  const out = new Output(io, known.includes('--json'), !known.includes('--no-color'))
  const interrupted = new AbortController()
  const patience: Patience = { isAsked: false, controller: new AbortController() }
  let exit: Exit = 0

  const perform: Perform = async (command, action) => {
    // Reports an unsupported Node version before anything else can fail on it.
    nodeSqlite()
    const { config, store, schema, as } = command.optsWithGlobals<RootFlags>()
    const flags: GlobalFlags = {
      ...(config !== undefined && { config: checkGiven('--config', config) }),
      ...(store !== undefined && { store: checkGiven('--store', store) }),
      ...(schema !== undefined && { schema: checkGiven('--schema', schema) }),
      ...(as !== undefined && { as: checkUser(as) }),
    }
    out.carry(givenOf(flags))
    await using ctx = new Context(io, out, flags, interrupted.signal, patience, (more, without) =>
      typedAgain(command, args, more, without),
    )
    const result = await untilInterrupted(action(ctx), interrupted.signal)
    exit = result?.exit ?? 0
    if (!result) return
    if (out.isJson) out.document({ ok: true, ...result.json })
    else result.show(out)
  }

  const ignore = io.onInterrupt((signal) => {
    if (patience.isAsked && !patience.controller.signal.aborted) patience.controller.abort(signal)
    else interrupted.abort(new CommandError('INTERRUPTED', `Interrupted (${signal}).`))
  })
  const program = createProgram({
    perform,
    version: ownVersion(),
    write: (text) => void io.stdout.write(text),
    width: io.stdout.columns,
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exit
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    const told = toTold(error instanceof CommanderError ? usageError(error, program, args) : error)
    const { code, message } = told
    // A usage error without its own hint points to the help.
    const next = told.hint ?? (told.exit === 2 ? `${pathOf(commandOf(program, args))} --help` : undefined)
    const hint = next === undefined ? undefined : out.hint(next)
    if (out.isJson) out.document({ ok: false, error: { code, message, hint: hint ?? null }, ...told.more })
    else {
      out.talk(red(bold(code)), ': ', message)
      if (hint !== undefined) out.talk(dim('Next: '), hint)
    }
    if (io.env['HOLDFAST_DEBUG'] === '1') tellStack(out, error)
    return told.exit
  } finally {
    ignore()
  }
}

/** Stops waiting when the signal aborts, also for work that does not listen to it. */
async function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const leave = () => aborted.reject(signal.reason as Error)
  signal.addEventListener('abort', leave)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', leave)
    // Abandoned work may still reject later.
    work.catch(() => undefined)
  }
}

/** An empty value is often a variable of a shell that is not set. The default would be another store. */
function checkGiven(option: string, value: string): string {
  if (value.trim() !== '') return value
  throw new CommandError('USAGE', `${option} is empty.`, `Give ${option} a value, or leave it out.`)
}

/** The options that a suggested command needs too, without a password. */
function givenOf({ config, store, schema }: GlobalFlags): string {
  return Object.entries({ config, store, schema })
    .flatMap(([name, value]) => (value === undefined ? [] : `--${name} ${shellWord(withoutSecrets(value))}`))
    .join(' ')
}

function checkUser(name: string): string {
  if (name.trim() !== '' && name.length <= 200) return name.toWellFormed()
  throw new CommandError('USAGE', 'The name in --as is empty or too long.', 'Give 1 to 200 characters.')
}

function usageError({ code, message }: CommanderError, program: Command, args: readonly string[]): CommandError {
  const called = commandOf(program, args)
  const path = pathOf(called)
  const help = `${path} --help`
  if (code === 'commander.help') {
    const list = called.commands.map((each) => each.name()).join(', ')
    return new CommandError('USAGE', `A command is missing. Commands: ${list}.`, help)
  }
  const what = message.replace(/^error: /, '').replaceAll(/\n\((.*)\)/g, '. $1')
  return new CommandError('USAGE', `${what}${/[.?!]$/.test(what) ? '' : '.'} Usage: ${path} ${called.usage()}`, help)
}

/** The deepest command that the arguments name. */
function commandOf(program: Command, args: readonly string[]): Command {
  let command = program
  for (const [i, arg] of args.entries()) {
    // The value of a global option, as in `--store events.db status`.
    if (program.options.some(({ long, required }) => required && long === args[i - 1])) continue
    const next = command.commands.find((each) => each.name() === arg || each.aliases().includes(arg))
    if (next) command = next
    else if (!arg.startsWith('-')) break
  }
  return command
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

function tellStack(out: Output, error: unknown): void {
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    for (const line of (at.stack ?? '').split('\n')) out.talk(dim(withoutSecrets(line)))
}

/** Whether Node was started with this file. npm starts it through a symbolic link. */
function isStarted(): boolean {
  const [, script] = process.argv
  return script !== undefined && realpathSync(script) === realpathSync(fileURLToPath(import.meta.url))
}

if (import.meta.main || isStarted()) {
  // A reader such as `head` closes the pipe early. That is not a failure; a full disk is.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    process.stderr.write(`FAILED: stdout can't be written: ${error.message}.\n`)
    process.stderr.write(
      'Next: Free some space, or redirect the output to another place. The output is not complete.\n',
    )
    process.exit(1)
  })
  // Messages are lost then, but not the result.
  process.stderr.on('error', () => undefined)
  const exit = await main(process.argv.slice(2))
  // Modules of the configuration may keep the process alive, so it exits explicitly, after all output is flushed.
  await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))))
  process.exit(exit)
}
