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

/** The tree of all commands. It is what help, completion and the reference are made of. */
export function createProgram({ perform, version, write, width }: ProgramOptions): Command {
  const program = new Command('holdfast')
    .description('Every event applied once, in order, or held fast.')
    .version(version, '-V, --version', 'the version of Holdfast')
    .helpOption('-h, --help', 'how it is called')
    .helpCommand('help [command]', 'how a command is called')
    .option('--config <file>', 'the configuration; holdfast.config.ts unless you say')
    .option('--store <store>', 'sqlite:<file> or postgres://…, instead of what the configuration says')
    .option('--schema <name>', 'the schema in PostgreSQL')
    .option('--as <name>', 'who does this, for the audit; HOLDFAST_USER or the user of the system')
    .option('--json', 'one JSON document on stdout')
    .option('--no-color', 'no colours; NO_COLOR says the same')
    .option('--no-input', 'never ask')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    // What is wrong is told in one place, see `main`; commander only throws it.
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
