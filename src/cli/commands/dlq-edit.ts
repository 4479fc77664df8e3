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
import type { LetterView } from '../../operator/view.ts'
import { reasonOf } from '../act.ts'
import { action, type Perform, wholeNumber, withReason } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import { checkJson } from '../json.ts'
import { canAsk } from '../output/prompt.ts'
import { changeLine, shownChange } from '../output/changes.ts'
import { shellWord } from '../output/words.ts'
import { prepareReveal, type RevealFlags } from '../reveal.ts'
import { positionOf, wayOut } from './dlq-show.ts'

interface Flags extends RevealFlags {
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
    .description('set the data that a letter is processed with; the event itself does not change')
    .addOption(new Option('--data <json>', 'the complete new data; - reads it from stdin').conflicts(['file', 'undo']))
    .addOption(new Option('--file <file>', 'read the new data from a file').conflicts('undo'))
    .addOption(new Option('--undo', 'undo the newest edit').conflicts('dryRun'))
    .option('--partition <n>', 'the partition, if the source has the position in several', wholeNumber)
    .option('--dry-run', 'check the data, show what would change, and change nothing')
    .option('--reveal', 'show the changed values; recorded in the audit')
    .addHelpText(
      'after',
      '\nOn a terminal, without --data and --file, $EDITOR opens with the data. The audit records that it was shown.',
    )
  action<Flags>(withReason(command), perform, async (ctx, [subscription = '', text = ''], flags) => {
    const name: LetterName = { subscription, position: positionOf(text), partition: flags.partition }
    await ctx.subscription(subscription)
    const operator = await ctx.operator()
    const { dryRun = false } = flags
    const reveal = await prepareReveal(ctx, flags)
    // The editor shows the data, which the audit records.
    const isGiven = flags.data !== undefined || flags.file !== undefined
    const reason = dryRun && isGiven ? '' : await reasonOf(ctx, flags)
    if (flags.undo) {
      const { number, changes } = await operator.unrevise(name, reason)
      const view = await operator.letter(name, { behind: 0 })
      const { revision } = view.letter
      const left = revision ? `edit ${revision.number}` : 'the original event'
      await reveal(`${subscription}/${name.position}`)
      return resultOf(
        name,
        flags,
        { number, changes },
        {
          talk: `Edit ${number} was undone. The letter is processed with ${left}.${placeOf(view)}`,
          next: nextOf(name, view),
        },
      )
    }
    const data = await newData(ctx, operator, name, flags, reason)
    const preview = await operator.previewRevision(name, data)
    if (preview.changes.length === 0)
      throw new CommandError(
        'USAGE',
        `The letter at position ${name.position} of ${subscription} is already processed with this data. Nothing was stored.`,
        `To process it again as it is: holdfast dlq redrive ${subscription} --letter ${name.position} --dry-run`,
      )
    const revised = dryRun ? preview : await operator.revise(name, data, reason)
    await reveal(`${subscription}/${name.position}`)
    if (dryRun) return resultOf(name, flags, revised, { talk: 'The new data fits the schema. Nothing was changed.' })
    const view = await operator.letter(name, { behind: 0 })
    return resultOf(name, flags, revised, {
      talk: `The letter is now processed with the new data. The event itself does not change.${placeOf(view)}`,
      next: nextOf(name, view),
    })
  })
}

/** Only the head of a lane can be redriven by itself. For a later letter the hint redrives the lane. */
function nextOf({ subscription, position, partition }: LetterName, view: LetterView): string {
  const { isHead, lane } = view
  const of = partition === undefined ? '' : ` --partition ${partition}`
  const refused = wayOut(view)
  if (refused !== undefined) return refused
  if (isHead || !lane) return `holdfast dlq redrive ${subscription} --letter ${position}${of} --dry-run`
  return `holdfast dlq redrive ${subscription} --lane ${shellWord(lane.lane)} --dry-run`
}

/** Where a letter that is not the head of its lane waits. */
function placeOf({ isHead, lane }: LetterView): string {
  return isHead || !lane ? '' : ` Its lane is held at position ${lane.headPosition}.`
}

function resultOf(
  { subscription, position }: LetterName,
  { dryRun = false, reveal = false }: Flags,
  revised: { readonly number?: number; readonly changes: readonly JsonChange[] },
  { talk, next }: { readonly talk: string; readonly next?: string },
) {
  const changes = revised.changes.map((change) => shownChange(change, reveal))
  return {
    json: { subscription, position, dryRun, revision: revised.number ?? null, changes },
    show: (out: Context['out']) => {
      for (const change of changes) out.data(changeLine(change))
      if (changes.length === 0) out.data('No differences.')
      out.talk(talk)
      if (next !== undefined) out.next(next)
    },
  }
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
      return dataIn(await readFile(resolve(ctx.io.cwd, flags.file), 'utf8'), `The file ${flags.file}`, 'Fix the file.')
    } catch (cause) {
      if (cause instanceof CommandError) throw cause
      throw new CommandError('USAGE', `--file ${flags.file} can't be read.`, 'Fix the path.', { cause })
    }
  }
  if (!canAsk(ctx.io) || flags.input === false)
    throw new CommandError('USAGE', 'The new data is missing.', `Use --data '{…}', --data - or --file.`)
  const { decoded, letter } = await operator.reveal(name, reason)
  const current = letter.revision ? parseJson(letter.revision.body) : 'data' in decoded ? decoded.data : undefined
  const text = await edited(ctx, JSON.stringify(current ?? null, null, 2))
  return dataIn(text, 'The text from the editor', 'Nothing was changed. Edit it again, or use --file.')
}

function dataIn(text: string, what: string, hint?: string): { readonly json: string } {
  return { json: checkJson(text, what, 'USAGE', hint).trim() }
}

/** Opens the user's editor on a file that only this user may read. */
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
        `The editor exited with code ${code}. Nothing was changed.`,
        'Set EDITOR, or use --file.',
      )
    const now = await readFile(file, 'utf8')
    if (now.trim() === text.trim())
      throw new CommandError(
        'NOT_CONFIRMED',
        'The editor made no change.',
        'Change the data and save it, or use --data.',
      )
    return now
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
