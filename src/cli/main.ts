#!/usr/bin/env node
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Command, CommanderError } from 'commander'
import { nodeSqlite } from '../sqlite/node.ts'
import type { Perform } from './command.ts'
import { Context, type Patience } from './context.ts'
import { CommandError, type Exit, toTold } from './errors.ts'
import { type Io, processIo } from './io.ts'
import { withoutSecrets } from './output/escape.ts'
import { Output } from './output/output.ts'
import { bold, dim, red } from './output/style.ts'
import { createProgram } from './program.ts'
import type { GlobalFlags } from './settings.ts'

interface RootFlags extends GlobalFlags {
  readonly json?: boolean
  readonly color?: boolean
}

/** Runs one command, whatever becomes of it, and gives the exit code. It never throws. */
export async function main(args: readonly string[], io: Io = processIo()): Promise<Exit> {
  const known = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length)
  const out = new Output(io, known.includes('--json'), !known.includes('--no-color'))
  const interrupted = new AbortController()
  const patience: Patience = { isAsked: false, controller: new AbortController() }
  let exit: Exit = 0

  const perform: Perform = async (command, action) => {
    // An older Node should hear that it is too old, and not stumble over something that it lacks.
    nodeSqlite()
    const { config, store, schema, as } = command.optsWithGlobals<RootFlags>()
    const flags: GlobalFlags = {
      ...(config !== undefined && { config }),
      ...(store !== undefined && { store }),
      ...(schema !== undefined && { schema }),
      ...(as !== undefined && { as: checkUser(as) }),
    }
    await using ctx = new Context(io, out, flags, interrupted.signal, patience)
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
    version: version(),
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
    // Who called it wrongly is told how to call it, if nothing better is known.
    const hint = told.hint ?? (told.exit === 2 ? `${pathOf(commandOf(program, args))} --help` : undefined)
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

/** An act that hears of the signal ends by itself; one that doesn't is left behind. */
async function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const leave = () => aborted.reject(signal.reason as Error)
  signal.addEventListener('abort', leave)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', leave)
    // Whoever was left behind may still fail, and nobody waits for it any more.
    work.catch(() => undefined)
  }
}

function checkUser(name: string): string {
  if (name.trim() !== '' && name.length <= 200) return name.toWellFormed()
  throw new CommandError('USAGE', 'The name of --as is empty or too long.', 'Give 1 to 200 characters.')
}

function usageError({ code, message }: CommanderError, program: Command, args: readonly string[]): CommandError {
  const called = commandOf(program, args)
  const how = `${pathOf(called)} ${called.usage()}; more: ${pathOf(called)} --help`
  const isBare = code === 'commander.help'
  const list = called.commands.map((each) => each.name()).join(', ')
  const what = isBare ? `A command is missing. There are ${list}.` : message.replace(/^error: /, '')
  return new CommandError('USAGE', what, how)
}

/** As far as the arguments name a command. */
function commandOf(program: Command, args: readonly string[]): Command {
  let command = program
  for (const arg of args) {
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

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}

/** Whether this file is what Node was started with; npm starts it by a link. */
function isStarted(): boolean {
  const [, script] = process.argv
  return script !== undefined && realpathSync(script) === realpathSync(fileURLToPath(import.meta.url))
}

if (import.meta.main || isStarted()) {
  // Who reads only the first lines closes the pipe; that is no error of ours.
  process.stdout.on('error', () => process.exit(0))
  const exit = await main(process.argv.slice(2))
  // What the configuration imported may keep the process alive for ever; but what was written must get out.
  await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))))
  process.exit(exit)
}
