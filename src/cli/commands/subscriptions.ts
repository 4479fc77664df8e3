import type { Command } from 'commander'
import type { Lag } from '../../log/log-store.ts'
import { action, type Perform, withReason } from '../command.ts'
import { type ActFlags, reasonFlag, reasonOf } from '../act.ts'
import type { Output } from '../output/output.ts'
import { dim, red, type Text, yellow } from '../output/style.ts'
import { iso, withIsoTimes } from '../output/times.ts'
import { ago, count, span } from '../output/words.ts'
import { reportOf } from '../report.ts'
import { stateText } from './status.ts'

export function addSubscriptions(program: Command, perform: Perform): void {
  const group = program.command('subscriptions').alias('subs').description('subscriptions: their state and progress')
  addList(group, perform)
  addPause(group, perform)
  addResume(group, perform)
  addLag(group, perform)
}

function addList(group: Command, perform: Perform): void {
  action(
    group.command('list').alias('ls').description('list the subscriptions of the configuration and the store'),
    perform,
    async (ctx) => {
      const { at, subscriptions } = await reportOf(ctx)
      return {
        json: {
          at: iso(at),
          subscriptions: subscriptions.map((each) => withIsoTimes({ ...each, oldest: undefined })),
        },
        show: (out) =>
          out.table(
            [
              { title: 'name' },
              { title: 'kind' },
              { title: 'state' },
              { title: 'partitions', right: true },
              { title: 'lag', right: true },
              { title: 'held lanes', right: true },
              { title: 'paused' },
            ],
            subscriptions.map(({ name, kind, state, partitions, lag, held, pause }): Text[] => [
              name,
              kind,
              stateText(state),
              partitions,
              lag ? count(lag.events) : '-',
              held && held.lanes > 0 ? red(count(held.lanes)) : '0',
              pause ? yellow([ago(pause.at, at), ': ', pause.reason]) : dim('no'),
            ]),
          ),
      }
    },
  )
}

function addPause(group: Command, perform: Perform): void {
  const command = group.command('pause').description('stop a subscription in all processes until it is resumed')
  act(command, perform, true, (out, name, wasPaused, dryRun) => {
    const done = wasPaused
      ? ' was already paused; the new reason replaces the old one.'
      : ' is paused in all processes.'
    out.data(name, dryRun ? ' would be paused.' : done)
    if (!dryRun) out.next(`holdfast subscriptions resume ${name} ${reasonFlag}`)
  })
}

function addResume(group: Command, perform: Perform): void {
  const command = group.command('resume').description('continue a paused subscription from its checkpoints')
  act(command, perform, false, (out, name, wasPaused, dryRun) => {
    out.data(name, dryRun ? ' would be resumed.' : wasPaused ? ' is resumed.' : ' was not paused.')
  })
}

function act(
  command: Command,
  perform: Perform,
  paused: boolean,
  show: (out: Output, name: string, wasPaused: boolean, dryRun: boolean) => void,
): void {
  command.argument('<subscription>').option('--dry-run', 'show what would happen and change nothing')
  action<ActFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const { partitions } = await ctx.storedSubscription(name)
    const wasPaused = partitions[0]?.pause !== undefined
    const reason = await reasonOf(ctx, flags)
    const { dryRun = false } = flags
    if (!dryRun) await (await ctx.operator())[paused ? 'pause' : 'resume'](name, reason)
    return {
      json: { subscription: name, dryRun, paused, wasPaused, reason },
      show: (out) => show(out, name, wasPaused, dryRun),
    }
  })
}

interface PartitionLag {
  readonly partition: number
  readonly position: number
  readonly events: number
  readonly seconds: number
  readonly owner: string | null
}

function addLag(group: Command, perform: Perform): void {
  const command = group
    .command('lag')
    .argument('[subscription]', 'default: all')
    .description('show how far each partition is behind')
  action(command, perform, async (ctx, [name]) => {
    const stored = name === undefined ? [...(await ctx.stored()).values()] : [await ctx.storedSubscription(name)]
    const store = await ctx.store()
    const declared = await ctx.subscriptions()
    const now = ctx.clock.now()
    const head = await store.log.head()
    const subscriptions: { readonly name: string; readonly partitions: PartitionLag[] }[] = []
    for (const each of stored) {
      const source = declared.find((subscription) => subscription.name === each.name)?.source
      const partitions: PartitionLag[] = []
      for (const { partition, owner, checkpoint } of each.partitions) {
        const share = { partition, of: each.partitions.length }
        const lag: Lag = await (source
          ? source.lag(checkpoint.position, share)
          : store.log.lag(checkpoint.position, share))
        const seconds = lag.since === undefined ? 0 : Math.max(0, (now - lag.since) / 1_000)
        partitions.push({ partition, position: checkpoint.position, events: lag.events, seconds, owner: owner ?? null })
      }
      subscriptions.push({ name: each.name, partitions })
    }
    return {
      json: { at: iso(now), head, subscriptions },
      show: (out) => {
        out.table(
          [
            { title: 'subscription' },
            { title: 'partition', right: true },
            { title: 'position', right: true },
            { title: 'lag', right: true },
            { title: 'behind', right: true },
            { title: 'owner' },
          ],
          subscriptions.flatMap((each) =>
            each.partitions.map((part): Text[] => [
              each.name,
              part.partition,
              part.position,
              part.events > 0 ? yellow(count(part.events)) : '0',
              span(part.seconds),
              part.owner ?? dim('none'),
            ]),
          ),
        )
        out.data(dim(`The head of the log is at position ${head}.`))
      },
    }
  })
}
