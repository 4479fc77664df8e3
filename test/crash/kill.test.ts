import { expect, test } from 'vitest'
import { runKills } from './kills.ts'

// `test/crash/main.ts --kills 2000` is the long form. HOLDFAST_KILLS for another number here, HOLDFAST_SEED to see the same moments again (as far as the machine repeats itself).
const kills = Number(process.env.HOLDFAST_KILLS ?? 60)
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 32)

test(`${kills} kills with -9 lose nothing and repeat nothing`, { timeout: 120_000 + kills * 1_000 }, async () => {
  console.log(`seed ${seed}`)
  const result = await runKills(seed, kills)
  console.log(JSON.stringify(result))
  expect(result.problems).toEqual([])

  // None of this would mean anything if the kills had come at the wrong time, or nothing had gone wrong.
  expect(result.kills).toBe(kills)
  expect(result.killsWhileStarting).toBeGreaterThan(kills * 0.05)
  expect(result.killsWhileWorking).toBeGreaterThan(kills * 0.5)
  expect(result.killsInsideCommit).toBeGreaterThan(kills * 0.02)
  expect(result.killsWithProgress).toBeGreaterThan(kills * 0.2)
  expect(result.heldLanes).toBeGreaterThan(0)
  expect(result.healedEvents).toBeGreaterThan(0)
  expect(result.repeatedEvents).toBeGreaterThan(0)
})
