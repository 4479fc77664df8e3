import type { Command } from 'commander'
import { shapeOf } from '../../dead-letter/shape.ts'
import { parseJson } from '../../event/parse.ts'
import { type Generation, generationName, rebuildableOf } from '../../rebuild/generation.ts'
import type { RebuildEnd } from '../../operator/rebuild/rebuild.ts'
import { isLiveVersion } from '../../operator/rebuild/switch.ts'
import { totalOf } from '../../subscription/checkpoint.ts'
import { type ActFlags, confirm, expectHint, heldDigest, reasonFlag, reasonOf } from '../act.ts'
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
import { changeLine, shownChanges } from '../output/changes.ts'
import { Progress } from '../output/progress.ts'
import { bold, dim, green, red, yellow } from '../output/style.ts'
import { iso } from '../output/times.ts'
import { count, many } from '../output/words.ts'
import { prepareReveal, type RevealFlags, revealHint, shapeText } from '../reveal.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Commands for projection versions: build one beside the live one, compare, switch, drop. */
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
      `${name} is a handler: a rebuild would repeat all its side effects.`,
      'holdfast projections list',
    )
  }
  return rebuildableOf(subscription)
}

function addVersions(group: Command, perform: Perform): void {
  const command = group
    .command('versions')
    .argument('<projection>')
    .description('list the live version and the versions that are being built or kept')
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
      retiredAt: iso(generation.retiredAt),
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
            each.retiredAt ?? dim('-'),
          ]),
        )
        if (!versions.some(({ isDeclared }) => isDeclared)) {
          out.talk(`Version ${consumer.version} is not built yet.`)
          out.next(`holdfast projections rebuild ${name} ${reasonFlag}`)
        }
      },
    }
  })
}

/** All stored versions; throws if `version` is not one of them. */
async function versionsOf(ctx: Context, name: string, version: number): Promise<readonly Generation[]> {
  const generations = await (await ctx.store()).rebuilds.list(name)
  if (generations.some((each) => each.version === version)) return generations
  throw new CommandError(
    'REBUILD_UNKNOWN',
    `The store has no version ${version} of ${name}.`,
    `holdfast projections versions ${name}. To build the declared version: holdfast projections rebuild ${name} ${reasonFlag}`,
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
    .description('build the declared version beside the live one; ^C stops it, and running it again continues')
    .option('--rate <n>', 'at most this many events per second', positiveNumber)
    .option('--load <share>', 'the fraction of time spent working, above 0 and at most 1; default: 0.5', shareNumber)
    .option('--follow', 'after catching up, follow new events until the switch')
  action<RebuildFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const subscription = await declared(ctx, name)
    const { rate, load, follow = false } = flags
    const reason = await reasonOf(ctx, flags)
    const operator = await ctx.operator()
    const signal = ctx.graceful()
    const bar = new Progress(ctx.out, `rebuilding ${name}`)
    const { end, progress } = await operator.rebuild(name, {
      signal,
      follow,
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
        out.data(`Version ${version} of ${name} ${endings[end]}. ${many(progress?.events ?? 0, 'event')} so far.`)
        if (progress && progress.held > 0)
          out.talk(red(`${many(progress.held, 'event')} held.`), ' ', out.hint(`holdfast dlq list ${name}~${version}`))
        if (end === 'level') {
          out.next(`holdfast projections diff ${name}`)
          out.talk(dim('Then: '), out.hint(`holdfast projections switch ${name} ${reasonFlag}`))
        }
        if (end === 'stopped') {
          out.talk('The same command continues it.')
          out.next(`holdfast projections rebuild ${name} ${reasonFlag}`)
        }
      },
      ...(end === 'stopped' && { exit: 130 as const }),
    }
  })
}

const endings: Readonly<Record<RebuildEnd, string>> = {
  level: 'has caught up',
  switched: 'was switched to',
  dropped: 'was dropped',
  stopped: 'is not complete',
}

interface DiffFlags extends RevealFlags {
  readonly limit?: number
}

