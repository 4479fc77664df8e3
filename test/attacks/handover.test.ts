import { expect, it } from 'vitest'
import { defineHandler, defineSubscription } from '../../src/index.ts'
import { bank, countsOf, createWorld, type World } from '../fixtures.ts'
import { faulty, fill, keysOf, run } from '../noting.ts'

// Attempts that take longer than the lease (10 s) while a process gives its partitions back.

function slow(world: World, calls: string[], who: string) {
  return defineHandler('notify', {
    events: bank,
    timeout: '1m',
    on: {
      Credited: async ({ key }) => {
        calls.push(`${who} ${key}`)
        await world.runtime.timers.sleep(25_000)
      },
    },
  })
}

it('nobody does again what a process that stops is still doing', async () => {
  await using world = await createWorld()
  await fill(world, ['a'], 1)
  const calls: string[] = []
  const one = world.engine([slow(world, calls, 'one')])
  await run(world, one, 1_000)
  const two = world.engine([slow(world, calls, 'two')])
  await two.start()
  const stopped = one.stop({ timeout: '1m' })
  await world.runtime.advance(60_000)
  expect(await stopped).toEqual({ forced: false })
  await world.runtime.advance(60_000)
  expect(calls).toEqual(['one a'])
  expect(await countsOf(two, 'notify')).toMatchObject({ applied: 1 })
})

it('nobody does again what is under way in a partition that changes hands', async () => {
  await using world = await createWorld()
  await fill(world, keysOf(12), 1)
  const calls: string[] = []
  const share = (who: string) => [defineSubscription(slow(world, calls, who), { partitions: 4 })]
  await run(world, world.engine(share('one')), 1_000)
  const two = world.engine(share('two'))
  await two.start()
  await world.runtime.advance(180_000)
  expect(calls).toHaveLength(12)
  expect(await countsOf(two, 'notify')).toMatchObject({ applied: 12 })
  expect(await two.verify('notify')).toMatchObject({ ok: true })
})

it('what was done is written down by a process that stops, though the store fails it at first', async () => {
  await using world = await createWorld()
  await fill(world, ['a', 'b'], 1)
  const calls: string[] = []
  let isDown = false
  const store = faulty(world.store, () => (isDown ? 'before' : undefined))
  const one = world.engine([slow(world, calls, 'one')], { store })
  await run(world, one, 1_000)
  isDown = true
  const stopped = one.stop({ timeout: '1m' })
  await world.runtime.advance(28_000)
  isDown = false
  await world.runtime.advance(10_000)
  expect(await stopped).toEqual({ forced: false })
  const two = world.engine([slow(world, calls, 'two')])
  await run(world, two, 60_000)
  expect(calls).toEqual(['one a', 'one b'])
  expect(await countsOf(two, 'notify')).toMatchObject({ applied: 2 })
})
