import { describe, expect, it } from 'vitest'
import { createWorld, heldOf } from '../fixtures.ts'
import { fill, leaseMs, livesOf } from '../lives.ts'

const kills = 12

/** Numbers from 0 to 1 that are the same in every run. */
function chanceOf(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** How many healthy events are parked, of a process that is killed again and again after a random time. */
async function blamed(seed: number, attemptMs: number, meanLifeMs: number): Promise<number> {
  await using world = await createWorld()
  const keys = Array.from({ length: 10 }, (_, i) => `key-${i}`)
  await fill(world, keys, 6)
  const { live } = livesOf(world, () => world.runtime.timers.sleep(attemptMs))
  const chance = chanceOf(seed)
  for (let i = 0; i < kills; i++) {
    const lifeMs = Math.ceil(-Math.log(1 - chance()) * meanLifeMs)
    // The store takes as long to find that the last one is dead.
    ;(await live((i === 0 ? 0 : leaseMs) + lifeMs)).die()
  }
  const last = await live(leaseMs + 1)
  const letters = await heldOf(last.engine, 'notify')
  last.die()
  return letters.filter(({ status }) => status === 'parked').length
}

describe('a process that is killed from outside again and again', () => {
  // Of 360 kills, 15 and 105 parked an event when the third death was enough to blame one.
  it.each([
    ['short attempts', { attemptMs: 200, meanLifeMs: 1_000, runs: 5, most: 0 }],
    ['long attempts', { attemptMs: 15_000, meanLifeMs: 20_000, runs: 2, most: 3 }],
  ] as const)('has few healthy events parked: %s', async (_, { attemptMs, meanLifeMs, runs, most }) => {
    let parked = 0
    for (let seed = 1; seed <= runs; seed++) parked += await blamed(seed, attemptMs, meanLifeMs)
    expect(parked).toBeLessThanOrEqual(most)
  })
})
