import { type Chance, createChance } from '../../src/testing/simulation/chance.ts'
import { allFaults, drawPlan, type Plan } from '../../src/testing/simulation/plan.ts'
import { simpler } from '../../src/testing/simulation/shrink.ts'
import type { Flaw, StepsSettings } from './steps.ts'

/** What one seed of the swarm means: the world, and the app in it. */
export interface Swarm {
  readonly plan: Plan
  readonly steps: StepsSettings
}

/** The file is the real SQLite, and ten times slower. */
const stores = [...Array.from({ length: 199 }, () => 'server' as const), 'file' as const]
const flaws: readonly Flaw[] = ['fold', 'sql', 'permanent', 'transient', 'deadly', 'hangs', 'needless', 'fatal']

export function swarmOf(seed: number): Swarm {
  const chance = createChance(seed, 'steps')
  return meeting({ plan: drawPlan(seed, stores, allFaults), steps: stepsOf(chance) }, createChance(seed, 'meeting'))
}

/** Other versions matter where people also act, and where there is something to decide about that they have to come to as well. */
function meeting({ plan, steps }: Swarm, chance: Chance): Swarm {
  const [hasActs, hasLetters, actEveryMs] = [chance.is(0.5), chance.is(0.5), (5 + chance.below(36)) * 100]
  if (!steps.rebuilds) return { plan, steps }
  const { conditions } = plan
  const isQuiet = hasActs && conditions.actEveryMs === 0
  const isFlawless = hasLetters && !steps.flaws.includes('fold')
  return {
    plan: isQuiet ? { ...plan, conditions: { ...conditions, actEveryMs } } : plan,
    steps: isFlawless ? { ...steps, flaws: [...steps.flaws, 'fold'] } : steps,
  }
}

export function simplerSwarms({ plan, steps }: Swarm): Swarm[] {
  const { partitions, concurrency } = steps
  const lessSteps: StepsSettings[] = [
    ...steps.flaws.map((flaw) => ({ ...steps, flaws: steps.flaws.filter((other) => other !== flaw) })),
    ...(steps.breaker ? [{ ...steps, breaker: false }] : []),
    ...(steps.endpoints > 0 ? [{ ...steps, endpoints: 0 }] : []),
    ...(steps.arrivals ? [{ ...steps, arrivals: false }] : []),
    ...(steps.rebuilds ? [{ ...steps, rebuilds: false }] : []),
    ...(steps.kept > 0 ? [{ ...steps, kept: 0 }] : []),
    ...(steps.silences ? [{ ...steps, silences: false }] : []),
    ...(partitions > 1 ? [{ ...steps, partitions: partitions - 1 }] : []),
    ...(concurrency > 1 ? [{ ...steps, concurrency: 1 }] : []),
    ...(steps.stops === 'never' ? [] : [{ ...steps, stops: 'never' as const }]),
    ...(steps.decisions ? [{ ...steps, decisions: false }] : []),
    ...(steps.corrects ? [{ ...steps, corrects: false }] : []),
    ...(steps.debates ? [{ ...steps, debates: false }] : []),
    ...(steps.operates ? [{ ...steps, operates: false }] : []),
    ...(steps.settles ? [{ ...steps, settles: false }] : []),
    ...(steps.dedupe ? [{ ...steps, dedupe: false }] : []),
    ...(steps.gathers ? [{ ...steps, gathers: false }] : []),
    ...(steps.order === 'partition' ? [{ ...steps, order: 'key' as const }] : []),
  ]
  const known = { ...plan, appends: Math.min(plan.appends, steps.events) }
  return [
    ...simpler(known).map((one) => ({ plan: one, steps })),
    ...lessSteps.map((one) => ({ plan: known, steps: one })),
  ]
}

function stepsOf(chance: Chance): StepsSettings {
  const between = (least: number, most: number) => least + chance.below(most - least + 1)
  const drawn = {
    keys: between(1, 8),
    events: between(10, 60),
    partitions: between(1, 3),
    concurrency: chance.pick([1, 2, 8]),
    attempts: between(1, 4),
    breaker: chance.is(0.4),
    arrivals: chance.is(0.4),
    flaws: flaws.filter(() => chance.is(0.4)),
    flawed: chance.pick([0.02, 0.1, 0.3]),
    endpoints: chance.pick([0, 0, 2, 4]),
    kept: chance.pick([0, 0, 5, 15]),
    rebuilds: chance.is(0.5),
    dedupe: chance.is(0.3),
    order: chance.is(0.2) ? 'partition' : 'key',
    decisions: chance.is(0.5),
    stops: chance.pick(['never', 'never', 'never', 'block', 'pause'] as const),
    corrects: chance.is(0.5),
    settles: chance.is(0.5),
    debates: chance.is(0.5),
  } satisfies StepsSettings
  // Where there are few tries, one that fails now and then is parked for that before it has killed often.
  const fickle = chance.is(0.2) && ({ flaws: [...drawn.flaws, 'fickle'], attempts: chance.pick([3, 12]) } as const)
  const others = { ...drawn, ...fickle, silences: chance.is(0.3), operates: chance.is(0.5) }
  if (!chance.is(0.3)) return others
  return { ...others, gathers: true, flaws: chance.is(0.7) ? [...others.flaws, 'unreadable'] : others.flaws }
}
