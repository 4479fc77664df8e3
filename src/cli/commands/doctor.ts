import type { Command } from 'commander'
import { action, durationMs, type Perform } from '../command.ts'
import type { Context } from '../context.ts'
import { toTold } from '../errors.ts'
import type { Output } from '../output/output.ts'
import { dim, green, red, type Text, yellow } from '../output/style.ts'
import { ago, count, many, span } from '../output/words.ts'
import { reportOf, type StoreReport, type SubscriptionReport } from '../report.ts'
import { describeStore } from '../settings.ts'
import { schemaState } from '../store.ts'

/** Something that was looked at. `next` says what to do, where something is off. */
interface Finding {
  readonly check: string
  readonly level: 'ok' | 'warning' | 'problem'
  readonly what: string
  readonly next?: string
}

interface Flags {
  readonly maxLag?: number
}

const maxLagMs = 60_000
// What two machines that keep their clocks in step by NTP never come to.
const maxSkewMs = 2_000
const maxGapMs = 10_000

export function addDoctor(program: Command, perform: Perform): void {
  const command = program
    .command('doctor')
    .description('look for what is off (store, schema, leases, gaps, clocks, lag, held lanes), and say what to do')
    .option('--max-lag <duration>', 'how far behind is too far; 1m unless you say', durationMs)
  action<Flags>(command, perform, async (ctx, _args, { maxLag = maxLagMs }) => {
    const findings = await examine(ctx, maxLag)
    const off = findings.filter(({ level }) => level !== 'ok')
    return {
      json: { healthy: off.length === 0, findings },
      show: (out) => show(out, findings, off.length),
      exit: off.length === 0 ? 0 : 3,
    }
  })
}

async function examine(ctx: Context, maxLag: number): Promise<Finding[]> {
  const { store, schema } = await ctx.choice()
  const findings: Finding[] = []
  try {
    findings.push(...(await schemaFindings(ctx)))
    if (findings.some(({ level }) => level === 'problem')) return findings
    await ctx.store()
    findings.push({ check: 'store', level: 'ok', what: `${describeStore(store, schema)} can be used.` })
    findings.push(await clockFinding(ctx))
    const report = await reportOf(ctx)
    findings.push(...gapFindings(report))
    for (const subscription of report.subscriptions)
      findings.push(...subscriptionFindings(subscription, maxLag, report.at))
    for (const { name, state } of report.breakers) {
      const next =
        state.state === 'isolated'
          ? `When it may be used again: holdfast breakers reset ${quoted(name)}`
          : 'It tries by itself; see: holdfast breakers list'
      findings.push({ check: 'breaker', level: 'warning', what: `The breaker ${name} is ${state.state}.`, next })
    }
    findings.push(...(await redriveFindings(ctx, report)))
  } catch (error) {
    const { code, message, hint } = toTold(error)
    findings.push({
      check: 'store',
      level: 'problem',
      what: `${code}: ${message}`,
      ...(hint !== undefined && { next: hint }),
    })
  }
  return findings
}

async function schemaFindings(ctx: Context): Promise<Finding[]> {
  const { store, schema } = await ctx.choice()
  const state = await schemaState(store, schema)
  if (!state) return []
  const { applied, known, pending } = state
  if (pending.length === 0)
    return [{ check: 'schema', level: 'ok', what: `${applied} of ${known} migrations are applied.` }]
  const what =
    applied === 0
      ? 'There is no store yet.'
      : `${many(pending.length, 'migration')} not applied: ${pending.join(', ')}.`
  return [{ check: 'schema', level: 'problem', what, next: 'holdfast migrate' }]
}

async function clockFinding(ctx: Context): Promise<Finding> {
  const store = await ctx.store()
  const before = ctx.clock.now()
  const { now } = await store.breakers.load([])
  const after = ctx.clock.now()
  // As much of it as the way there and back doesn't explain.
  const skewMs = now < before ? before - now : now > after ? now - after : 0
  if (skewMs <= maxSkewMs)
    return {
      check: 'clock',
      level: 'ok',
      what: `This clock and that of the store are within ${span(maxSkewMs / 1_000)}.`,
    }
  return {
    check: 'clock',
    level: 'warning',
    what: `This clock and that of the store are ${span(skewMs / 1_000)} apart.`,
    next: 'Leases go by the clock of the store and are right; times that are shown are not. Set the clock of this machine.',
  }
}

