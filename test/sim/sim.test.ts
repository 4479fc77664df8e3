import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { divergence } from '../../src/testing/simulation/history.ts'
import { drawPlan } from '../../src/testing/simulation/plan.ts'
import { shrink } from '../../src/testing/simulation/shrink.ts'
import { simulateSwarm } from './run.ts'
import { type Swarm, simplerSwarms, swarmOf } from './swarm.ts'
import { noTally, reconsider, runSeed } from './tally.ts'

// The short form of `npm run sim`. HOLDFAST_SEED for other seeds.
const from = Number(process.env.HOLDFAST_SEED ?? 1)
const patience = { timeout: 120_000 }
const found = new URL('found/', import.meta.url)

describe('the simulated world', () => {
  it('comes right in the end, whatever goes wrong', patience, async () => {
    for (let seed = from; seed < from + 60; seed++) expect(await runSeed(seed)).toMatchObject({ failed: [] })
  })

  it.for(readdirSync(found))('does what it once did not: %s', patience, async (name) => {
    const swarm = JSON.parse(readFileSync(new URL(name, found), 'utf8')) as Swarm
    expect((await simulateSwarm(swarm)).violations).toEqual([])
  })

  it('is the same for the same seed, to the letter, and another one for another', patience, async () => {
    const [one, again, other] = [
      await simulateSwarm(swarmOf(3)),
      await simulateSwarm(swarmOf(3)),
      await simulateSwarm(swarmOf(4)),
    ]
    expect(divergence(one.run.history, again.run.history)).toBeUndefined()
    expect(one.run.history.hash).toBe(again.run.history.hash)
    expect(divergence(one.run.history, other.run.history)).toMatch(/^step \d+: /)
    expect(one.run.history.hash).not.toBe(other.run.history.hash)
  })
})

describe('a long run that goes on', () => {
  it('runs again what had failed, and tells what was mended since from what was not', async () => {
    const failed = [3, 4, 5].map((seed) => ({ seed, violations: [`I1 of ${seed}`] }))
    const still = { seed: 4, violations: ['I2 of 4'] }
    const run = async (seed: number) => ({ ...noTally, seeds: 1, failed: seed === 4 ? [still] : [] })
    const before = { ...noTally, seeds: 1_000, failed, mended: [{ seed: 1, violations: [] }] }
    expect(await reconsider(before, run)).toEqual({
      ...before,
      failed: [still],
      mended: [...before.mended, failed[0], failed[2]],
    })
  })
})

describe('a plan', () => {
  it('is made simpler for as long as it fails', async () => {
    const swarm: Swarm = { ...swarmOf(7), plan: drawPlan(7, ['server'], ['kill', 'pause', 'slow']) }
    const steps = { ...swarm.steps, events: 40 }
    const kept = {
      ...swarm,
      steps,
      plan: { ...swarm.plan, appends: 40, conditions: { ...swarm.plan.conditions, killEveryMs: 500, slow: 0.1 } },
    }
    // It needs kills, and five appends.
    const fails = async ({ plan }: Swarm) => plan.conditions.killEveryMs > 0 && plan.appends >= 5
    const { plan } = await shrink(kept, simplerSwarms, fails)
    expect(plan).toMatchObject({ appends: 5, processes: 1, conditions: { slow: 0, killEveryMs: 500 } })
  })
})
