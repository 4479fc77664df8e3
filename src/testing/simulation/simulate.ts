import { AssertionError } from 'node:assert'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import { createEngine } from '../../engine/engine.ts'
import { HoldfastError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Projection } from '../../projection/projection.ts'
import { checkOptions } from '../../runtime/options.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'
import type { TestEvent } from '../kit/events.ts'
import { rowsOf } from '../kit/look.ts'
import { explain, OutsideWatch } from '../kit/outside.ts'
import { seedOf } from '../kit/seed.ts'
import { watchedHandler, watchedProjection } from '../kit/watched.ts'
import type { App, Outside, PlannedAppend } from './app.ts'
import { openServer, openSqlite } from './backend.ts'
import { checkCommits } from './checks.ts'
import { divergence, type History } from './history.ts'
import { narrate } from './narrate.ts'
import { nowhere } from './outside.ts'
import { allFaults, checkFaults, drawPlan, type Fault, faultsOf, type Plan } from './plan.ts'
import { shrink, simpler } from './shrink.ts'
import { type Run, runSimulation } from './simulation.ts'

/** A world of your own for one run: it is made anew for each, so that no run knows of another. */
export interface SimulatedApp {
  /**
   * What a process runs. It is asked for every process that is started. What your code calls outside, it must call through
   * `outside.reach(…)` or `outside.call(…)`, or nothing will ever go wrong with it.
   */
  subscriptions(outside: Outside): readonly (Consumer | Subscription)[]
  /** What is appended, those of one key in this order, while everything goes wrong. */
  readonly events: readonly TestEvent[]
  /** What must be true when everything has come right. It throws if it isn't. */
  check?(end: SimulatedEnd): unknown
}

/** How it ended. */
export interface SimulatedEnd {
  /** All rows of a projection, by key. */
  rows<Row, Columns>(projection: Projection<Row, Columns>): Promise<Record<string, Row>>
  /** What is still held. */
  letters(subscription: string): Promise<readonly DeadLetter[]>
}

export interface SimulateOptions {
  /** How many worlds. 100 unless you say otherwise. */
  readonly seeds?: number
  /** The first of them. HOLDFAST_SEED, or 1, unless you say otherwise. */
  readonly from?: number
  /** What may go wrong: everything, unless you name some. */
  readonly faults?: 'all' | readonly Fault[]
}

export interface SimulationReport {
  readonly seeds: number
  /** How often processes were killed, in all of them. */
  readonly kills: number
  readonly virtualSeconds: number
}

/**
 * Runs your subscriptions in the real engine, in simulated processes, against a simulated store, and lets everything go wrong that can: processes die
 * between any two calls, stand still and come back, calls are lost on the way there or on the way back, the store goes away. Then everything is
 * mended, and must come right: every event once, in order, or held; every row what its events make of it. What does not hold is an AssertionError
 * with the simplest run that shows it.
 */
export async function simulate(make: () => SimulatedApp, options: SimulateOptions = {}): Promise<SimulationReport> {
  checkOptions(options, 'simulate', ['seeds', 'from', 'faults'])
  if (typeof make !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'simulate needs a function that makes the app.', {
      hint: 'Such as () => ({ subscriptions: (outside) => [...], events: [...] }).',
    })
  const { seeds = 100, faults = 'all' } = options
  const from = seedOf(options.from)
  if (!Number.isSafeInteger(seeds) || seeds < 1)
    throw new HoldfastError('OPTION_INVALID', `seeds is ${seeds}.`, { hint: 'Give a whole number from 1.' })
  const chosen = faults === 'all' ? allFaults : faults
  checkFaults(chosen)
  let [kills, virtualMs] = [0, 0]
  for (let seed = from; seed < from + seeds; seed++) {
    const plan = { ...drawPlan(seed, ['server'], chosen), appends: make().events.length }
    const { violations, run } = await runOnce(make, plan)
    if (seed === from) await checkRepeats(make, plan, run.history)
    if (violations.length > 0) throw await failed(make, plan)
    kills += run.history.happenings.filter(({ kind }) => kind === 'kill').length
    virtualMs += run.virtualMs
  }
  return { seeds, kills, virtualSeconds: Math.round(virtualMs / 1_000) }
}

