import { type Command, InvalidArgumentError } from 'commander'
import { shapeOf } from '../../dead-letter/shape.ts'
import { parseJson } from '../../event/parse.ts'
import { diffRebuild, type RowDifference } from '../../rebuild/diff.ts'
import { type Generation, type RebuildableSubscription, rebuildableOf } from '../../rebuild/generation.ts'
import { rebuild } from '../../rebuild/rebuild.ts'
import { dropRebuild, switchRebuild } from '../../rebuild/switch.ts'
import { totalOf } from '../../subscription/checkpoint.ts'
import { type ActFlags, confirm, reasonOf } from '../act.ts'
import {
  action,
  durationMs,
  limitNumber,
  type Perform,
  positiveNumber,
  withConfirmation,
  withReason,
} from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import { lineLogger } from '../output/log-lines.ts'
import { Progress } from '../output/progress.ts'
import { bold, dim, green, red, type Text, yellow } from '../output/style.ts'
import { ago, count, many } from '../output/words.ts'
import { recordReveal, type RevealFlags, shapeText } from '../reveal.ts'

export function addRebuilds(group: Command, perform: Perform): void {
  addVersions(group, perform)
  addRebuild(group, perform)
  addDiff(group, perform)
  addSwitch(group, perform)
  addDrop(group, perform)
}

function addVersions(group: Command, perform: Perform): void {
  const command = group
    .command('versions')
    .argument('<projection>')
    .description('the live one, and those that were built beside it')
  action(command, perform, async (ctx, [name = '']) => {
    const { version } = (await rebuildable(ctx, name)).consumer
    const versions = (await generations(ctx, name)).map(generationJson)
    const now = ctx.clock.now()
    return {
      json: { projection: name, code: version, versions },
      show: (out) => {
        out.table(
          [
            { title: 'version', right: true },
            { title: 'state' },
            { title: 'table' },
            { title: 'events', right: true },
            { title: 'held', right: true },
          ],
          versions.map((each): Text[] => [
            each.version,
            each.isLive
              ? green('live')
              : each.retiredAt === null
                ? yellow('beside')
                : dim(`live until ${ago(each.retiredAt, now)}`),
            each.table ?? dim('your own'),
            count(each.events),
            each.held > 0 ? red(count(each.held)) : '0',
          ]),
        )
        out.talk(dim(`The code of the configuration is version ${version}.`))
      },
    }
  })
}

function generationJson({ version, isLive, table, retiredAt, partitions }: Generation) {
  return {
    version,
    isLive,
    table: table ?? null,
    retiredAt: retiredAt ?? null,
    events: partitions.reduce((sum, { checkpoint }) => sum + totalOf(checkpoint.counts), 0),
    held: partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0),
    positions: partitions.map(({ checkpoint }) => checkpoint.position),
  }
}

interface RebuildFlags extends ActFlags {
  readonly follow?: boolean
  readonly rate?: number
  readonly load?: number
}

