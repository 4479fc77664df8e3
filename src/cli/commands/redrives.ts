import type { Command } from 'commander'
import { type ActFlags, reasonOf } from '../act.ts'
import { action, limitNumber, type Perform, withReason } from '../command.ts'
import { CommandError } from '../errors.ts'
import { dim, green, red, type Text, yellow } from '../output/style.ts'
import { withIsoTimes } from '../output/times.ts'
import { ago, count, many } from '../output/words.ts'
import { actName, followRedrive, redriveResult, withEffects } from '../redriving.ts'

export function addRedrives(program: Command, perform: Perform): void {
  const group = program.command('redrives').description('redrives: their progress, and what failed again')
  addList(group, perform)
  addShow(group, perform)
  addCancel(group, perform)
}

function addList(group: Command, perform: Perform): void {
  const command = group
    .command('list')
    .alias('ls')
    .argument('[subscription]', 'default: all')
    .description('list redrives, newest first')
    .option('--limit <n>', 'the number of redrives; default: 20', limitNumber)
  action<{ readonly limit?: number }>(command, perform, async (ctx, [name], { limit = 20 }) => {
    if (name !== undefined) await ctx.storedSubscription(name)
    const store = await ctx.store()
    const redrives = await store.redrives.list({ limit, ...(name !== undefined && { subscription: name }) })
    const now = ctx.clock.now()
    return {
      json: { redrives: withIsoTimes(redrives) },
      show: (out) => {
        if (redrives.length === 0) out.talk('No redrives.')
        else
          out.table(
            [
              { title: 'id' },
              { title: 'act' },
              { title: 'subscription' },
              { title: 'status' },
              { title: 'lanes' },
              { title: 'failed', right: true },
              { title: 'asked' },
              { title: 'by' },
              { title: 'why' },
            ],
            redrives.map(({ id, act, isWhole, subscription, status, lanes, byState, at, by, reason }): Text[] => [
              id,
              actName({ act, isWhole }),
              subscription,
              { running: yellow, done: green, stopped: red, cancelled: dim }[status](status),
              `${count(byState.done + byState.failed + byState.deferred + byState.passed)} of ${count(lanes)}`,
              byState.failed > 0 ? red(count(byState.failed)) : '0',
              dim(ago(at, now)),
              by,
              reason,
            ]),
          )
      },
    }
  })
}

interface ShowFlags {
  readonly watch?: boolean
  readonly work?: boolean
  readonly allowEffects?: boolean
}

function addShow(group: Command, perform: Perform): void {
  const command = group
    .command('show')
    .argument('<id>')
    .description('show the progress and the failures of a redrive')
    .option('--watch', 'follow it until it is finished')
    .option('--work', 'follow it; this process does the work if no engine runs')
  action<ShowFlags>(
    withEffects(command),
    perform,
    async (ctx, [id = ''], { watch = false, work = false, allowEffects }) => {
      const operator = await ctx.operator()
      const redrive = await operator.findRedrive(checkId(id))
      if (redrive.status === 'running' && (watch || work))
        return followRedrive(ctx, operator, id, { mayWork: work, allowEffects })
      return redriveResult(ctx, operator, redrive)
    },
  )
}

function addCancel(group: Command, perform: Perform): void {
  const command = group
    .command('cancel')
    .argument('<id>')
    .description('start no more lanes; lanes in progress are finished')
    .option('--dry-run', 'show what would happen and change nothing')
  action<ActFlags>(withReason(command), perform, async (ctx, [id = ''], flags) => {
    const operator = await ctx.operator()
    const before = await operator.findRedrive(checkId(id))
    const reason = await reasonOf(ctx, flags)
    const { dryRun = false } = flags
    const isCancelled = dryRun ? before.status === 'running' : await operator.cancel(id, reason)
    const redrive = dryRun ? before : await operator.findRedrive(id)
    return {
      json: { dryRun, cancelled: isCancelled, redrive: withIsoTimes(redrive) },
      show: (out) => {
        if (!isCancelled) out.data(`${id} was already finished (${before.status}).`)
        else {
          const left = redrive.byState.pending + redrive.byState.left
          out.data(
            `${id} ${dryRun ? 'would be' : 'is'} cancelled; ${many(left, 'lane')} ${dryRun ? 'would not be' : left === 1 ? 'is not' : 'are not'} processed.`,
          )
        }
      },
    }
  })
}

function checkId(id: string): string {
  if (/^[\w-]{1,100}$/.test(id)) return id
  throw new CommandError(
    'USAGE',
    `${JSON.stringify(id.slice(0, 100))} is not a valid redrive id.`,
    'holdfast redrives list',
  )
}
