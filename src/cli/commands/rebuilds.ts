import type { Command } from 'commander'
import { shapeOf } from '../../dead-letter/shape.ts'
import { parseJson } from '../../event/parse.ts'
import { diffRebuild } from '../../rebuild/diff.ts'
import { type Generation, rebuildableOf } from '../../rebuild/generation.ts'
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
  shareNumber,
  withConfirmation,
  withReason,
} from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import { Progress } from '../output/progress.ts'
import { bold, dim, green, red, yellow } from '../output/style.ts'
import { count, many, moment } from '../output/words.ts'
import { prepareReveal, type RevealFlags, shapeText } from '../reveal.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Versions of a projection: build one beside the live one, compare, switch, drop. */
export function addRebuilds(group: Command, perform: Perform): void {
  addVersions(group, perform)
  addRebuild(group, perform)
  addDiff(group, perform)
  addSwitch(group, perform)
  addDrop(group, perform)
}

async function declared(ctx: Context, name: string) {
  const subscription = await ctx.subscription(name)
  if (subscription.consumer.kind === 'handler') {
    throw new CommandError(
      'USAGE',
      `${name} is a handler: to build it anew would do everything again.`,
      'See what can be rebuilt: holdfast projections list',
    )
  }
  return rebuildableOf(subscription)
}

function addVersions(group: Command, perform: Perform): void {
  const command = group
    .command('versions')
    .argument('<projection>')
    .description('which version is live, and which are built or kept beside it')
  action(command, perform, async (ctx, [name = '']) => {
    const { consumer } = await declared(ctx, name)
    const generations = await (await ctx.store()).rebuilds.list(name)
    const versions = generations.map((generation) => ({
      version: generation.version,
      state: stateOf(generation),
      isDeclared: generation.version === consumer.version,
      table: generation.table ?? null,
      position: Math.min(...generation.partitions.map(({ checkpoint }) => checkpoint.position)),
      events: generation.partitions.reduce((sum, { checkpoint }) => sum + totalOf(checkpoint.counts), 0),
      held: generation.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0),
      retiredAt: generation.retiredAt ?? null,
    }))
    return {
      json: { projection: name, declared: consumer.version, versions },
      show: (out) => {
        out.table(
          [
            { title: 'version', right: true },
            { title: 'state' },
            { title: 'table' },
            { title: 'position', right: true },
            { title: 'held', right: true },
            { title: 'live until' },
          ],
          versions.map((each) => [
            String(each.version),
            each.state === 'live' ? green('live') : each.state === 'building' ? yellow('building') : dim('kept'),
            each.table ?? dim('your own'),
            count(each.position),
            each.held > 0 ? red(count(each.held)) : '0',
            each.retiredAt === null ? dim('-') : moment(each.retiredAt),
          ]),
        )
        if (!versions.some(({ isDeclared }) => isDeclared))
          out.talk(dim('Next: '), `version ${consumer.version} is not built yet: holdfast projections rebuild ${name}`)
      },
    }
  })
}

/** All there are; this one must be among them. */
async function versionsOf(ctx: Context, name: string, version: number): Promise<readonly Generation[]> {
  const generations = await (await ctx.store()).rebuilds.list(name)
  if (generations.some((each) => each.version === version)) return generations
  throw new CommandError(
    'REBUILD_UNKNOWN',
    `The store has no version ${version} of ${name}.`,
    `See: holdfast projections versions ${name}. To build that of the configuration: holdfast projections rebuild ${name}`,
  )
}

function stateOf({ isLive, retiredAt }: Generation): 'live' | 'building' | 'kept' {
  return isLive ? 'live' : retiredAt === undefined ? 'building' : 'kept'
}

interface RebuildFlags extends ActFlags {
  readonly rate?: number
  readonly load?: number
  readonly follow?: boolean
}

function addRebuild(group: Command, perform: Perform): void {
  const command = group
    .command('rebuild')
    .argument('<projection>')
    .description('build the version of the configuration beside the live one; stop and go on at any time')
    .option('--rate <n>', 'events per second at the most', positiveNumber)
    .option('--load <share>', 'which part of its time it works, up to 1; 0.5 unless you say', shareNumber)
    .option('--follow', 'go on when it is level, until the switch')
  action<RebuildFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const subscription = await declared(ctx, name)
    const { rate, load, follow = false } = flags
    const reason = await reasonOf(ctx, flags)
    const by = await ctx.user()
    const store = await ctx.store()
    const signal = ctx.graceful()
    const bar = new Progress(ctx.out, `rebuilding ${name}`)
    const { end, progress } = await rebuild(subscription, {
      store,
      signal,
      follow,
      by,
      reason,
      logger: silent,
      onProgress: ({ events, total }) => bar.at(events, total),
      ...(rate !== undefined && { rate }),
      ...(load !== undefined && { load }),
    })
    bar.end()
    const { version } = subscription.consumer
    return {
      json: { projection: name, version, end, progress: progress ?? null },
      show: (out) => {
        out.data(`Version ${version} of ${name} is ${end}. ${many(progress?.events ?? 0, 'event')} so far.`)
        if (progress && progress.held > 0)
          out.talk(red(`${many(progress.held, 'event')} held.`), ` holdfast dlq list ${name}~${version}`)
        if (end === 'level') {
          out.talk(dim('Next: '), `holdfast projections diff ${name}, then holdfast projections switch ${name}`)
        }
        if (end === 'stopped') out.talk(dim('Next: '), `it goes on with holdfast projections rebuild ${name}`)
      },
      ...(end === 'stopped' && { exit: 130 as const }),
    }
  })
}

