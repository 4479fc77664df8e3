import type { MemoryStore } from '../../src/testing/memory/store.ts'
import { openServer, openSqlite } from '../../src/testing/simulation/backend.ts'
import { checkCommits } from '../../src/testing/simulation/checks.ts'
import type { CrashPoint } from '../../src/testing/simulation/network.ts'
import { type Run, runSimulation } from '../../src/testing/simulation/simulation.ts'
import { Books } from './books.ts'
import { Breakers } from './breakers.ts'
import { walkCommits } from './commits.ts'
import { type Counters, countersOf, type Seen } from './counters.ts'
import { Deadlines } from './deadlines.ts'
import { Deaths } from './deaths.ts'
import { Frozen, frozenSetsOf } from './frozen.ts'
import {
  decidedIn,
  judgeArrivals,
  judgeAudit,
  judgeDecisions,
  judgeEffects,
  judgeFinished,
  judgeGathered,
  judgeHalts,
  judgeLedger,
  judgeNotes,
  judgeOrder,
  judgePassed,
  judgeRows,
} from './judge.ts'
import { Leases } from './leases.ts'
import { StepsApp } from './steps.ts'
import type { Swarm } from './swarm.ts'
import { Tries } from './tries.ts'
import { Turns } from './turns.ts'
import { type Known, knownOf, walk } from './walk.ts'

export interface Outcome {
  readonly violations: readonly string[]
  readonly counters: Counters
  readonly run: Run
}

export async function simulateSwarm(swarm: Swarm, crashPoints: readonly CrashPoint[] = []): Promise<Outcome> {
  const { plan, steps } = swarm
  const app = new StepsApp(steps, plan)
  let outcome: Outcome | undefined
  await runSimulation({ plan, app, open: { file: openSqlite, server: openServer }, crashPoints }, async (run) => {
    const { violations, seen } = await judge(run, app, swarm)
    outcome = { run, violations, counters: { ...(await countersOf(run, app)), ...seen } }
  })
  return outcome as Outcome
}

async function judge(run: Run, app: StepsApp, swarm: Swarm): Promise<{ violations: string[]; seen: Seen }> {
  const known = await knownOf(run.witness, app, swarm.steps.partitions)
  const { problems, seen } = await judgeCourse(run, known, swarm)
  return { violations: await violationsOf(run, app, swarm, known, problems), seen }
}

async function violationsOf(
  run: Run,
  app: StepsApp,
  swarm: Swarm,
  known: readonly Known[],
  ofCourse: readonly string[],
): Promise<string[]> {
  const { history, witness, stuck } = run
  const { decided, problems } = await decidedIn(witness, app, run.discarded)
  const always = [
    ...history.happenings
      .filter(({ kind }) => kind === 'failed')
      .map(({ who, text }) => `${who} could not start: ${text}`),
    ...problems,
    ...checkCommits(history),
    ...judgeHalts(history),
    ...app.seen,
    ...judgePassed(history),
    ...judgeEffects(app, decided, stuck === undefined),
    ...(swarm.steps.order === 'partition' ? judgeOrder(app, known, decided) : []),
    ...(await judgeFinished(witness, app, history, swarm.steps.partitions)),
    ...ofCourse,
  ]
  if (stuck !== undefined) return [`I11 ${stuck}`, ...always]
  return [
    ...always,
    ...(await judgeRows(witness, app, decided)),
    ...(app.names.includes('gathered') ? await judgeGathered(witness, known, decided) : []),
    ...judgeDecisions(history, decided, new Map(known.map(({ id, position }) => [position, id]))),
    ...(app.names.includes('notes') ? judgeNotes((witness as MemoryStore).table('notes'), app, decided) : []),
    ...(await judgeArrivals(witness, app)),
    ...(await judgeLedger(witness, app)),
    ...(await judgeAudit(witness, app.names)),
  ]
}

/** What happened between the beginning and the end: attempts, commits and redrives. */
async function judgeCourse({ history, witness }: Run, known: readonly Known[], { plan, steps }: Swarm) {
  const tries = new Tries(steps, known, plan.conditions.slow === 0 && plan.conditions.pauseEveryMs === 0)
  const turns = new Turns(steps, known)
  const watchers = [
    tries,
    turns,
    new Deaths(known),
    Deadlines.for(plan),
    Leases.for(plan),
    Breakers.for(plan, steps),
  ].filter((watcher) => watcher !== undefined)
  walk(history, 'calls', known, watchers)
  const overNotes = new Deaths(known)
  if (steps.flaws.includes('fatal')) walk(history, 'notes', known, [overNotes])
  const books = new Books()
  const frozen = new Frozen(await frozenSetsOf(witness), known, steps.rebuilds ? ['walks'] : [])
  walkCommits(history, [books, frozen])
  const seen: Seen = {
    orderedAttempts: turns.ordered,
    attemptsAfterUnknown: turns.afterUnknown,
    comparedLanes: books.compared,
    comparedAfterDoubt: books.comparedAfterDoubt,
    frozenLanes: frozen.begun,
    timedRetries: tries.timed,
    punctualRetries: tries.punctual,
    comparedAttempts: tries.compared,
  }
  return { problems: [...watchers, overNotes, books, frozen].flatMap(({ problems }) => problems), seen }
}
