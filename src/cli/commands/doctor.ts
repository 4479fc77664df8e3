import { type Command, InvalidArgumentError } from 'commander'
import { action, durationMs, type Perform } from '../command.ts'
import { reasonFlag } from '../act.ts'
import type { Context } from '../context.ts'
import { toTold } from '../errors.ts'
import type { Output } from '../output/output.ts'
import { dim, green, red, type Text, yellow } from '../output/style.ts'
import { ago, count, many, shellWord, span } from '../output/words.ts'
import { reportOf, type StoreReport, type SubscriptionReport } from '../report.ts'
import { describeStore } from '../settings.ts'
import { schemaState } from '../store.ts'

const checks = [
  'store',
  'schema',
  'clock',
  'horizon',
  'subscription',
  'version',
  'pause',
  'lease',
  'lag',
  'held',
  'breaker',
  'redrive',
] as const

type Check = (typeof checks)[number]

/** The result of one check. `next` is the next step if there is a problem. */
interface Finding {
  readonly check: Check
  readonly level: 'ok' | 'warning' | 'problem'
  readonly what: string
  readonly next?: string
}

/** A level (`warning` includes problems), a check, or `never`. */
type FailOn = 'warning' | 'problem' | 'never' | Check

interface Flags {
  readonly maxLag?: number
  readonly failOn?: readonly FailOn[]
}

const maxLagMs = 60_000
// More than two machines differ that synchronise their clocks by NTP.
const maxSkewMs = 2_000
const maxGapMs = 10_000

export function addDoctor(program: Command, perform: Perform): void {
  const command = program
    .command('doctor')
    .description('check for problems (store, schema, leases, gaps, clocks, lag, held lanes) and show how to fix them')
    .option('--max-lag <duration>', 'warn when a subscription is further behind; default: 1m', durationMs)
    .option(
      '--fail-on <list>',
      `what causes exit code 3: warning (includes problem), problem, never, or a list of ${checks.join(', ')}; default: warning`,
      failOnOf,
    )
    .addHelpText('after', '\nThe exit code is always 3 if the store cannot be read.')
  action<Flags>(command, perform, async (ctx, _args, { maxLag = maxLagMs, failOn = ['warning'] }) => {
    const found = await examine(ctx, maxLag)
    const findings = found.map(({ next, ...each }) =>
      next === undefined ? each : { ...each, next: ctx.out.hint(next) },
    )
    const off = findings.filter(({ level }) => level !== 'ok')
    const isHealthy = !off.some((finding) => counts(finding, failOn))
    return {
      json: { healthy: isHealthy, findings },
      show: (out) => show(out, findings),
      exit: isHealthy ? 0 : 3,
    }
  })
}

function failOnOf(text: string): readonly FailOn[] {
  const known: readonly string[] = ['warning', 'problem', 'never', ...checks]
  const parts = text.split(',').map((part) => part.trim())
  if (parts.every((part) => known.includes(part))) return parts as FailOn[]
  throw new InvalidArgumentError(`Give a comma-separated list of ${known.join(', ')}.`)
}

/** Whether a finding causes exit code 3. If the store can't be read, the other checks did not run, so that always counts. */
function counts({ check, level }: Finding, failOn: readonly FailOn[]): boolean {
  const isBlind = level === 'problem' && (check === 'store' || check === 'schema')
  return isBlind || failOn.some((what) => what === check || what === level || what === 'warning')
}

