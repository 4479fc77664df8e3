import type { MemoryStore } from '../../src/testing/memory/store.ts'
import { openServer, openSqlite } from '../../src/testing/simulation/backend.ts'
import { checkCommits } from '../../src/testing/simulation/checks.ts'
import type { CrashPoint } from '../../src/testing/simulation/network.ts'
import { type Run, runSimulation } from '../../src/testing/simulation/simulation.ts'
import { Breakers } from './breakers.ts'
import { type Counters, countersOf } from './counters.ts'
import { Deadlines } from './deadlines.ts'
import { Deaths } from './deaths.ts'
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
    outcome = { run, violations: await violationsOf(run, app, swarm), counters: await countersOf(run, app) }
  })
  return outcome as Outcome
}

async function violationsOf(run: Run, app: StepsApp, swarm: Swarm): Promise<string[]> {
  const { history, witness, stuck } = run
  const known = await knownOf(witness, app, swarm.steps.partitions)
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
    ...judgeTries(run, known, swarm),
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

function judgeTries({ history }: Run, known: readonly Known[], { plan, steps }: Swarm): string[] {
  const watchers = [
    new Tries(steps, known),
    new Deaths(known),
    Deadlines.for(plan),
    Leases.for(plan),
    Breakers.for(plan, steps),
  ].filter((watcher) => watcher !== undefined)
  walk(history, 'calls', known, watchers)
  const overNotes = new Deaths(known)
  if (steps.flaws.includes('fatal')) walk(history, 'notes', known, [overNotes])
  return [...watchers, overNotes].flatMap(({ problems }) => problems)
}
