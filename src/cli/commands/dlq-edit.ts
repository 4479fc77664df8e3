import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { type Command, Option } from 'commander'
import type { LetterName } from '../../dead-letter/letter-store.ts'
import type { JsonChange } from '../../event/diff.ts'
import { parseJson } from '../../event/parse.ts'
import type { Operator } from '../../operator/operator.ts'
import { shapeOf } from '../../dead-letter/shape.ts'
import { type ActFlags, reasonOf } from '../act.ts'
import { action, type Perform, wholeNumber, withReason } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import { checkJson } from '../json.ts'
import { canAsk } from '../output/prompt.ts'
import { dim, green, red, type Text, yellow } from '../output/style.ts'
import { shapeText } from '../reveal.ts'
import { positionOf } from './dlq-show.ts'

interface Flags extends ActFlags {
  readonly data?: string
  readonly file?: string
  readonly undo?: boolean
  readonly partition?: number
}

export function addEdit(group: Command, perform: Perform): void {
  const command = group
    .command('edit')
    .argument('<subscription>')
    .argument('<position>')
    .description('give a letter other data to be tried with; the event itself stays as it came')
    .addOption(new Option('--data <json>', 'the whole new data; - reads it from stdin').conflicts(['file', 'undo']))
    .addOption(new Option('--file <file>', 'the same from a file').conflicts('undo'))
    .addOption(new Option('--undo', 'take the newest edit back').conflicts('dryRun'))
    .option('--partition <n>', 'where a source has a position twice', wholeNumber)
    .option('--dry-run', 'check it and show what would change, and change nothing')
    .addHelpText(
      'after',
      '\nWithout --data and --file, on a terminal, $EDITOR opens with the data; the audit keeps that it was seen.',
    )
  action<Flags>(withReason(command), perform, async (ctx, [subscription = '', text = ''], flags) => {
    const name: LetterName = { subscription, position: positionOf(text), partition: flags.partition }
    await ctx.subscription(subscription)
    const operator = await ctx.operator()
    const { dryRun = false } = flags
    const reason = dryRun && flags.data !== undefined ? '' : await reasonOf(ctx, flags)
    if (flags.undo) return resultOf(name, dryRun, await operator.unrevise(name, reason))
    const data = await newData(ctx, operator, name, flags, reason)
    return resultOf(
      name,
      dryRun,
      dryRun ? await operator.previewRevision(name, data) : await operator.revise(name, data, reason),
    )
  })
}

function resultOf(
  { subscription, position }: LetterName,
  dryRun: boolean,
  revised: { readonly number?: number; readonly changes: readonly JsonChange[] },
) {
  const changes = revised.changes.map(shown)
  return {
    json: { subscription, position, dryRun, revision: revised.number ?? null, changes },
    show: (out: Context['out']) => {
      for (const change of changes) out.data(lineOf(change))
      if (changes.length === 0) out.data('Nothing differs.')
      if (dryRun) out.talk('It fits its schema. Nothing was changed.')
      else {
        out.talk('The letter is tried with this from now on; the event is as it came.')
        out.talk(dim('Next: '), `holdfast dlq redrive ${subscription} --letter ${position} --dry-run`)
      }
    },
  }
}

/** Where, and of what type; not the values. */
function shown(change: JsonChange) {
  const before = change.change === 'added' ? null : shapeOf(change.before)
  const after = change.change === 'removed' ? null : shapeOf(change.after)
  return { change: change.change, path: change.path, before, after }
}

function lineOf({ change, path, before, after }: ReturnType<typeof shown>): Text {
  const where = path === '' ? 'the whole' : path
  if (change === 'added') return [green('+ '), where, dim(`: ${shapeText(after)}`)]
  if (change === 'removed') return [red('- '), where, dim(`: ${shapeText(before)}`)]
  return [yellow('~ '), where, dim(`: ${shapeText(before)} → ${shapeText(after)}`)]
}

async function newData(
  ctx: Context,
  operator: Operator,
  name: LetterName,
  flags: Flags,
  reason: string,
): Promise<{ readonly json: string }> {
  if (flags.data !== undefined) return dataIn(flags.data === '-' ? await readAll(ctx.io.stdin) : flags.data, '--data')
  if (flags.file !== undefined) {
    try {
      return dataIn(await readFile(resolve(ctx.io.cwd, flags.file), 'utf8'), '--file')
    } catch (cause) {
      if (cause instanceof CommandError) throw cause
      throw new CommandError('USAGE', `--file ${flags.file} can't be read.`, 'Mend the path.', { cause })
    }
  }
  if (!canAsk(ctx.io) || flags.input === false)
    throw new CommandError('USAGE', 'The new data is missing.', `Give it with --data '{…}', --data - or --file.`)
  const { decoded, letter } = await operator.reveal(name, reason)
  const current = letter.revision ? parseJson(letter.revision.body) : 'data' in decoded ? decoded.data : undefined
  return dataIn(await edited(ctx, JSON.stringify(current ?? null, null, 2)), 'What the editor left')
}

function dataIn(text: string, what: string): { readonly json: string } {
  return { json: checkJson(text, what).trim() }
}

/** In the person's own editor, in a file that nobody else may read. */
async function edited(ctx: Context, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-edit-'))
  try {
    const file = join(folder, 'data.json')
    await writeFile(file, `${text}\n`, { mode: 0o600 })
    const editor = ctx.io.env['VISUAL'] || ctx.io.env['EDITOR'] || 'vi'
    const code = await new Promise<number | null>((done, fail) => {
      spawn('sh', ['-c', `${editor} "$1"`, 'holdfast', file], { stdio: 'inherit' })
        .on('error', fail)
        .on('close', done)
    })
    if (code !== 0)
      throw new CommandError(
        'NOT_CONFIRMED',
        `The editor ended with ${code}. Nothing was changed.`,
        'Set EDITOR, or give --file.',
      )
    const now = await readFile(file, 'utf8')
    if (now.trim() === text.trim())
      throw new CommandError(
        'NOT_CONFIRMED',
        'Nothing was changed in the editor.',
        'Change it and save, or give --data.',
      )
    return now
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
