import { HoldfastError } from '../../errors.ts'
import { createChance } from './chance.ts'
import { type Conditions, calm } from './conditions.ts'

/** The complete input of a run. The same plan gives exactly the same run. */
export interface Plan {
  readonly seed: number
  readonly store: StoreName
  readonly processes: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly beatMs: number
  readonly pageEvents: number
  readonly faultsMs: number
  /** How much of the events is appended. */
  readonly appends: number
  readonly conditions: Conditions
}

/** A store like a server with many connections, or like a file that processes share. */
export type StoreName = 'server' | 'file'

/** The faults, each with its conditions. */
export const faultConditions = {
  /** A process is killed with -9 and replaced. */
  kill: ['killEveryMs'],
  /** A process stands still, also for longer than its lease, and then continues. */
  pause: ['pauseEveryMs'],
  /** A call never arrives. */
  'lost-request': ['lostRequest'],
  /** A call has its effect, but its answer is lost. */
  'lost-answer': ['lostAnswer'],
  busy: ['busy'],
  slow: ['slow'],
  'lost-hint': ['lostHint'],
  /** The store is unavailable for a while. */
  outage: ['outageEveryMs'],
  /** The server crashes: uncommitted work is rolled back. */
  crash: ['crashEveryMs'],
  /** The services that handlers call are unavailable for a while. */
  illness: ['illnessEveryMs'],
  /** The wall clock of a process is set. */
  clock: ['clockEveryMs'],
  /** A process stops gracefully and is replaced. */
  deploy: ['deployEveryMs'],
  /** An operator pauses and resumes subscriptions, and redrives and discards parked lanes. */
  act: ['actEveryMs'],
} as const satisfies Record<string, readonly (keyof Conditions)[]>

export type Fault = keyof typeof faultConditions
export const allFaults = Object.keys(faultConditions) as readonly Fault[]

export function checkFaults(faults: readonly string[]): asserts faults is readonly Fault[] {
  if (!Array.isArray(faults))
    throw new HoldfastError('OPTION_INVALID', `faults is ${JSON.stringify(faults)}.`, {
      hint: `Give 'all', or a list of: ${allFaults.join(', ')}.`,
    })
  const unknown = faults.find((name) => !Object.hasOwn(faultConditions, name))
  if (unknown === undefined) return
  throw new HoldfastError('OPTION_INVALID', `${JSON.stringify(unknown)} is not a fault.`, {
    hint: `Faults: ${allFaults.join(', ')}.`,
  })
}

/**
 * Draws a plan from a seed. Most faults are left out of most runs, so that the remaining ones combine in ways that all faults
 * together would hide.
 */
export function drawPlan(seed: number, stores: readonly StoreName[], faults: readonly Fault[]): Plan {
  const chance = createChance(seed, 'plan')
  const sometimes = (share: number, value: () => number) => (chance.is(share) ? value() : 0)
  const between = (least: number, most: number) => least + chance.below(most - least + 1)
  const plan: Plan = {
    seed,
    store: chance.pick(stores),
    processes: between(1, 3),
    leaseMs: between(1, 6) * 1_000,
    pollMs: between(2, 10) * 100,
    beatMs: chance.pick([250, 1_000, 2_000]),
    pageEvents: chance.pick([1, 2, 3, 5, 10, 100]),
    faultsMs: between(8, 20) * 1_000,
    appends: Number.MAX_SAFE_INTEGER,
    conditions: {
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
      deployEveryMs: sometimes(0.3, () => between(10, 60) * 100),
      actEveryMs: sometimes(0.4, () => between(5, 40) * 100),
    },
  }
  return allFaults.filter((fault) => !faults.includes(fault)).reduce(without, plan)
}

/** The faults of a plan. */
export function faultsOf({ conditions }: Plan): readonly Fault[] {
  return allFaults.filter((fault) => faultConditions[fault].some((name) => conditions[name] > 0))
}

export function without(plan: Plan, fault: Fault): Plan {
  const off = Object.fromEntries(faultConditions[fault].map((name) => [name, calm[name]]))
  return { ...plan, conditions: { ...plan.conditions, ...off } }
}
