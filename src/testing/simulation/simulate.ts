import { createEngine } from '../../engine/process/engine.ts'
import { HoldfastError } from '../../errors.ts'
import { checkOptions } from '../../runtime/options.ts'
import type { Store } from '../../store.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'
import { Claim } from '../kit/claim.ts'
import type { TestEvent } from '../kit/events.ts'
import { heldLetters, rowsOf } from '../kit/look.ts'
import { seedOf } from '../kit/seed.ts'
import { openServer, openSqlite } from './backend.ts'
import { checkCommits } from './checks.ts'
import { divergence } from './history.ts'
import { narrate } from './narrate.ts'
import { nowhere } from './outside.ts'
import { allFaults, checkFaults, drawPlan, type Fault, faultsOf, type Plan, without } from './plan.ts'
import { shrink, simpler } from './shrink.ts'
import { checkApp, consumerOf, handles, type SimulatedApp, toApp } from './simulated-app.ts'
import { type Run, runSimulation } from './simulation.ts'
import { Watches } from './watches.ts'

export interface SimulateOptions {
  /** The number of runs. Default: 100. */
  readonly seeds?: number
  /** The first seed. Default: HOLDFAST_SEED, or 1. */
  readonly from?: number
  /** The faults to inject. Default: 'all'. */
  readonly faults?: 'all' | readonly Fault[]
}

export interface SimulationReport {
  readonly seeds: number
  /** The number of killed processes, in all runs. */
  readonly kills: number
  readonly virtualSeconds: number
}

/**
 * Runs your subscriptions in the real engine, in simulated processes, against a simulated store, with injected faults: processes
 * die between any two calls, stand still and continue, calls and answers are lost, the store is unavailable. Then the faults
 * stop, and everything must recover: every event applied once, in order, or held; every row equal to a fold of its events. A
 * violation is an AssertionError with the simplest run that shows it.
 */
export async function simulate(make: () => SimulatedApp, options: SimulateOptions = {}): Promise<SimulationReport> {
  const claim = new Claim('simulate')
  checkOptions(options, 'simulate', ['seeds', 'from', 'faults'])
  if (typeof make !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'simulate needs a function that creates the app.', {
      hint: 'For example () => ({ subscriptions: (outside) => [...], events: [...] }).',
    })
  const { seeds = 100, faults = 'all' } = options
  const from = seedOf(options.from, 'from')
  if (!Number.isSafeInteger(seeds) || seeds < 1)
    throw new HoldfastError('OPTION_INVALID', `seeds is ${seeds}.`, { hint: 'Give a whole number from 1.' })
  const chosen = faults === 'all' ? allFaults : faults
  checkFaults(chosen)
  const app = make()
  await checkApp(app)
  const planOf = (seed: number): Plan => ({ ...drawPlan(seed, ['server'], chosen), appends: app.events.length })
  await checkCalm(claim, make, planOf(from))

  let [kills, virtualMs] = [0, 0]
  for (let seed = from; seed < from + seeds; seed++) {
    const plan = planOf(seed)
    const found = await runOnce(make, plan)
    const isFailed = found.violations.length > 0
    // A run that is not reproducible can't be simplified.
    if (seed === from || isFailed) await checkRepeats(claim, make, plan, found)
    if (isFailed) {
      const only = faults === 'all' ? '' : `, faults: [${chosen.map((fault) => `'${fault}'`).join(', ')}]`
      await deny(claim, make, plan, `simulate(app, { from: ${seed}, seeds: 1${only} })`)
    }
    kills += found.run.history.happenings.filter(({ kind }) => kind === 'kill').length
    virtualMs += found.run.virtualMs
  }
  return { seeds, kills, virtualSeconds: Math.round(virtualMs / 1_000) }
}

interface Found {
  /** The violated checks. */
  readonly violations: readonly string[]
  /** The error of the user's check, if any. */
  readonly thrown: unknown
  /** The events that are held at the end, and why. */
  readonly held: readonly string[]
  readonly run: Run
}

async function runOnce(make: () => SimulatedApp, plan: Plan, watches?: Watches): Promise<Found> {
  const app = make()
  let found: Found | undefined
  await runSimulation(
    { plan, app: toApp(app, watches), open: { server: openServer, file: openSqlite }, mayStayParked: true },
    async (run) => {
      found = { run, ...(await judge(app, plan, run)), held: await heldIn(app, run) }
    },
  )
  return found as Found
}

async function judge(app: SimulatedApp, plan: Plan, run: Run): Promise<Pick<Found, 'violations' | 'thrown'>> {
  const { history, witness, stuck } = run
  const violations = [
    ...history.happenings
      .filter(({ kind }) => kind === 'failed')
      .map(({ text }) => `A process could not start: ${text}`),
    ...checkCommits(history),
  ]
  if (stuck !== undefined) return { violations: [`It did not recover: ${stuck}.`, ...violations], thrown: undefined }
  const subscriptions = app.subscriptions(nowhere)
  const engine = createEngine({ store: witness, subscriptions, logger: silent })
  for (const subscription of subscriptions) {
    if (subscription.kind === 'subscription' && subscription.source) continue
    const { ok, differences } = await engine.verify(subscription.name)
    if (!ok)
      violations.push(`${subscription.name} differs from a fold of its events: ${JSON.stringify(differences[0])}`)
  }
  const events = app.events.slice(0, plan.appends)
  // Without a check, the user expects events to be applied, and not all of them to be held.
  if (!app.check && isCalm(plan)) violations.push(...(await idleOf(witness, subscriptions, events)))
  try {
    await app.check?.({
      events,
      rows: (projection) => rowsOf(witness, projection),
      letters: (subscription) => heldLetters(witness, [subscription]),
      discarded: (subscription) => witness.letters.list({ subscription, status: 'discarded', limit: 10_000 }),
    })
  } catch (thrown) {
    return { violations: [...violations, thrown instanceof Error ? thrown.message : String(thrown)], thrown }
  }
  return { violations, thrown: undefined }
}

