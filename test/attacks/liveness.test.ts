import { describe, expect, it } from 'vitest'
import { definePolicy, failure, fixed, park, retry } from '../../src/index.ts'
import { countsOf, createWorld, heldOf } from '../fixtures.ts'
import { fill, keysOf, noting, run } from '../noting.ts'

const quick = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('1s') }).then(park), outage: false })

describe('a lane that is due', () => {
  it('is not kept waiting by a backlog, and keeps its order', async () => {
    await using world = await createWorld()
    await fill(world, ['bad', ...keysOf(20)], 50)
    const { handler, calls, callsOf } = noting(
      world,
      async ({ key, amount, ctx }) => {
        await world.runtime.timers.sleep(100)
        if (key === 'bad' && amount === 1 && ctx.attempt === 1) throw failure.transient('not now')
      },
      { concurrency: 2, failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 120_000)
    expect(calls.find(({ key, ctx }) => key === 'bad' && ctx.attempt === 2)?.at).toBeLessThan(4_000)
    expect(callsOf('bad')).toEqual([1, ...Array.from({ length: 50 }, (_, i) => i + 1)])
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 1_050 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })
})
