import { Command } from 'commander'
import type { Perform } from './command.ts'
import { addAudit } from './commands/audit.ts'
import { addBreakers } from './commands/breakers.ts'
import { addCompletion } from './commands/completion.ts'
import { addConfig } from './commands/config.ts'
import { addCopy } from './commands/copy.ts'
import { addDlq } from './commands/dlq.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEvents } from './commands/events.ts'
import { addInit } from './commands/init.ts'
import { addMigrate } from './commands/migrate.ts'
import { addProjections } from './commands/projections.ts'
import { addRedrives } from './commands/redrives.ts'
import { addStart } from './commands/start.ts'
import { addStatus } from './commands/status.ts'
import { addSubscriptions } from './commands/subscriptions.ts'
import { addVerify } from './commands/verify.ts'

export interface ProgramOptions {
  readonly perform: Perform
  readonly version: string
  readonly write: (text: string) => void
  readonly width: number | undefined
}

const groups = [
  addInit,
  addStart,
  addStatus,
  addDoctor,
  addMigrate,
  addConfig,
  addSubscriptions,
  addProjections,
  addDlq,
  addRedrives,
  addBreakers,
  addEvents,
  addVerify,
  addAudit,
  addCopy,
  addCompletion,
] as const

/** The tree of all commands. Help, completion and the reference are generated from it. */
export function createProgram({ perform, version, write, width }: ProgramOptions): Command {
  const program = new Command('holdfast')
    .description('Every event applied once, in order, or held.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .option('--config <file>', 'the configuration file; default: holdfast.config.ts')
    .option('--store <store>', 'sqlite:<file> or postgres://…; overrides the configuration')
    .option('--schema <name>', 'the PostgreSQL schema; default: holdfast')
    .option('--as <name>', 'your name in the audit; default: HOLDFAST_USER, then the system user')
    .option('--json', 'print one JSON document on stdout')
    .option('--no-color', 'print without colours, as NO_COLOR does')
    .option('--no-input', 'never prompt')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    // commander only throws; `main` prints all errors.
    .configureOutput({
      writeOut: write,
      writeErr: () => undefined,
      outputError: () => undefined,
      ...(width !== undefined && { getOutHelpWidth: () => width }),
    })
    .exitOverride()
  for (const add of groups) add(program, perform)
  return program
}