const mostHeld = 5

async function heldIn(app: SimulatedApp, { witness }: Run): Promise<string[]> {
  const letters = await heldLetters(
    witness,
    app.subscriptions(nowhere).map(({ name }) => name),
  )
  const lines = letters.flatMap(({ subscription, lane, event, failure }) =>
    failure ? [`  ${subscription} holds ${lane} at ${event.type}: ${failure.errorType}: ${failure.message}`] : [],
  )
  const more = lines.length > mostHeld ? [`  and ${lines.length - mostHeld} more`] : []
  return lines.length === 0 ? [] : ['Held at the end:', ...lines.slice(0, mostHeld), ...more]
}

/** Subscriptions that hold all of their events. */
async function idleOf(
  store: Store,
  subscriptions: readonly (Consumer | Subscription)[],
  events: readonly TestEvent[],
): Promise<string[]> {
  const idle: string[] = []
  for (const one of subscriptions) {
    const letters = await heldLetters(store, [one.name])
    const asked = events.filter(({ type }) => handles(consumerOf(one), type)).length
    const failure = letters.find(({ failure: known }) => known)?.failure
    if (asked > 0 && letters.length >= asked)
      idle.push(`${one.name} holds all of its events: ${failure?.errorType}: ${failure?.message}`)
  }
  return idle
}

/** The same plan without faults, and as small as possible. */
function calmed(plan: Plan): Plan {
  return { ...faultsOf(plan).reduce(without, plan), processes: 1, pageEvents: 100 }
}

function isCalm(plan: Plan): boolean {
  return faultsOf(plan).length === 0
}

/** A violation without faults has nothing to do with faults, and would be found in every run. */
async function checkCalm(claim: Claim, make: () => SimulatedApp, plan: Plan): Promise<void> {
  using watches = new Watches()
  const { violations, thrown, held, run } = await runOnce(make, calmed(plan), watches)
  if (watches.guiltyFold) claim.fail(watches.guiltyFold)
  if (violations.length === 0) return
  claim.fail(
    [
      'The check fails even without faults.',
      ...violations,
      '',
      `What happened, with ${plan.appends} ${plan.appends === 1 ? 'event' : 'events'}:`,
      narrate(run.history),
      ...held,
      ...watches.explained,
    ],
    { cause: thrown },
  )
}

/** The same seed must give the same run, otherwise no failure could be reproduced. */
async function checkRepeats(claim: Claim, make: () => SimulatedApp, plan: Plan, first: Found): Promise<void> {
  using watches = new Watches()
  const again = await runOnce(make, plan, watches)
  if (watches.guiltyFold) claim.fail(watches.guiltyFold)
  const where = divergence(first.run.history, again.run.history) ?? divergentEnd(first.violations, again.violations)
  if (where === undefined) return
  const { explained } = watches
  const unseen =
    'The cause was not detected: something in memory that outlives a world, or a clock that was saved before.'
  claim.fail([
    `Two runs of seed ${plan.seed} differ.`,
    ...(explained.length > 0 ? explained : [unseen]),
    `They diverge at ${where}.`,
  ])
}

function divergentEnd(first: readonly string[], second: readonly string[]): string | undefined {
  const [one, other] = [first, second].map((violations) => violations.join('\n') || 'no violation')
  return one === other ? undefined : `the end: ${one}, then ${other}`
}

async function deny(claim: Claim, make: () => SimulatedApp, plan: Plan, again: string): Promise<never> {
  const holds = async (candidate: Plan) => (await runOnce(make, candidate)).violations.length === 0
  // A check may require all events. With fewer of them it would fail for that reason, and would not show the fault.
  const askable = new Map([[plan.appends, true]])
  const isAskable = async (candidate: Plan) => {
    const known = askable.get(candidate.appends) ?? (await holds(calmed({ ...plan, appends: candidate.appends })))
    askable.set(candidate.appends, known)
    return known
  }
  const fails = async (candidate: Plan) => (await isAskable(candidate)) && !(await holds(candidate))
  const least = await shrink(plan, simpler, fails, 100)
  using watches = new Watches()
  const { violations, thrown, held, run } = await runOnce(make, least, watches)
  const { processes, appends, pageEvents } = least
  const things = [
    `${processes} ${processes === 1 ? 'process' : 'processes'}`,
    `${appends} ${appends === 1 ? 'event' : 'events'}`,
    `pages of ${pageEvents}`,
    faultsOf(least).join(', ') || 'no faults',
  ]
  claim.fail(
    [
      violations.join('\n'),
      '',
      `The simplest failing run: ${things.join('; ')}.`,
      narrate(run.history),
      '',
      ...held,
      ...watches.explained,
      `To repeat it: ${again}`,
    ],
    { cause: thrown },
  )
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
