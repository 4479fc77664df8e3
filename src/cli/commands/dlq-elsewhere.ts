import { createReadStream, existsSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { type ActFlags, reasonOf } from '../act.ts'
import { action, type Perform, withReason } from '../command.ts'
import { CommandError } from '../errors.ts'
import { type FilterFlags, filterOf, withFilter, withStatus } from '../letters.ts'
import { harmlessJson } from '../output/escape.ts'
import { dim, yellow } from '../output/style.ts'
import { count, many } from '../output/words.ts'

export function addElsewhere(group: Command, perform: Perform): void {
  addExport(group, perform)
  addImport(group, perform)
}

interface ExportFlags extends ActFlags, FilterFlags {
  readonly output?: string
  readonly history?: boolean
}

function addExport(group: Command, perform: Perform): void {
  const command = group
    .command('export')
    .argument('<subscription>')
    .description('letters with their payloads as NDJSON, on stdout or in a file; the audit keeps who and why')
    .option('--output <file>', 'into a new file, that only you may read')
    .option('--history', 'also the events of the same keys that came before, to see the same failure elsewhere')
    .option('--lane <lane>', 'of this lane')
    .option('--fingerprint <fingerprint>', 'of this incident')
  action<ExportFlags>(withReason(withFilter(withStatus(command))), perform, async (ctx, [subscription = ''], flags) => {
    const { output, history = false } = flags
    if (ctx.out.isJson && output === undefined)
      throw new CommandError(
        'USAGE',
        'An export is NDJSON by itself, not one document.',
        'Leave --json out, or give --output <file>.',
      )
    await ctx.storedSubscription(subscription)
    const path = output === undefined ? undefined : resolve(ctx.io.cwd, output)
    if (path !== undefined && existsSync(path))
      throw new CommandError('FILE_EXISTS', `${path} is there already. Nothing was written.`, 'Give another name.')
    const reason = await reasonOf(ctx, flags)
    const operator = await ctx.operator()
    const file = path === undefined ? undefined : await create(path)
    let lines = 0
    try {
      const query = { subscription, ...filterOf(flags) }
      for await (const line of operator.exportLetters({ query, reason, history })) {
        ctx.signal.throwIfAborted()
        // Lines of JSON: what a terminal could take for a command stands in them as an escape.
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
  })
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600)
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? 'it can not be made'
    throw new CommandError('USAGE', `--output ${path} can't be written: ${why}.`, 'Mend the path.', { cause })
  }
}

function addImport(group: Command, perform: Perform): void {
  const command = group
    .command('import')
    .argument('<file>', 'an export; - reads stdin')
    .description('append what an export has to a log that is empty, to see elsewhere what failed here')
  action<ActFlags>(withReason(command), perform, async (ctx, [file = ''], flags) => {
    const path = resolve(ctx.io.cwd, file)
    if (file !== '-' && !(existsSync(path) && statSync(path).isFile()))
      throw new CommandError('USAGE', `There is no file ${JSON.stringify(path)} to import.`, 'Mend the path.')
    const reason = await reasonOf(ctx, flags)
    const operator = await ctx.operator()
    const input = file === '-' ? ctx.io.stdin : createReadStream(path)
    const done = await operator.importLetters(createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }), {
      reason,
    })
    return {
      json: { ...done },
      show: (out) => {
        out.data(`${many(done.events, 'event')} appended, ${count(done.letters)} of them letters.`)
        if (done.revised > 0)
          out.talk(yellow(count(done.revised)), ' had an edit, which stays in the file: they came as they were.')
        for (const { line, eventId, why } of done.skipped)
          out.talk(yellow('skipped'), ` line ${line}, `, eventId, ': ', why)
        out.talk(dim('Next: '), 'holdfast start --drain, then holdfast dlq list')
      },
      exit: done.skipped.length > 0 ? 3 : 0,
    }
  })
}