function addRebuild(group: Command, perform: Perform): void {
  const command = group
    .command('rebuild')
    .argument('<projection>')
    .description('build the version that the code is, into a table of its own, beside the live one')
    .option('--follow', 'go on when it has come up with the log, until the switch')
    .option('--rate <n>', 'so many events a second at the most', positiveNumber)
    .option('--load <share>', 'which part of its time it works, up to 1; 0.5 unless you say', share)
    .option('--dry-run', 'show what would be done, and do nothing')
  action<RebuildFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const subscription = await rebuildable(ctx, name)
    const { version } = subscription.consumer
    const all = await generations(ctx, name)
    const live = all.find(({ isLive }) => isLive)
    const store = await ctx.store()
    if (flags.dryRun) {
      const begun = all.find((each) => each.version === version)
      const { events } = await store.log.lag(
        Math.min(
          ...((begun ?? live)?.partitions.map((part) => (begun ? part.checkpoint.position : part.checkpoint.start)) ?? [
            0,
          ]),
        ),
      )
      const isLive = live?.version === version
      return {
        json: {
          projection: name,
          dryRun: true,
          version,
          live: live?.version ?? null,
          isBegun: begun !== undefined,
          events: isLive ? 0 : events,
        },
        show: (out) =>
          out.data(
            isLive
              ? `${name} is live at version ${version} already: raise its version to build it anew.`
              : `${name}: about ${many(events, 'event')} would be applied for version ${version}, beside version ${live?.version ?? '?'}.`,
          ),
      }
    }
    const reason = await reasonOf(ctx, flags)
    const progress = new Progress(ctx.out, `${name} version ${version}`)
    const { follow = false, rate, load } = flags
    const built = await rebuild(subscription, {
      store,
      by: await ctx.user(),
      reason,
      follow,
      signal: ctx.graceful(),
      logger: lineLogger(ctx.out, ctx.io),
      ...(rate !== undefined && { rate }),
      ...(load !== undefined && { load }),
      onProgress: ({ events, total }) => progress.at(events, total),
    })
    progress.end()
    if (built.end === 'stopped') {
      throw new CommandError(
        'INTERRUPTED',
        `Version ${version} of ${name} is not whole yet. What was done is kept.`,
        `Go on with: holdfast projections rebuild ${name}`,
        { more: { progress: built.progress } },
      )
    }
    return {
      json: { projection: name, dryRun: false, version, end: built.end, progress: built.progress ?? null },
      show: (out) => {
        const held = built.progress?.held ?? 0
        const what = { level: green('level with the log'), switched: green('live'), dropped: red('dropped') }[
          built.end as 'level' | 'switched' | 'dropped'
        ]
        out.data(
          bold(name),
          ` version ${version}: `,
          what,
          `, ${many(built.progress?.events ?? 0, 'event')}, ${count(held)} held`,
        )
        if (built.end === 'level')
          out.talk(
            dim('Next: '),
            `holdfast projections diff ${name}, then: holdfast projections switch ${name} --wait 1m`,
          )
      },
      exit: built.end === 'dropped' ? 3 : 0,
    }
  })
}

interface DiffFlags extends RevealFlags {
  readonly to?: number
  readonly limit?: number
}

function addDiff(group: Command, perform: Perform): void {
  const command = group
    .command('diff')
    .argument('<projection>')
    .description('compare a version that was built beside with the live one, row by row')
    .option('--to <version>', 'which; that of the code unless you say', positiveNumber)
    .option('--limit <n>', 'how many differences; 20 unless you say', limitNumber)
    .option('--reveal', 'show the rows; the audit keeps who and why')
  action<DiffFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const { consumer } = await rebuildable(ctx, name)
    if (consumer.kind !== 'fold')
      throw new CommandError(
        'USAGE',
        `${name} is SQL of your own: only you can compare its tables.`,
        'See: holdfast projections versions',
      )
    await generations(ctx, name)
    await recordReveal(ctx, flags, `${name}/diff`)
    const { to: version = consumer.version, limit = 20 } = flags
    const found = await diffRebuild(consumer, { store: await ctx.store(), version, limit })
    const differences = found.differences.map((each) => differenceJson(each, flags.reveal === true))
    const { same, different, onlyLive, onlyRebuilt, isLevel } = found
    const isSame = different + onlyLive + onlyRebuilt === 0
    return {
      json: { projection: name, version, same, different, onlyLive, onlyRebuilt, isLevel, differences },
      show: (out) => {
        out.data(
          `${count(same)} the same, ${count(different)} different, ${count(onlyLive)} only live, ${count(onlyRebuilt)} only in version ${version}`,
        )
        for (const { key, changed, live, rebuilt } of differences) {
          out.data(bold(key), changed.length > 0 ? dim(` ${changed.join(', ')}`) : '')
          out.data('  ', red('- '), live === null ? dim('none') : rowText(live))
          out.data('  ', green('+ '), rebuilt === null ? dim('none') : rowText(rebuilt))
        }
        if (!isLevel) out.talk(yellow('They have not applied the same events'), ': some of it may be only that.')
      },
      exit: isSame ? 0 : 3,
    }
  })
}

function differenceJson({ key, live, rebuilt }: RowDifference, isRevealed: boolean) {
  const [before, after] = [live, rebuilt].map((json) => (json === undefined ? undefined : parseJson(json)))
  const shown = (row: unknown) => (row === undefined ? null : isRevealed ? { data: row } : { shape: shapeOf(row) })
  return { key, changed: changedFields(before, after), live: shown(before), rebuilt: shown(after) }
}

function changedFields(before: unknown, after: unknown): string[] {
  if (!isRecord(before) || !isRecord(after)) return []
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...fields].filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function rowText(row: { readonly data: unknown } | { readonly shape: unknown }): string {
  return 'data' in row ? JSON.stringify(row.data) : shapeText(row.shape)
}