async function examine(ctx: Context, maxLag: number): Promise<Finding[]> {
  const { store, schema } = await ctx.choice()
  const findings: Finding[] = []
  try {
    findings.push(...(await schemaFindings(ctx)))
    if (findings.some(({ level }) => level === 'problem')) return findings
    await ctx.store()
    findings.push({ check: 'store', level: 'ok', what: `${describeStore(store, schema)} is usable.` })
    findings.push(await clockFinding(ctx))
    const report = await reportOf(ctx)
    findings.push(...gapFindings(report))
    const declared = new Set((await ctx.subscriptions()).map(({ name }) => name))
    for (const subscription of report.subscriptions)
      findings.push(...subscriptionFindings(subscription, maxLag, report.at, declared.has(subscription.name)))
    for (const { name, state } of report.breakers) {
      const [what, next] =
        state.state === 'isolated'
          ? [
              'isolated. Reset it when its endpoint works again.',
              `holdfast breakers reset ${shellWord(name)} ${reasonFlag}`,
            ]
          : [`${state.state}. It retries automatically.`, 'holdfast breakers list --open']
      findings.push({ check: 'breaker', level: 'warning', what: `The breaker ${name} is ${what}`, next })
    }
    findings.push(...(await redriveFindings(ctx, report, declared)))
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
    return [{ check: 'schema', level: 'ok', what: `${applied} of ${many(known, 'migration')} applied.` }]
  const what =
    applied === 0
      ? 'The store does not exist yet.'
      : `${many(pending.length, 'migration')} not applied: ${pending.join(', ')}.`
  return [{ check: 'schema', level: 'problem', what, next: 'holdfast migrate' }]
}

async function clockFinding(ctx: Context): Promise<Finding> {
  const store = await ctx.store()
  const before = ctx.clock.now()
  const { now } = await store.breakers.load([])
  const after = ctx.clock.now()
  // The part of the difference that the round trip does not explain.
  const skewMs = now < before ? before - now : now > after ? now - after : 0
  if (skewMs <= maxSkewMs)
    return {
      check: 'clock',
      level: 'ok',
      what: `The clocks of this machine and of the store differ by less than ${span(maxSkewMs / 1_000)}.`,
    }
  return {
    check: 'clock',
    level: 'warning',
    what: `The clocks of this machine and of the store differ by ${span(skewMs / 1_000)}.`,
    next: 'Set the clock of this machine. Leases use the clock of the store and are correct; displayed times are not.',
  }
}

function gapFindings({ gap, at }: StoreReport): Finding[] {
  if (!gap) return [{ check: 'horizon', level: 'ok', what: 'No open transaction delays the readers of the log.' }]
  const oldest = Math.min(...gap.holders.map(({ since }) => since ?? at))
  const holders = gap.holders.map(
    ({ pid, since, application }) => `pid ${pid} (${application ?? 'unnamed'}, ${ago(since, at)})`,
  )
  return [
    {
      check: 'horizon',
      level: at - oldest > maxGapMs ? 'problem' : 'warning',
      what: `Readers wait after position ${gap.after} for an open transaction that appended events: ${holders.join(', ')}.`,
      next: 'Commit or roll back that transaction. As a last resort: SELECT pg_terminate_backend(pid)',
    },
  ]
}

/** Without its code nothing here can run it. */
function startOf(isDeclared: boolean, command: string): string {
  return isDeclared ? command : 'Start the program that runs it: the configuration here does not declare it.'
}

function subscriptionFindings(each: SubscriptionReport, maxLag: number, now: number, isDeclared: boolean): Finding[] {
  const { name, state, pause, lag, held, unowned, partitions, oldest } = each
  const findings: Finding[] = []
  const add = (check: Check, level: Finding['level'], what: string, next?: string) =>
    findings.push({ check, level, what: `${name}: ${what}`, ...(next !== undefined && { next }) })
  if (state === 'new') add('subscription', 'warning', 'it was never started.', 'holdfast start')
  if (state === 'orphan')
    add(
      'subscription',
      'warning',
      'it is stored, but the configuration does not declare it.',
      'Add it to holdfast.config.ts if you still need it.',
    )
  if (state === 'other-code')
    add(
      'version',
      'warning',
      'its live version differs from the declared one, so this code does not run it.',
      `holdfast projections versions ${name}`,
    )
  if (state === 'unreadable') add('subscription', 'problem', 'its stored state cannot be read.', 'holdfast status')
  if (pause)
    add(
      'pause',
      'warning',
      `paused ${ago(pause.at, now)}: ${pause.reason}`,
      `holdfast subscriptions resume ${name} ${reasonFlag}`,
    )
  if (state === 'idle') add('lease', 'problem', 'no running process owns it.', startOf(isDeclared, 'holdfast start'))
  else if (unowned > 0 && !['orphan', 'new', 'beside', 'other-code'].includes(state) && !pause)
    add(
      'lease',
      'warning',
      `${unowned} of ${many(partitions, 'partition')} ${unowned === 1 ? 'has' : 'have'} no live owner. A running engine takes over within seconds.`,
      'holdfast doctor',
    )
  if (lag && lag.events > 0 && lag.seconds * 1_000 > maxLag)
    add(
      'lag',
      'warning',
      `${many(lag.events, 'event')} behind, for ${span(lag.seconds)}.`,
      `holdfast subscriptions lag ${name}`,
    )
  if (held && held.lanes > 0) {
    const longest = oldest[0]
      ? `${held.lanes === 1 ? ',' : '; the oldest'} for ${span((now - oldest[0].since) / 1_000)}`
      : ''
    add(
      'held',
      'warning',
      `${many(held.lanes, 'lane')} ${held.lanes === 1 ? 'is' : 'are'} held with ${many(held.letters, 'letter')}${longest}.`,
      `holdfast dlq incidents ${name}`,
    )
  }
  if (findings.length === 0) add('subscription', 'ok', `${state}, ${count(lag?.events ?? 0)} behind, nothing held.`)
  return findings
}

async function redriveFindings(
  ctx: Context,
  { subscriptions }: StoreReport,
  declared: ReadonlySet<string>,
): Promise<Finding[]> {
  const store = await ctx.store()
  const running = (await store.redrives.list({ limit: 100 })).filter(({ status }) => status === 'running')
  return running
    .filter(({ subscription }) => subscriptions.find(({ name }) => name === subscription)?.owners.length === 0)
    .map(({ id, subscription }) => ({
      check: 'redrive' as const,
      level: 'problem' as const,
      what: `The redrive ${id} of ${subscription} is waiting, and no engine runs it.`,
      next: startOf(declared.has(subscription), `holdfast redrives show ${id} --work`),
    }))
}

const marks: Readonly<Record<Finding['level'], Text>> = {
  ok: green('ok'),
  warning: yellow('warning'),
  problem: red('problem'),
}

function show(out: Output, findings: readonly Finding[]): void {
  for (const { check, level, what, next } of findings) {
    out.data(marks[level], ' ', dim(check), ' ', what)
    if (next !== undefined) out.data('  ', dim('Next: '), next)
  }
  const told = (['problem', 'warning'] as const).flatMap((level) => {
    const found = findings.filter((finding) => finding.level === level).length
    return found > 0 ? many(found, level) : []
  })
  out.talk(told.length === 0 ? 'No problems found.' : `${told.join(' and ')} found.`)
}
