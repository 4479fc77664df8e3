import { median, type Report, rounded, type Settings } from '../benchmark.ts'
import { machine, meets, type Targets, verdict } from '../target.ts'
import { failingLaneOneIn, loadShare } from './open-load.ts'
import type { Cost, Rate, Sizes, Waits } from './sides.ts'

/** What one round found: of each question, the side it is compared with and the side it is about. */
export interface Round {
  readonly ideal: Rate
  readonly io: Rate
  readonly healthy: Waits
  readonly failing: Waits
  readonly flowing: Cost
  readonly held: Cost
}

export interface Findings extends Sizes {
  readonly rounds: readonly Round[]
  readonly facts: object
}

const targets: Targets = {
  ratioToIdeal: { atLeast: 0.9 },
  failingP99Ratio: { atMost: 2 },
  heldCostRatio: { atMost: 1.2 },
}

export function summarise(settings: Settings, { rounds, heldLanes, loadEvents, costEvents, facts }: Findings): Report {
  const { store, events, keys } = settings
  // Within a round, and then the median, as everywhere here.
  const over = (of: (round: Round) => number) => rounded(median(rounds.map(of)))
  const measured = {
    ratioToIdeal: over(({ io, ideal }) => io.perSecond / ideal.perSecond),
    failingP99Ratio: over(({ failing, healthy }) => failing.p99Ms / healthy.p99Ms),
    heldCostRatio: over(({ held, flowing }) => held.microsPerEvent / flowing.microsPerEvent),
  }
  const ok = meets(targets, measured)
  const fields = {
    benchmark: 'handlers',
    store,
    events,
    keys,
    rounds: rounds.length,
    ...measured,
    targets,
    ok,
    eventsPerSecond: over(({ io }) => io.perSecond),
    idealPerSecond: over(({ ideal }) => ideal.perSecond),
    healthyP99Ms: over(({ healthy }) => healthy.p99Ms),
    failingP99Ms: over(({ failing }) => failing.p99Ms),
    failedAttempts: over(({ failing }) => failing.failedAttempts),
    flowingMicrosPerEvent: over(({ flowing }) => flowing.microsPerEvent),
    heldMicrosPerEvent: over(({ held }) => held.microsPerEvent),
    heldCpuRatio: over(({ held, flowing }) => held.cpuMicrosPerEvent / flowing.cpuMicrosPerEvent),
    heldLanes,
    loadEvents,
    costEvents,
    loadShare,
    failingLaneOneIn,
    perRound: rounds,
    ...facts,
    ...machine(),
  }
  const text = [
    '',
    `${fields.eventsPerSecond} events/s of ${fields.idealPerSecond}; p99 ${fields.healthyP99Ms} ms, beside failing lanes ${fields.failingP99Ms} ms`,
    verdict('of the ideal', measured.ratioToIdeal, targets['ratioToIdeal']),
    verdict('p99, failing', measured.failingP99Ratio, targets['failingP99Ratio']),
    verdict('cost, held', measured.heldCostRatio, targets['heldCostRatio']),
  ]
  return { ok, fields, text: text.join('\n') }
}
