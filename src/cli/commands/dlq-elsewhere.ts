import { createReadStream, existsSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { type ActFlags, reasonOf } from '../act.ts'
import { action, type Perform, withReason } from '../command.ts'
import { CommandError } from '../errors.ts'
import { type FilterFlags, filterOf, withFilter, withLane, withStatus } from '../letters.ts'
import { harmlessJson } from '../output/escape.ts'
import { yellow } from '../output/style.ts'
import { many, shellWord } from '../output/words.ts'

export function addElsewhere(group: Command, perform: Perform): void {
  addExport(group, perform)
  addImport(group, perform)
}

interface ExportFlags extends ActFlags, FilterFlags {
  readonly output?: string
  readonly history?: boolean
  readonly all?: boolean
}

function addExport(group: Command, perform: Perform): void {
  const command = group
    .command('export')
    .argument('<subscription>')
    .description('write letters with their payloads as NDJSON to stdout or a file; recorded in the audit')
    .option('--output <file>', 'write to a new file that only you may read')
    .option('--history', 'also earlier events of the same keys, to reproduce the failure in another store')
    .option('--incident <fingerprint>', 'only letters of this incident')
  action<ExportFlags>(
    withReason(withFilter(withStatus(withLane(command)))),
    perform,
    async (ctx, [subscription = ''], flags) => {
      const { output, history = false, all = false } = flags
      if (ctx.out.isJson && output === undefined)
        throw new CommandError(
          'USAGE',
          'An export is NDJSON, not one JSON document.',
          'Remove --json, or use --output <file>.',
        )
      await ctx.storedSubscription(subscription)
      const path = output === undefined ? undefined : resolve(ctx.io.cwd, output)
      if (path !== undefined && existsSync(path))
        throw new CommandError('FILE_EXISTS', `${path} already exists. Nothing was written.`, 'Give another name.')
      const reason = await reasonOf(ctx, flags)
      const operator = await ctx.operator()
      const file = path === undefined ? undefined : await create(path)
      let lines = 0
      try {
        const query = { subscription, ...filterOf(flags) }
        for await (const line of operator.exportLetters({ query, reason, history, all })) {
          ctx.signal.throwIfAborted()
          // Escapes characters that a terminal may interpret.
          const text = `${harmlessJson(line.trimEnd())}\n`
          if (file) await file.write(text)
          else if (!ctx.io.stdout.write(text)) await new Promise((done) => ctx.io.stdout.once('drain', done))
          lines++
        }
      } finally {
        await file?.close()
      }
      if (path === undefined) {
        ctx.out.talk(many(lines, 'line'), ' written.')
        return undefined
      }
      return {
        json: { subscription, file: path, lines },
        show: (out) => out.data(`${many(lines, 'line')} written to `, path, '.'),
      }
    },
  )
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600)
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? 'it cannot be created'
    throw new CommandError('USAGE', `--output ${path} can't be written: ${why}.`, 'Fix the path.', { cause })
  }
}

function addImport(group: Command, perform: Perform): void {
  const command = group
    .command('import')
    .argument('<file>', 'an export file; - reads stdin')
    .description(
      'append the events of an export to an empty log, to reproduce failures; start then requires --allow-effects',
    )
  action<ActFlags>(withReason(command), perform, async (ctx, [file = ''], flags) => {
    const path = resolve(ctx.io.cwd, file)
    if (file !== '-' && !(existsSync(path) && statSync(path).isFile()))
      throw new CommandError('USAGE', `The file ${JSON.stringify(path)} does not exist.`, 'Fix the path.')
    const reason = await reasonOf(ctx, flags)
    const operator = await ctx.operator()
    const input = file === '-' ? ctx.io.stdin : createReadStream(path)
    const done = await operator.importLetters(createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }), {
      reason,
    })
    const declared = await ctx.subscriptions()
    const projections = declared
      .filter(({ consumer }) => consumer.kind !== 'handler')
      .map(({ name }) => shellWord(name))
    return {
      json: { ...done },
      show: (out) => {
        out.data(
          `${many(done.events, 'event')} appended: ${many(done.letters, 'letter')}, ${many(done.events - done.letters, 'earlier event')}.`,
        )
        if (done.revised > 0)
          out.talk(
            yellow(many(done.revised, 'letter')),
            ' had an edit. Edits are not imported: the log has the original event.',
          )
        for (const { line, eventId, why } of done.skipped)
          out.talk(yellow('skipped'), ` line ${line}, `, eventId, ': ', why)
        out.talk('Handlers that you start on this store run with their real side effects.')
        if (projections.length > 0) out.next(`holdfast start --drain --only ${projections.join(' ')} --allow-effects`)
      },
      exit: done.skipped.length > 0 ? 3 : 0,
    }
  })
}