function addDiff(group: Command, perform: Perform): void {
  const command = group
    .command('diff')
    .argument('<projection>')
    .description('compare the rows of a rebuilt version with the live one, in one snapshot')
    .option('--limit <n>', 'the number of rows to show; default: 20', limitNumber)
    .option('--reveal', 'show the values; recorded in the audit')
  action<DiffFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const { consumer } = await declared(ctx, name)
    if (consumer.kind === 'sql') {
      throw new CommandError(
        'USAGE',
        `${name} is a SQL projection: Holdfast does not know its tables and cannot compare them.`,
        `Compare them yourself, then: holdfast projections switch ${name} ${reasonFlag}`,
      )
    }
    const reveal = await prepareReveal(ctx, flags)
    const { limit = 20 } = flags
    const diff = await (await ctx.operator()).diffRebuild(name, { limit })
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
      fields:
        live === undefined || rebuilt === undefined
          ? []
          : shownChanges(parseJson(live), parseJson(rebuilt), flags.reveal === true),
    }))
    const different = diff.different + diff.onlyLive + diff.onlyRebuilt
    return {
      json: { projection: name, ...diff, differences },
      show: (out) => {
        out.data(
          `${count(diff.same)} the same, ${count(diff.different)} different, ${count(diff.onlyLive)} only live, ${count(diff.onlyRebuilt)} only rebuilt`,
        )
        for (const { key, live, rebuilt, fields } of differences) {
          if (live === null || rebuilt === null)
            out.data('  ', bold(key), live === null ? '  only rebuilt: ' : '  only live: ', rowText(live ?? rebuilt))
          else out.data('  ', bold(key))
          for (const field of fields) out.data('    ', changeLine(field))
        }
        if (different > differences.length) out.data(`  … and ${count(different - differences.length)} more`)
        if (!diff.isLevel)
          out.talk(yellow('The two versions have not applied the same events. That may explain some differences.'))
        if (!flags.reveal && differences.length > 0) out.talk(revealHint(out, `holdfast projections diff ${name}`))
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
    .description('make a rebuilt version the live one atomically; the previous one is kept until you drop it')
    .option('--to <version>', 'the version to make live; default: the declared one', positiveNumber)
    .option('--wait <duration>', 'how long to wait until it has caught up; default: 30s', durationMs)
    .option('--even-strays', 'switch even if operators resolved or discarded events after the rebuild processed them')
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
      `Version ${to} of ${name} will replace version ${live?.version ?? 'none'} as the live one, with ${many(await held(), 'held event')}.`,
      'Processes with code for another version stop processing this projection.',
    ]
    const digest = () => heldDigest(ctx, generationName(name, to))
    if (flags.dryRun) {
      const seen = await digest()
      return {
        json: { projection: name, dryRun: true, from: live?.version ?? null, to, held: await held(), digest: seen },
        show: (out) => {
          what.forEach((line) => out.data(line))
          expectHint(ctx, seen)
        },
      }
    }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name, digest })
    const options = { version: to, wait, evenStrays, reason, logger: silent }
    const switched = await (await ctx.operator()).switchRebuild(name, options)
    return {
      json: { projection: name, dryRun: false, ...switched },
      show: (out) => {
        out.data(`${name} is live at version ${switched.to}; version ${switched.from} is kept.`)
        out.talk(dim('Back: '), out.hint(`holdfast projections switch ${name} --to ${switched.from} ${reasonFlag}`))
        out.talk(
          dim(`When version ${switched.from} is no longer needed: `),
          out.hint(`holdfast projections drop ${name} ${switched.from} ${reasonFlag}`),
        )
        out.next(`holdfast verify ${name}`)
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
        `${JSON.stringify(given)} is not a valid version.`,
        `holdfast projections versions ${name}`,
      )
    }
    const version = Number(given)
    const store = await ctx.store()
    const versions = await versionsOf(ctx, name, version)
    if (versions.some((each) => each.isLive && each.version === version)) throw isLiveVersion(name, version)
    const counted = async () => {
      const found = (await store.rebuilds.list(name)).find((each) => each.version === version)
      return found?.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0) ?? 0
    }
    const what = [
      `Version ${version} of ${name} will be deleted, with its table and ${many(await counted(), 'held letter')}.`,
    ]
    const digest = () => heldDigest(ctx, generationName(name, version))
    if (flags.dryRun) {
      const seen = await digest()
      return {
        json: { projection: name, dryRun: true, version, digest: seen },
        show: (out) => {
          what.forEach((line) => out.data(line))
          expectHint(ctx, seen)
        },
      }
    }
    const reason = await reasonOf(ctx, flags)
    await confirm(ctx, flags, { what, name: `${name} ${version}`, digest })
    await (await ctx.operator()).dropRebuild(name, { version, reason })
    return {
      json: { projection: name, dryRun: false, version },
      show: (out) => out.data(`Version ${version} of ${name} was deleted.`),
    }
  })
}