async function runOnce(
  make: () => SimulatedApp,
  plan: Plan,
  watch?: OutsideWatch,
): Promise<{ readonly violations: readonly string[]; readonly run: Run }> {
  const app = make()
  let outcome: { readonly violations: readonly string[]; readonly run: Run } | undefined
  const simulated = toApp(app, watch)
  await runSimulation(
    { plan, app: simulated, open: { server: openServer, file: openSqlite }, mayStayParked: true },
    async (run) => {
      outcome = { run, violations: await violationsOf(app, simulated, run) }
    },
  )
  return outcome as NonNullable<typeof outcome>
}

async function violationsOf(app: SimulatedApp, simulated: App, run: Run): Promise<string[]> {
  const { history, witness, stuck } = run
  const violations = [
    ...history.happenings
      .filter(({ kind }) => kind === 'failed')
      .map(({ text }) => `A process could not start: ${text}`),
    ...checkCommits(history),
  ]
  if (stuck !== undefined) return [`It did not come right: ${stuck}.`, ...violations]
  const subscriptions = simulated.subscriptions(nowhere, () => undefined)
  const engine = createEngine({ store: witness, subscriptions, logger: silent })
  for (const subscription of subscriptions) {
    if (subscription.kind === 'subscription' && subscription.source) continue
    const { ok, differences } = await engine.verify(subscription.name)
    if (!ok)
      violations.push(`${subscription.name} is not what its events make of it: ${JSON.stringify(differences[0])}`)
  }
  try {
    await app.check?.({
      rows: (projection) => rowsOf(witness, projection),
      letters: async (subscription) =>
        (await engine.letters({ subscription, limit: 10_000 })).filter(({ endedAt }) => endedAt === undefined),
    })
  } catch (error) {
    violations.push(error instanceof Error ? error.message : String(error))
  }
  return violations
}

/** The same seed twice must be the same run, or nothing that is found could be found again. */
async function checkRepeats(make: () => SimulatedApp, plan: Plan, first: History): Promise<void> {
  using watch = new OutsideWatch()
  const again = await runOnce(make, plan, watch)
  const where = divergence(first, again.run.history)
  if (where === undefined) return
  const why =
    watch.calls.length > 0
      ? explain(watch.calls, 'handler')
      : ['What it depends on was not seen: a file, a socket, or a clock taken beforehand.']
  throw new AssertionError({
    message: ['Two runs of one seed are not the same.', ...why, `They part at ${where}.`].join('\n'),
  })
}

async function failed(make: () => SimulatedApp, plan: Plan): Promise<AssertionError> {
  const fails = async (candidate: Plan) => (await runOnce(make, candidate)).violations.length > 0
  const least = await shrink(plan, simpler, fails, 100)
  const { violations, run } = await runOnce(make, least)
  const { processes, appends, pageEvents } = least
  const things = [
    `${processes} ${processes === 1 ? 'process' : 'processes'}`,
    `${appends} ${appends === 1 ? 'event' : 'events'}`,
    `pages of ${pageEvents}`,
    faultsOf(least).join(', ') || 'nothing goes wrong',
  ]
  const message = [
    violations.join('\n'),
    '',
    `The simplest run that shows it: ${things.join('; ')}.`,
    narrate(run.history),
    '',
    `To see it again: simulate(app, { from: ${plan.seed}, seeds: 1 })`,
  ].join('\n')
  return new AssertionError({ message })
}

function toApp(app: SimulatedApp, watch: OutsideWatch | undefined): App {
  const catalogs = app.subscriptions(nowhere).map((one) => (one.kind === 'subscription' ? one.consumer : one).events)
  const watched = (one: Consumer): Consumer => {
    if (!watch || one.kind === 'sql') return one
    return one.kind === 'fold' ? watchedProjection(one, watch) : watchedHandler(one, watch)
  }
  return {
    events: catalogs[0] as EventCatalog,
    subscriptions: (outside) =>
      app
        .subscriptions(outside)
        .map((one) => (one.kind === 'subscription' ? { ...one, consumer: watched(one.consumer) } : watched(one))),
    appends: (_chance, faultsMs) =>
      app.events.map(({ key, ...draft }, i): PlannedAppend => {
        const id = (draft as { readonly id?: string }).id ?? `${key}-${i + 1}`
        return { atMs: (i * faultsMs * 0.8) / app.events.length, key, drafts: [{ ...draft, id }] }
      }),
  }
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
