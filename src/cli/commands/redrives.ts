import type { Command } from 'commander'
import { type ActFlags, reasonOf } from '../act.ts'
import { action, limitNumber, type Perform, withReason } from '../command.ts'
import { CommandError } from '../errors.ts'
import { dim, green, red, type Text, yellow } from '../output/style.ts'
import { ago, count } from '../output/words.ts'
import { followRedrive, redriveResult } from '../redriving.ts'

export function addRedrives(program: Command, perform: Perform): void {
  const group = program.command('redrives').description('what was let go, how far it is, and what failed again')
  addList(group, perform)
  addShow(group, perform)
  addCancel(group, perform)
}

function addList(group: Command, perform: Perform): void {
  const command = group
    .command('list')
    .alias('ls')
    .argument('[subscription]', 'all unless you say')
    .description('the newest first')
    .option('--limit <n>', 'how many; 20 unless you say', limitNumber)
  action<{ readonly limit?: number }>(command, perform, async (ctx, [name], { limit = 20 }) => {
    if (name !== undefined) await ctx.storedSubscription(name)
    const store = await ctx.store()
    const redrives = await store.redrives.list({ limit, ...(name !== undefined && { subscription: name }) })
    const now = ctx.clock.now()
    return {
      json: { redrives },
      show: (out) => {
        if (redrives.length === 0) out.talk('There are none.')
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
            redrives.map(({ id, act, subscription, status, lanes, byState, at, by, reason }): Text[] => [
              id,
              act,
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
}

function addShow(group: Command, perform: Perform): void {
  const command = group
    .command('show')
    .argument('<id>')
    .description('how far it is, and what failed')
    .option('--watch', 'until it is over')
    .option('--work', 'until it is over; this process carries it out if nobody does')
  action<ShowFlags>(command, perform, async (ctx, [id = ''], { watch = false, work = false }) => {
    const operator = await ctx.operator()
    const redrive = await operator.findRedrive(checkId(id))
    if (redrive.status === 'running' && (watch || work)) return followRedrive(ctx, operator, id, { mayWork: work })
    return redriveResult(operator, redrive)
  })
}

function addCancel(group: Command, perform: Perform): void {
  const command = group
    .command('cancel')
    .argument('<id>')
    .description('begin nothing more of it; what is under way is finished')
    .option('--dry-run', 'show what would be done, and do nothing')
  action<ActFlags>(withReason(command), perform, async (ctx, [id = ''], flags) => {
    const operator = await ctx.operator()
    const before = await operator.findRedrive(checkId(id))
    const reason = await reasonOf(ctx, flags)
    const { dryRun = false } = flags
    const isCancelled = dryRun ? before.status === 'running' : await operator.cancel(id, reason)
    const redrive = dryRun ? before : await operator.findRedrive(id)
    return {
      json: { dryRun, cancelled: isCancelled, redrive },
      show: (out) => {
        if (!isCancelled) out.data(`${id} was over already (${before.status}).`)
        else
          out.data(
            `${id} ${dryRun ? 'would be' : 'is'} cancelled; ${count(redrive.byState.pending + redrive.byState.left)} lanes of it ${dryRun ? 'would stay' : 'stay'} as they were.`,
          )
      },
    }
  })
}

function checkId(id: string): string {
  if (/^[\w-]{1,100}$/.test(id)) return id
  throw new CommandError(
    'USAGE',
    `${JSON.stringify(id.slice(0, 100))} is no id of a redrive.`,
    'Find it: holdfast redrives list',
  )
}
