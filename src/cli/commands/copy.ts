import type { Command } from 'commander'
import { type CopyProgress, copyStore } from '../../archive/copy.ts'
import { toConfig } from '../../postgres/connection/connection.ts'
import { checkSchema } from '../../postgres/connection/identifier.ts'
import { createPostgresStore } from '../../postgres/index.ts'
import { createSqliteStore } from '../../sqlite/index.ts'
import { action, type Perform } from '../command.ts'
import { CommandError, toTold } from '../errors.ts'
import { many } from '../output/words.ts'
import { checkIsStore } from '../store.ts'

interface Flags {
  readonly schema?: string
  readonly force?: boolean
}

/** Display names where they differ from the kind. */
const words: Readonly<Record<string, readonly [one: string, several?: string]>> = {
  deed: ['entry of the audit', 'entries of the audit'],
  redriveLane: ['lane of a redrive', 'lanes of redrives'],
}

export function addCopy(program: Command, perform: Perform): void {
  const command = program
    .command('copy')
    .argument('<file>', 'a SQLite store')
    .argument('<url>', 'postgres://user@host/database')
    .option('--force', 'copy even if another process seems to use the store')
    .description('copy a SQLite store into an empty PostgreSQL schema (--schema) and compare every record')
    .addHelpText(
      'after',
      '\nThe copy is atomic. First stop every process that appends to the file or runs an engine on it.\nThe password may come from PGPASSWORD.',
    )
  action<Flags>(command, perform, async ({ out }, [file = '', url = ''], { schema = 'holdfast', force = false }) => {
    toConfig(url)
    checkSchema(schema)
    checkIsStore(file)
    let phase = 'copying' as CopyProgress['phase']
    try {
      await using from = await createSqliteStore({ file })
      await using to = await createPostgresStore({ connection: url, schema })
      const { counts, left } = await copyStore({
        from,
        to,
        force,
        onProgress: (progress) => {
          ;({ phase } = progress)
          const { event, row, letter } = progress.counts
          out.talk(`${phase}: ${many(event, 'event')}, ${many(row, 'row')}, ${many(letter, 'letter')}`)
        },
      })
      return {
        json: { counts, left },
        show: () => {
          const found = Object.entries(counts).filter(([, count]) => count > 0)
          const told = found.map(([kind, count]) => {
            const [one, several] = words[kind] ?? [kind]
            return many(count, one, several)
          })
          out.data(`Copied and compared: ${told.join(', ')}.`)
          for (const name of left)
            out.data(name, ' uses its own SQL: it starts from the beginning. Create its tables first.')
        },
      }
    } catch (cause) {
      throw failed(cause, phase === 'comparing', schema)
    }
  })
}

/** The same error, with the state of the copy in the hint. */
function failed(cause: unknown, isCopied: boolean, schema: string): unknown {
  const { code, message, hint = '' } = toTold(cause)
  const rest = isCopied
    ? `The copy is not reliable. Drop the schema ${schema} before you copy again.`
    : 'Nothing was copied.'
  return new CommandError(code, message, `${hint} ${rest}`.trim(), { cause, more: { isCopied } })
}
