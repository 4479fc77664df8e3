// npm run -s crashpoints -- --json                                  every call of every scenario, before and after; pairs for some minutes
// npm run -s crashpoints -- --all --json                            the same, and all pairs of the ten shortest
// npm run -s crashpoints -- --scenario redriven --store file        some of them
// npm run -s crashpoints -- --real --store sqlite --json            real processes, killed at every write (needs strace)
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { startServer } from '../postgres/server.ts'
import { type RealOptions, runReal, whyNot } from './real/run.ts'
import { storeNames } from './scene.ts'
import { scenarios } from './scenarios/index.ts'
import { type Course, coursesOf, type Failed, pointsOf } from './sweep.ts'
import { Crew } from './crew.ts'

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    seed: { type: 'string', default: process.env.HOLDFAST_SEED ?? '1' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    /** For how many seconds pairs may be begun, beyond those of the three shortest; with 0 there are none. */
    budget: { type: 'string', default: '120' },
    scenario: { type: 'string', default: '' },
    store: { type: 'string' },
    real: { type: 'boolean', default: false },
    /** Of real processes, how many points, drawn by the seed; all of them unless said. */
    most: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const [seed, jobs, budget] = [values.seed, values.jobs, values.budget].map(Number) as [number, number, number]
if (![seed, jobs, budget + 1].every((number) => Number.isSafeInteger(number) && number >= 1)) {
  console.error('Give --seed and --jobs as whole numbers from 1, and --budget as one from 0.')
  process.exit(2)
}
const mostPairs = 10
const leastPairs = 3
/** So few that the last ones are not waited for, and so many that it is worth the way. */
const chunk = 20

console.error(`seed ${seed}`)
const result = values.real ? await real() : await simulated()
console.log(values.json ? JSON.stringify(result) : result)
process.exitCode = result.violations === 0 ? 0 : 1

async function real() {
  const { store = 'sqlite' } = values
  const most = values.most === undefined ? Number.POSITIVE_INFINITY : Number(values.most)
  if ((store !== 'sqlite' && store !== 'postgres') || !(most >= 1)) {
    console.error('Give --store sqlite or postgres, and --most as a number from 1.')
    process.exit(2)
  }
  const skipped = whyNot()
  if (skipped !== undefined) return { ok: true, store, seed, skipped, points: 0, violations: 0 }
  const onPoint = (done: number, of: number) => {
    if (done % 20 === 0) console.error(`${done} of ${of} points`)
  }
  const options: RealOptions = { store, seed, most, jobs, onPoint }
  if (store === 'sqlite') return runReal(options)
  await using server = await startServer({ inMemory: true })
  return await runReal({ ...options, createDatabase: (name) => server.createDatabase(name) })
}

async function simulated() {
  const begun = performance.now()
  const chosen = scenarios.filter(({ name }) => name.includes(values.scenario))
  const courses = coursesOf(seed, chosen).filter(({ store }) => values.store === undefined || store === values.store)
  if (courses.length === 0) {
    console.error(`There is no such scenario, or no such store; the stores are ${storeNames.join(' and ')}.`)
    process.exit(2)
  }
  const failed: Failed[] = []
  const crew = new Crew(jobs)
  try {
    const counted = await crew.all(courses.map((course) => ({ kind: 'baseline' as const, course })))
    for (const one of counted) failed.push(...one.failed)
    const lengths = new Map<Course, number>(courses.map((course, i) => [course, counted[i]?.calls ?? 0]))
    console.error(`${courses.length} runs of ${chosen.length} scenarios, with ${sum(lengths.values())} calls`)
    const singles = courses.flatMap((course) => {
      const points = pointsOf(lengths.get(course) ?? 0)
      return chunksOf(points).map((some) => ({ kind: 'points' as const, course, points: some }))
    })
    const done = await crew.all(singles)
    for (const one of done) failed.push(...one.failed)
    const points = sum(done.map(({ runs }) => runs))
    console.error(`${points} points, ${failed.length} violations`)
    const paired = await pairs(crew, lengths, failed)
    return {
      ok: failed.length === 0,
      seed,
      scenarios: chosen.length,
      points,
      pairs: paired.runs,
      /** The scenarios of which all pairs were tried. */
      pairedScenarios: paired.names,
      violations: failed.length,
      failed: failed.slice(0, 10),
      seconds: Math.round(performance.now() - begun) / 1_000,
    }
  } finally {
    crew.dismiss()
  }
}

/** The shortest first, and of each all pairs or none. */
async function pairs(crew: Crew, lengths: ReadonlyMap<Course, number>, failed: Failed[]) {
  const until = performance.now() + budget * 1_000
  const byName = Map.groupBy(lengths.keys(), ({ scenario }) => scenario)
  const lengthOf = (name: string) => sum((byName.get(name) ?? []).map((course) => lengths.get(course) ?? 0))
  const shortest = [...byName.keys()].toSorted((a, b) => lengthOf(a) - lengthOf(b)).slice(0, mostPairs)
  const names: string[] = []
  let runs = 0
  for (const name of budget > 0 || values.all ? shortest : []) {
    if (!values.all && names.length >= leastPairs && performance.now() > until) break
    const firsts = (byName.get(name) ?? []).flatMap((course) =>
      pointsOf(lengths.get(course) ?? 0).map((first) => ({ kind: 'pairs' as const, course, first })),
    )
    const done = await crew.all(firsts)
    for (const one of done) failed.push(...one.failed)
    runs += sum(done.map((one) => one.runs))
    names.push(name)
    console.error(`${runs} pairs, with those of "${name}"; ${failed.length} violations`)
  }
  return { runs, names }
}

function chunksOf<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / chunk) }, (_, i) => all.slice(i * chunk, (i + 1) * chunk))
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((total, one) => total + one, 0)
}
