import { setTimeout } from 'node:timers/promises'
import type { Command } from 'commander'
import { action, durationMs, type Perform } from '../command.ts'
import type { Context } from '../context.ts'
import type { Output } from '../output/output.ts'
import { bold, dim, green, red, type Text, yellow } from '../output/style.ts'
import { iso, withIsoTimes } from '../output/times.ts'
import { ago, count, laneName, many, moment, span } from '../output/words.ts'
import { type ReportState, reportOf, type StoreReport, type SubscriptionReport } from '../report.ts'
import { describeStore } from '../settings.ts'

interface Flags {
  readonly watch?: boolean
  readonly every?: number
}

const everyMs = 1_000

export function addStatus(program: Command, perform: Perform): void {
  const command = program
    .command('status')
    .description('show the state, lag and held lanes of every subscription')
    .option('--watch', 'refresh until ^C; with --json one line each time')
    .option('--every <duration>', 'the refresh interval; default: 1s', durationMs)
  action<Flags>(command, perform, async (ctx, _args, { watch = false, every = everyMs }) => {
    const { store, schema } = await ctx.choice()
    const where = describeStore(store, schema)
    if (!watch) {
      const report = await reportOf(ctx)
      return { json: jsonOf(where, report), show: (out) => show(out, where, report) }
    }
    await watchStatus(ctx, where, Math.max(100, every))
    return undefined
  })
}

async function watchStatus(ctx: Context, where: string, ms: number): Promise<void> {
  const asked = ctx.graceful()
  while (!asked.aborted) {
    const report = await reportOf(ctx)
    if (ctx.out.isJson) ctx.out.document({ ok: true, ...jsonOf(where, report) })
    else {
      ctx.out.clear()
      show(ctx.out, where, report)
      ctx.out.data()
    }
    await setTimeout(ms, undefined, { signal: asked }).catch(() => undefined)
  }
}

function jsonOf(store: string, { at, subscriptions, gap, breakers }: StoreReport): object {
  return {
    store,
    at: iso(at),
    subscriptions: withIsoTimes(subscriptions),
    gap: withIsoTimes(gap ?? null),
    breakers: withIsoTimes(breakers),
  }
}

const columns = [
  { title: 'subscription' },
  { title: 'state' },
  { title: 'lag', right: true },
  { title: 'behind', right: true },
  { title: 'applied', right: true },
  { title: 'held lanes', right: true },
  { title: 'letters', right: true },
  { title: 'owners' },
] as const

function show(out: Output, where: string, report: StoreReport): void {
  out.data(bold('store'), ' ', where, dim(`  ${moment(report.at)}`))
  if (report.subscriptions.length === 0) out.data('No subscriptions. Add them to holdfast.config.ts.')
  else out.table(columns, report.subscriptions.map(row))
  for (const { name, pause } of report.subscriptions) {
    if (pause) out.data(yellow('paused'), ` ${name}: `, pause.reason, dim(` (${ago(pause.at, report.at)})`))
  }
  for (const { name, oldest, held } of report.subscriptions) {
    const [lane] = oldest
    if (lane) {
      const more = (held?.lanes ?? 1) - 1
      const why = lane.status === 'waiting' ? waitsFor(lane) : lane.status
      out.data(
        red('held'),
        ` ${name}: `,
        laneName(lane.lane),
        ` since ${moment(lane.since)}, ${why}`,
        more > 0 ? `; and ${count(more)} more` : '',
      )
      out.data('  ', dim('Next: '), out.hint(`holdfast dlq list ${name}`))
    }
  }
  if (report.gap) {
    const holders = report.gap.holders.map(({ pid, since }) => `pid ${pid}, ${ago(since, report.at)}`).join('; ')
    out.data(
      yellow('gap'),
      ` after position ${report.gap.after}: readers wait for `,
      holders || 'an unknown transaction',
    )
  }
  for (const { name, state } of report.breakers) out.data(yellow(state.state), ' breaker ', name)
}

function waitsFor({ breaker, missingVersion }: SubscriptionReport['oldest'][number]): string {
  return breaker === undefined ? `waits for version ${missingVersion}` : `waits for the breaker ${breaker}`
}

const paints: Readonly<Record<ReportState, (text: string) => Text>> = {
  new: dim,
  orphan: yellow,
  beside: dim,
  'other-code': yellow,
  paused: yellow,
  idle: yellow,
  'catching-up': (text) => text,
  live: green,
  unreadable: red,
}

export function stateText(state: ReportState): Text {
  return paints[state](state)
}

function row({ name, state, lag, counts, held, owners }: SubscriptionReport): Text[] {
  const lanes = held?.lanes ?? 0
  return [
    name,
    stateText(state),
    lag === undefined ? '-' : count(lag.events),
    lag === undefined ? '-' : span(lag.seconds),
    counts === undefined ? '-' : count(counts.applied),
    lanes > 0 ? red(count(lanes)) : '0',
    count(held?.letters ?? 0),
    owners.length === 0
      ? dim('none')
      : owners.length <= 2
        ? owners.join(', ')
        : many(owners.length, 'process', 'processes'),
  ]
}