interface DiffFlags extends RevealFlags {
  readonly limit?: number
}

function addDiff(group: Command, perform: Perform): void {
  const command = group
    .command('diff')
    .argument('<projection>')
    .description('what a rebuilt version has otherwise than the live one, row by row, at one moment')
    .option('--limit <n>', 'how many rows to show; 20 unless you say', limitNumber)
    .option('--reveal', 'show the values; the audit keeps who and why')
  action<DiffFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const { consumer } = await declared(ctx, name)
    if (consumer.kind === 'sql') {
      throw new CommandError(
        'USAGE',
        `${name} is SQL of your own: what it wrote, only you can compare.`,
        `Switch when you have: holdfast projections switch ${name}`,
      )
    }
    const reveal = await prepareReveal(ctx, flags)
    const { limit = 20 } = flags
    const diff = await diffRebuild(consumer, { store: await ctx.store(), limit })
    await reveal(name)
    const shown = (json: string | undefined) => {
      if (json === undefined) return null
      const data = parseJson(json)
      return flags.reveal ? { data } : { shape: shapeOf(data) }
    }
    const differences = diff.differences.map(({ key, live, rebuilt }) => ({
      key,
      live: shown(live),
      rebuilt: shown(rebuilt),
    }))
    const different = diff.different + diff.onlyLive + diff.onlyRebuilt
    return {
      json: { projection: name, ...diff, differences },
      show: (out) => {
        out.data(
          `${count(diff.same)} the same, ${count(diff.different)} different, ${count(diff.onlyLive)} only live, ${count(diff.onlyRebuilt)} only rebuilt`,
        )
        for (const { key, live, rebuilt } of differences)
          out.data('  ', bold(key), `  ${rowText(live)}  ->  ${rowText(rebuilt)}`)
        if (different > differences.length) out.data(`  … and ${count(different - differences.length)} more`)
        if (!diff.isLevel) out.talk(yellow('The two had not applied the same events; some of it may be only that.'))
        if (!flags.reveal && differences.length > 0) out.talk(dim('Values are private: --reveal shows them.'))
      },
      exit: different === 0 ? 0 : 3,
    }
  })
}

type Shown = { readonly data: unknown } | { readonly shape: ReturnType<typeof shapeOf> } | null

function rowText(row: Shown): string {
  if (row === null) return 'none'
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
    .description('make a rebuilt version the live one, at once; the other is kept until it is dropped')
    .option('--to <version>', 'that of the configuration unless you say', positiveNumber)
    .option('--wait <duration>', 'for how long to wait until it is level; 30s unless you say', durationMs)
    .option('--even-strays', 'although people decided about events after the rebuild had passed them')
  action<SwitchFlags>(withConfirmation(withReason(command)), perform, async (ctx, [name = ''], flags) => {
    const subscription = await declared(ctx, name)
    const store = await ctx.store()
    const { to = subscription.consumer.version, wait = 30_000, evenStrays = false } = flags
    const live = (await versionsOf(ctx, name, to)).find(({ isLive }) => isLive)
    const held = async () => {
      const next = (await store.rebuilds.list(name)).find(({ version }) => version === to)
      return next?.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0) ?? 0
    }
    const what = [
      `Version ${to} of ${name} will be the live one, instead of ${live?.version ?? 'none'}; ${many(await held(), 'event')} of it held.`,
      'Processes that have the other version stop working on it, and wait.',
    ]
    if (flags.dryRun) {
      return {
        json: { projection: name, dryRun: true, from: live?.version ?? null, to, held: await held() },
        show: (out) => what.forEach((line) => out.data(line)),
      }
    }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name, count: held })
    const by = await ctx.user()
    const options = { store, version: to, wait, evenStrays, by, reason, logger: silent }
    const switched = await switchRebuild(subscription, options)
    return {
      json: { projection: name, dryRun: false, ...switched },
      show: (out) => {
        out.data(`${name} is live at version ${switched.to}; version ${switched.from} is kept.`)
        out.talk(dim('Back: '), `holdfast projections switch ${name} --to ${switched.from}`)
        out.talk(
          dim('Next: '),
          `holdfast verify ${name}, and when it is not needed any more: holdfast projections drop ${name} ${switched.from}`,
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
    .description('remove a version that is not live, with its table')
  action<ActFlags>(withConfirmation(withReason(command)), perform, async (ctx, [name = '', given = ''], flags) => {
    await declared(ctx, name)
    if (!/^[1-9]\d{0,8}$/.test(given)) {
      throw new CommandError(
        'USAGE',
        `${JSON.stringify(given)} is no version.`,
        `See: holdfast projections versions ${name}`,
      )
    }
    const version = Number(given)
    const store = await ctx.store()
    await versionsOf(ctx, name, version)
    const counted = async () => {
      const found = (await store.rebuilds.list(name)).find((each) => each.version === version)
      return found?.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0) ?? 0
    }
    const what = [
      `Version ${version} of ${name} will be gone, with its table and ${many(await counted(), 'held letter')}.`,
    ]
    if (flags.dryRun)
      return {
        json: { projection: name, dryRun: true, version },
        show: (out) => what.forEach((line) => out.data(line)),
      }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name: `${name} ${version}`, count: counted })
    await dropRebuild(name, { store, version, by: await ctx.user(), reason })
    return {
      json: { projection: name, dryRun: false, version },
      show: (out) => out.data(`Version ${version} of ${name} is gone.`),
    }
  })
}
