import type { CrashPoint } from '../../src/testing/simulation/network.ts'
import type { Scenario, StoreName } from './scene.ts'
import { scenarios } from './scenarios/index.ts'
import { differenceOf } from './state.ts'
import { type Finished, play } from './world.ts'

/** A scenario in a store. The same seed is the same run, to the letter, up to where somebody dies. */
export interface Course {
  readonly scenario: string
  readonly store: StoreName
  readonly seed: number
}

export interface Failed extends Course {
  /** Who died, as in `7 before, 9 after`. */
  readonly points: string
  readonly violations: readonly string[]
}

const baselines = new Map<string, Promise<Finished>>()

/** The run in which nobody dies but who has to. */
export function baselineOf({ scenario, store, seed }: Course): Promise<Finished> {
  const name = JSON.stringify([scenario, store, seed])
  const known = baselines.get(name) ?? play(scenarioOf(scenario), store, seed)
  baselines.set(name, known)
  return known
}

export function coursesOf(seed: number, chosen: readonly Scenario[] = scenarios): Course[] {
  return chosen.flatMap(({ name, stores = ['server', 'file'] }) =>
    stores.map((store): Course => ({ scenario: name, store, seed })),
  )
}

/** Without anybody dying: every check holds, and the run comes to what it is about. */
export async function checkBaseline(course: Course): Promise<Failed | undefined> {
  const { violations, shows } = await baselineOf(course)
  const all = shows ? violations : [...violations, 'it did not come to what it is about']
  return all.length > 0 ? { ...course, points: '', violations: all } : undefined
}

/** One run in which somebody dies, and how many calls it had. What is left in the end must be what is left without that. */
export async function tryPoints(
  course: Course,
  points: readonly CrashPoint[],
): Promise<{ readonly calls: number; readonly failed: Failed | undefined }> {
  const { state } = await baselineOf(course)
  const finished = await play(scenarioOf(course.scenario), course.store, course.seed, points)
  const violations = [...finished.violations, ...differenceOf(state, finished.state)]
  const shown = points.map(({ call, when }) => `${call} ${when}`).join(', ')
  const failed = violations.length > 0 ? { ...course, points: shown, violations } : undefined
  return { calls: finished.calls, failed }
}

export function pointsOf(calls: number, from = 1): CrashPoint[] {
  return Array.from({ length: Math.max(0, calls - from + 1) }, (_, i) => from + i).flatMap((call) =>
    (['before', 'after'] as const).map((when) => ({ call, when })),
  )
}

function scenarioOf(name: string): Scenario {
  const found = scenarios.find((one) => one.name === name)
  if (!found) throw new Error(`There is no scenario ${JSON.stringify(name)}.`)
  return found
}
