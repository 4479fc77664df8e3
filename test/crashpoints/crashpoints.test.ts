import { describe, expect, it } from 'vitest'
import { createChance } from '../../src/testing/simulation/chance.ts'
import { scenarios } from './scenarios/index.ts'
import { baselineOf, checkBaseline, coursesOf, pointsOf, tryPoints } from './sweep.ts'

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 32)
/** One point in so many, drawn by the seed, of the very runs of which `npm run -s crashpoints` tries all. */
const share = 20
const courses = coursesOf(1)

describe(`whoever dies at any call, everything comes right (HOLDFAST_SEED=${seed})`, () => {
  it('has a name for each scenario', () => {
    expect(scenarios.length).toBeGreaterThanOrEqual(30)
    expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length)
  })

  // However many points of one there are by chance, and however slow the machine is.
  it.for(courses)('$scenario ($store)', { timeout: 120_000 }, async (course) => {
    expect(await checkBaseline(course)).toBeUndefined()
    const { calls } = await baselineOf(course)
    const chance = createChance(seed, `${course.scenario} ${course.store}`)
    for (const point of pointsOf(calls).filter(() => chance.below(share) === 0))
      expect((await tryPoints(course, [point])).failed).toBeUndefined()
  })
})
