import { expect, it } from 'vitest'
import { failure } from '../../src/index.ts'
import { countsOf, createWorld } from '../fixtures.ts'
import { fill, heard, noting, run } from '../noting.ts'

it('a partition that is kept in order waits longer each time it fails for good, and says so once', async () => {
  await using world = await createWorld()
  await fill(world, ['a', 'b'], 1)
  let isBad = true
  const { handler, calls } = noting(
    world,
    () => {
      if (isBad) throw failure.permanent('no')
    },
    { order: 'partition' },
  )
  const engine = world.engine([handler])
  const told = heard(engine, 'subscription.blocked', 'subscription.resumed')
  await run(world, engine, 600_000)
  expect(calls.length).toBeLessThan(20)
  expect(told.map(({ name }) => name)).toEqual(['subscription.blocked'])
  isBad = false
  await world.runtime.advance(120_000)
  expect(told.map(({ name }) => name)).toEqual(['subscription.blocked', 'subscription.resumed'])
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2, held: 0 })
})
