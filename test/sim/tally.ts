import { type Counters, counterNames } from './counters.ts'
import { type Outcome, simulateSwarm } from './run.ts'
import { type Swarm, swarmOf } from './swarm.ts'
import { divergence, lineOf } from '../../src/testing/simulation/history.ts'

export interface Failed {
  readonly seed: number
  readonly violations: readonly string[]
}

/** What came of some seeds. */
export interface Tally {
  readonly seeds: number
  readonly failed: readonly Failed[]
  /** Those that failed on an earlier commit of a long run, and don't any more. */
  readonly mended: readonly Failed[]
  readonly counters: Counters
  readonly ioCalls: number
  readonly steps: number
  readonly virtualMs: number
}

/** One seed in so many is run twice. */
const twiceShare = 100

export const noTally: Tally = {
  seeds: 0,
  failed: [],
  mended: [],
  counters: Object.fromEntries(counterNames.map((name) => [name, 0])) as Counters,
  ioCalls: 0,
  steps: 0,
  virtualMs: 0,
}

export function add(one: Tally, other: Tally): Tally {
  // What was kept of a long run may be from before there were all of them.
  const counters = counterNames.map((name) => [name, (one.counters[name] ?? 0) + (other.counters[name] ?? 0)])
  return {
    seeds: one.seeds + other.seeds,
    failed: [...one.failed, ...other.failed],
    mended: [...one.mended, ...other.mended],
    counters: Object.fromEntries(counters) as Counters,
    ioCalls: one.ioCalls + other.ioCalls,
    steps: one.steps + other.steps,
    virtualMs: one.virtualMs + other.virtualMs,
  }
}

export async function runSeed(seed: number): Promise<Tally> {
  const swarm = swarmOf(seed)
  const outcome = await simulateSwarm(swarm)
  const twice = seed % twiceShare === 0 ? await differenceOf(swarm, outcome) : []
  const violations = [...outcome.violations, ...twice]
  return {
    seeds: 1,
    failed: violations.length > 0 ? [{ seed, violations }] : [],
    mended: [],
    counters: outcome.counters,
    ioCalls: outcome.run.network.calls,
    steps: outcome.run.steps,
    virtualMs: outcome.run.virtualMs,
  }
}

/** A long run goes on: whether what had failed does so with the code as it is now. */
export async function reconsider(tally: Tally, run = runSeed): Promise<Tally> {
  const failed: Failed[] = []
  for (const { seed } of tally.failed) failed.push(...(await run(seed)).failed)
  const isMended = ({ seed }: Failed) => !failed.some((other) => other.seed === seed)
  return { ...tally, failed, mended: [...tally.mended, ...tally.failed.filter(isMended)] }
}

/** I19: the same seed is the same run. */
async function differenceOf(swarm: Swarm, outcome: Outcome): Promise<string[]> {
  const again = await simulateSwarm(swarm)
  const where = divergence(outcome.run.history, again.run.history)
  return where === undefined ? [] : [`I19 two runs of one seed part at ${where}`]
}

export function traceOf({ run }: Outcome): string[] {
  return [...run.history.happenings.map(lineOf), `hash ${run.history.hash}`]
}
