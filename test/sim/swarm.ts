import { type Chance, createChance } from '../../src/testing/simulation/chance.ts'
import { type Conditions, calm } from '../../src/testing/simulation/conditions.ts'
import type { Flaw, StepsSettings } from './steps.ts'

export interface Plan {
  readonly seed: number
  readonly store: 'sqlite'
  readonly processes: number
  readonly lease: number
  readonly poll: number
  readonly pageEvents: number
  readonly conditions: Conditions
  readonly steps: StepsSettings
  readonly faultsMs: number
}

const flaws: readonly Flaw[] = ['fold', 'permanent', 'transient', 'deadly', 'hangs']

/**
 * What a seed means. Most faults are left out of most runs, so that those that are there come together in ways in which they would be drowned by the
 * rest.
 */
export function planOf(seed: number): Plan {
  const chance = createChance(seed, 'swarm')
  const sometimes = (share: number, value: () => number) => (chance.is(share) ? value() : 0)
  const between = (least: number, most: number) => least + chance.below(most - least + 1)
  const faultsMs = between(8, 20) * 1_000
  return {
    seed,
    store: 'sqlite',
    processes: between(1, 3),
    lease: between(1, 6) * 1_000,
    poll: between(2, 10) * 100,
    pageEvents: chance.pick([1, 2, 3, 5, 10, 100]),
    conditions: {
      ...calm,
      latencyMs: chance.pick([1, 5, 30]),
      slow: sometimes(0.4, () => chance.pick([0.01, 0.1])),
      slowMs: between(1, 40) * 100,
      lostRequest: sometimes(0.4, () => chance.pick([0.005, 0.05])),
      lostAnswer: sometimes(0.5, () => chance.pick([0.005, 0.05, 0.2])),
      busy: sometimes(0.3, () => chance.pick([0.01, 0.1])),
      lostHint: sometimes(0.4, () => chance.pick([0.1, 0.9])),
      killEveryMs: sometimes(0.6, () => between(5, 50) * 100),
      goneMs: between(1, 50) * 100,
      pauseEveryMs: sometimes(0.4, () => between(10, 60) * 100),
      pauseMs: between(10, 120) * 100,
      outageEveryMs: sometimes(0.3, () => between(20, 80) * 100),
      outageMs: between(1, 60) * 100,
      crashEveryMs: sometimes(0.3, () => between(20, 100) * 100),
      illnessEveryMs: sometimes(0.5, () => between(10, 60) * 100),
      illnessMs: between(1, 80) * 100,
      clockEveryMs: sometimes(0.3, () => between(10, 60) * 100),
      clockMs: chance.pick([1_000, 60_000, 86_400_000]),
    },
    steps: stepsOf(chance, between),
    faultsMs,
  }
}

function stepsOf(chance: Chance, between: (least: number, most: number) => number): StepsSettings {
  return {
    keys: between(1, 8),
    events: between(10, 60),
    partitions: between(1, 3),
    concurrency: chance.pick([1, 2, 8]),
    attempts: between(1, 4),
    breaker: chance.is(0.4),
    flaws: flaws.filter(() => chance.is(0.4)),
    flawed: chance.pick([0.02, 0.1, 0.3]),
  }
}