interface SwitchFlags extends ActFlags {
  readonly to?: number
  readonly wait?: number
  readonly evenStrays?: boolean
}

function addSwitch(group: Command, perform: Perform): void {
  const command = group
    .command('switch')
    .argument('<projection>')
    .description('make another version the live one, in one transaction; the same leads back')
    .option('--to <version>', 'which; that of the code unless you say', positiveNumber)
    .option('--wait <duration>', 'how long to wait until it is level', durationMs)
    .option('--even-strays', 'although people decided about events that it had passed without that')
  action<SwitchFlags>(withConfirmation(withReason(command)), perform, async (ctx, [name = ''], flags) => {
    const subscription = await rebuildable(ctx, name)
    const { to = subscription.consumer.version, wait, evenStrays } = flags
    const all = await generations(ctx, name)
    const live = all.find(({ isLive }) => isLive)
    const next = all.find(({ version }) => version === to)
    if (!next || !live) throw unknown(name, to, all)
    const what = [
      `${name} will be served by version ${to} instead of ${live.version}. Processes with other code wait.`,
      `Version ${to} has ${many(generationJson(next).held, 'held letter')}, the live one ${count(generationJson(live).held)}.`,
    ]
    if (flags.dryRun)
      return {
        json: { projection: name, dryRun: true, from: live.version, to },
        show: (out) => what.forEach((line) => out.data(line)),
      }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name, count: async () => generationJson(next).held })
    const switched = await switchRebuild(subscription, {
      store: await ctx.store(),
      version: to,
      by: await ctx.user(),
      reason,
      logger: lineLogger(ctx.out, ctx.io),
      ...(wait !== undefined && { wait }),
      ...(evenStrays && { evenStrays }),
    })
    return {
      json: { projection: name, dryRun: false, from: switched.from, to: switched.to, held: switched.held },
      show: (out) => {
        out.data(`${name} is live at version ${switched.to}.`)
        out.talk(
          dim('Next: '),
          `holdfast verify ${name}; back again: holdfast projections switch ${name} --to ${switched.from}`,
        )
      },
    }
  })
}

function addDrop(group: Command, perform: Perform): void {
  const command = group
    .command('drop')
    .argument('<projection>')
    .argument('<version>')
    .description('remove a version that is not live, with its table; a rebuild that runs ends with it')
  action<ActFlags>(withConfirmation(withReason(command)), perform, async (ctx, [name = '', text = ''], flags) => {
    await rebuildable(ctx, name)
    const version = /^\d{1,9}$/.test(text) ? Number(text) : 0
    const all = await generations(ctx, name)
    const found = all.find((each) => each.version === version)
    if (!found) throw unknown(name, version, all)
    if (found.isLive)
      throw new CommandError('USAGE', `Version ${version} of ${name} is the live one.`, 'Switch to another first.')
    const { events } = generationJson(found)
    const what = [`Version ${version} of ${name}, built from ${many(events, 'event')}, will be gone, with its table.`]
    if (flags.dryRun)
      return {
        json: { projection: name, dryRun: true, version, events },
        show: (out) => what.forEach((line) => out.data(line)),
      }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name: `${name}~${version}`, count: async () => events })
    await dropRebuild(name, { store: await ctx.store(), version, by: await ctx.user(), reason })
    return {
      json: { projection: name, dryRun: false, version, events },
      show: (out) => out.data(`Version ${version} of ${name} is gone.`),
    }
  })
}

function unknown(name: string, version: number, all: readonly Generation[]): CommandError {
  const list = all.map((each) => `${each.version}${each.isLive ? ' (live)' : ''}`).join(', ')
  return new CommandError(
    'NOT_FOUND',
    `The store has no version ${version} of ${name}. It has ${list}.`,
    `Build it: holdfast projections rebuild ${name}`,
  )
}

async function rebuildable(ctx: Context, name: string): Promise<RebuildableSubscription> {
  return rebuildableOf(await ctx.subscription(name))
}

/** Throws where nobody ever started it: there is nothing to be beside of. */
async function generations(ctx: Context, name: string): Promise<readonly Generation[]> {
  await ctx.storedSubscription(name)
  return (await ctx.store()).rebuilds.list(name)
}

function share(text: string): number {
  const value = /^\d(\.\d{1,6})?$/.test(text) ? Number(text) : 0
  if (value > 0 && value <= 1) return value
  throw new InvalidArgumentError('Give a number above 0, up to 1.')
}
