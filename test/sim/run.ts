import type { MemoryStore } from '../../src/testing/memory/store.ts'
import { openServer, openSqlite } from '../../src/testing/simulation/backend.ts'
import { checkCommits } from '../../src/testing/simulation/checks.ts'
import type { CrashPoint } from '../../src/testing/simulation/network.ts'
import { type Run, runSimulation } from '../../src/testing/simulation/simulation.ts'
import { type Counters, countersOf } from './counters.ts'
import { judgeArrivals, judgeEffects, judgeFinished, judgeLedger, judgeNotes, judgeRows, leftOutOf } from './judge.ts'
import { StepsApp } from './steps.ts'
import type { Swarm } from './swarm.ts'

export interface Outcome {
  readonly violations: readonly string[]
  readonly counters: Counters
  readonly run: Run
}

export async function simulateSwarm({ plan, steps }: Swarm, crashPoints: readonly CrashPoint[] = []): Promise<Outcome> {
  const app = new StepsApp(steps, plan)
  let outcome: Outcome | undefined
  await runSimulation({ plan, app, open: { file: openSqlite, server: openServer }, crashPoints }, async (run) => {
    outcome = { run, violations: await violationsOf(run, app, steps.partitions), counters: await countersOf(run, app) }
  })
  return outcome as Outcome
}

async function violationsOf(run: Run, app: StepsApp, partitions: number): Promise<string[]> {
  const { history, witness, stuck } = run
  const { leftOut, problems } = await leftOutOf(witness, app, run.discarded)
  const always = [
    ...history.happenings
      .filter(({ kind }) => kind === 'failed')
      .map(({ who, text }) => `${who} could not start: ${text}`),
    ...problems,
    ...checkCommits(history),
    ...judgeEffects(app, leftOut, stuck === undefined),
    ...(await judgeFinished(witness, app, history, partitions)),
  ]
  if (stuck !== undefined) return [`I11 ${stuck}`, ...always]
  return [
    ...always,
    ...(await judgeRows(witness, app, leftOut)),
    ...(app.names.includes('notes') ? judgeNotes((witness as MemoryStore).table('notes'), app, leftOut) : []),
    ...(await judgeArrivals(witness, app)),
    ...(await judgeLedger(witness, app)),
  ]
}
