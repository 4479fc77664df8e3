import { expect, it } from 'vitest'
import { definePolicy, failure, fixed, park, retry } from '../../src/index.ts'
import { countsOf, createWorld } from '../fixtures.ts'
import { fill, keysOf, noting, run } from '../noting.ts'

it.for(['20ms', '1s', '25s'] as const)(
  'no more retries are made in any stretch of time than the budget has, with a backoff of %s',
  async (delay) => {
    await using world = await createWorld()
    await fill(world, keysOf(50), 1)
    const { handler, calls } = noting(
      world,
      ({ ctx }) => {
        if (ctx.attempt === 1) throw failure.transient('not now')
      },
      {
        concurrency: 50,
        failure: definePolicy({
          transient: retry({ attempts: 3, backoff: fixed(delay) }).then(park),
          outage: false,
          budget: { retries: 5, per: '10s' },
        }),
      },
    )
    const engine = world.engine([handler])
    await run(world, engine, 200_000)
    const times = calls.filter(({ ctx }) => ctx.attempt > 1).map(({ at }) => at)
    expect(times).toHaveLength(50)
    for (const time of times)
      expect(times.filter((other) => other >= time && other < time + 9_900).length).toBeLessThanOrEqual(5)
    expect(times.at(-1)).toBeLessThan(130_000)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 50, held: 0 })
  },
)