function gapFindings({ gap, at }: StoreReport): Finding[] {
  if (!gap) return [{ check: 'horizon', level: 'ok', what: 'Nothing holds up who reads the log.' }]
  const oldest = Math.min(...gap.holders.map(({ since }) => since ?? at))
  const holders = gap.holders.map(
    ({ pid, since, application }) => `pid ${pid} (${application ?? 'unnamed'}, ${ago(since, at)})`,
  )
  return [
    {
      check: 'horizon',
      level: at - oldest > maxGapMs ? 'problem' : 'warning',
      what: `Readers wait behind position ${gap.after} for a transaction that appended and has not ended: ${holders.join(', ')}.`,
      next: 'End it where it was begun; or, as a last resort: SELECT pg_terminate_backend(pid)',
    },
  ]
}

function subscriptionFindings(each: SubscriptionReport, maxLag: number, now: number): Finding[] {
  const { name, state, pause, lag, held, unowned, partitions, oldest } = each
  const findings: Finding[] = []
  const add = (check: string, level: Finding['level'], what: string, next?: string) =>
    findings.push({ check, level, what: `${name}: ${what}`, ...(next !== undefined && { next }) })
  if (state === 'new') add('subscription', 'warning', 'nobody has ever started it.', 'holdfast start')
  if (state === 'orphan')
    add(
      'subscription',
      'warning',
      'the store has it, and the configuration does not.',
      'Name it in holdfast.config.ts, if it is still wanted.',
    )
  if (state === 'other-code')
    add(
      'version',
      'warning',
      'its live version is not that of this code, which waits.',
      `holdfast projections versions ${name}, then: holdfast projections rebuild ${name}`,
    )
  if (state === 'unreadable')
    add('subscription', 'problem', 'what the store has of it can not be read.', 'holdfast status')
  if (pause)
    add('pause', 'warning', `paused ${ago(pause.at, now)}: ${pause.reason}`, `holdfast subscriptions resume ${name}`)
  if (state === 'idle') add('lease', 'problem', 'nobody who is alive runs it.', 'holdfast start')
  else if (unowned > 0 && !['orphan', 'new', 'beside', 'other-code'].includes(state) && !pause)
    add(
      'lease',
      'warning',
      `${unowned} of ${partitions} partitions have no owner who is alive.`,
      'It is taken over within seconds, if an engine runs: look again.',
    )
  if (lag && lag.events > 0 && lag.seconds * 1_000 > maxLag)
    add(
      'lag',
      'warning',
      `${many(lag.events, 'event')} behind, for ${span(lag.seconds)}.`,
      `holdfast subscriptions lag ${name}`,
    )
  if (held && held.lanes > 0) {
    const since = oldest[0] ? `, the first ${ago(oldest[0].since, now)}` : ''
    add(
      'held',
      'warning',
      `${many(held.lanes, 'lane')} held with ${many(held.letters, 'letter')}${since}.`,
      `holdfast dlq incidents ${name}`,
    )
  }
  if (findings.length === 0) add('subscription', 'ok', `${state}, ${count(lag?.events ?? 0)} behind, nothing held.`)
  return findings
}

async function redriveFindings(ctx: Context, { subscriptions }: StoreReport): Promise<Finding[]> {
  const store = await ctx.store()
  const running = (await store.redrives.list({ limit: 100 })).filter(({ status }) => status === 'running')
  return running
    .filter(({ subscription }) => subscriptions.find(({ name }) => name === subscription)?.owners.length === 0)
    .map(({ id, subscription }) => ({
      check: 'redrive',
      level: 'problem',
      what: `The redrive ${id} of ${subscription} is asked for, and nobody carries it out.`,
      next: `holdfast start, or: holdfast redrives show ${id} --work`,
    }))
}

function quoted(name: string): string {
  return /^[\w.:/-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`
}

const marks: Readonly<Record<Finding['level'], Text>> = {
  ok: green('ok'),
  warning: yellow('warning'),
  problem: red('problem'),
}

function show(out: Output, findings: readonly Finding[], off: number): void {
  for (const { check, level, what, next } of findings) {
    out.data(marks[level], ' ', dim(check), ' ', what)
    if (next !== undefined) out.data('  ', dim('Next: '), next)
  }
  out.talk(off === 0 ? 'All is well.' : `${many(off, 'thing is', 'things are')} off.`)
}
