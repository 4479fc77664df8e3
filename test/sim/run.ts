import { openServer, openSqlite } from '../../src/testing/simulation/backend.ts'
import { acceptedOf, checkCommits, effectsOf } from '../../src/testing/simulation/checks.ts'
import type { CrashPoint } from '../../src/testing/simulation/network.ts'
import { type Run, runSimulation } from '../../src/testing/simulation/simulation.ts'
import type { Redrive } from '../../src/redrive/redrive.ts'
import type { ClaimOutcome, CommitOutcome } from '../../src/subscription/subscription-store.ts'
import { judgeEffects, judgeFinished, judgeLedger, judgeRows } from './judge.ts'
import { StepsApp } from './steps.ts'
import type { Swarm } from './swarm.ts'

export type Counters = Readonly<Record<(typeof counterNames)[number], number>>

export const counterNames = [
  'fenced',
  'heldLanes',
  'unknownCommits',
  'breakerOpenings',
  'crashPoison',
  'takeovers',
  'kills',
  'redriven',
  'repeatedEffects',
] as const

export interface Outcome {
  readonly violations: readonly string[]
  readonly counters: Counters
  readonly run: Run
  readonly calls: number
}

export async function simulateSwarm({ plan, steps }: Swarm, crashPoints: readonly CrashPoint[] = []): Promise<Outcome> {
  const app = new StepsApp(steps, plan.appends)
  let outcome: Outcome | undefined
  await runSimulation({ plan, app, open: { file: openSqlite, server: openServer }, crashPoints }, async (run) => {
    const { history, witness, stuck } = run
    const accepted = acceptedOf(history)
    const violations = [
      ...(stuck === undefined ? [] : [`I11 ${stuck}`]),
      ...failuresOf(run),
      ...checkCommits(history),
      ...(stuck === undefined ? await judgeRows(witness, app) : []),
      ...(stuck === undefined ? await judgeLedger(witness, app, steps) : []),
      ...judgeEffects(app, stuck === undefined),
      ...(await judgeFinished(witness, app, history, steps.partitions)),
    ]
    const count = (kind: string) => history.happenings.filter((happening) => happening.kind === kind).length
    const commits = effectsOf<CommitOutcome>(history, 'subscriptions.commit')
    outcome = {
      violations,
      run,
      calls: run.network.calls,
      counters: {
        fenced: commits.filter(({ value }) => value.outcome === 'fenced').length,
        heldLanes: accepted.reduce((sum, { commit }) => sum + commit.lanes.filter(({ hold }) => hold).length, 0),
        unknownCommits: run.network.unheard.get('subscriptions.commit') ?? 0,
        breakerOpenings: effectsOf<boolean>(history, 'breakers.save').filter(
          ({ about, value }) => value && (about[0] as { state: { state: string } }).state.state === 'open',
        ).length,
        crashPoison: accepted
          .flatMap(({ commit }) => commit.held)
          .filter(({ failure }) => failure?.code === 'EVENT_DEADLY').length,
        takeovers: effectsOf<ClaimOutcome>(history, 'subscriptions.claim').filter(
          ({ value }) => value.outcome === 'claimed' && value.isInherited,
        ).length,
        kills: count('kill'),
        redriven: (await witness.redrives.list({ limit: 100 })).reduce(
          (sum: number, one: Redrive) => sum + one.letters,
          0,
        ),
        repeatedEffects: app.effects.length - new Set(app.effects.map(({ key, n }) => `${key}/${n}`)).size,
      },
    }
  })
  return outcome as Outcome
}

function failuresOf({ history }: Run): string[] {
  return history.happenings
    .filter(({ kind }) => kind === 'failed')
    .map(({ who, text }) => `${who} could not start: ${text}`)
}
