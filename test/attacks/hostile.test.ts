import { expect, it } from 'vitest'
import { defineHandler, definePolicy, failure, fixed, park, retry } from '../../src/index.ts'
import { bank, countsOf, createWorld } from '../fixtures.ts'
import { fill, run } from '../noting.ts'

const atOnce = definePolicy({ transient: retry({ attempts: 4, backoff: fixed('10ms') }).then(park), outage: false })

it('a handler that changes its event finds it as it was when it is tried again', async () => {
  await using world = await createWorld()
  await fill(world, ['a'], 2)
  const seen: number[] = []
  const handler = defineHandler('notify', {
    events: bank,
    failure: atOnce,
    on: {
      Credited: ({ data }, { attempt }) => {
        seen.push(data.amount)
        data.amount += 100
        if (attempt < 3) throw failure.transient('not now')
      },
    },
  })
  const engine = world.engine([handler])
  await run(world, engine, 10_000)
  expect(seen).toEqual([1, 1, 1, 2, 2, 2])
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2, held: 0 })
})

it('a lane does not hang because what tells repeats apart can not read what the handler left of the event', async () => {
  await using world = await createWorld()
  await fill(world, ['a', 'b'], 2)
  const handler = defineHandler('notify', {
    events: bank,
    failure: atOnce,
    dedupe: { by: ({ key, data }) => `${key} ${(data as { amount: number }).amount.toString()}` },
    on: {
      Credited: ({ data }, { attempt }) => {
        delete (data as { amount?: number }).amount
        if (attempt === 1) throw failure.transient('not now')
      },
    },
  })
  const engine = world.engine([handler])
  await run(world, engine, 10_000)
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 4, held: 0 })
  expect(await engine.verify('notify')).toMatchObject({ ok: true })
})
