import { expect, it } from 'vitest'
import { Suspicion } from '../../src/engine/crash/suspicion.ts'
import { defineHandler, definePolicy, exponential, failure, fixed, park, retry } from '../../src/index.ts'
import { bank, countsOf, createWorld, heldOf, type World } from '../fixtures.ts'
import { createMortal } from '../mortal.ts'
import { fill, keysOf, run } from '../noting.ts'

const policy = definePolicy({
  transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park),
  outage: { backoff: exponential('1s', { cap: '30s' }) },
})

function handling(act: (key: string) => unknown) {
  return defineHandler('notify', {
    events: bank,
    failure: policy,
    timeout: '1h',
    on: { Credited: ({ key }) => act(key) },
  })
}

/** A process that does what `act` says and is killed after a while, whatever it was doing. */
async function lifeOf(world: World, ms: number, act: (key: string) => unknown): Promise<void> {
  const life = createMortal(world, [handling(act)])
  await life.engine.start()
  await world.runtime.advance(ms)
  life.die()
  await world.runtime.advance(20_000)
}

it('after deaths, events that fail alike do not keep the others standing still', async () => {
  await using world = await createWorld()
  await fill(world, [...keysOf(3, 'bad'), ...keysOf(5)], 1)
  for (let i = 0; i < 2; i++) await lifeOf(world, 20_000, () => new Promise(() => undefined))
  const done: string[] = []
  const engine = world.engine([
    handling((key) => {
      if (key.startsWith('bad')) throw failure.transient('no')
      done.push(key)
    }),
  ])
  await run(world, engine, 600_000)
  expect(done).toHaveLength(5)
  expect(await engine.verify('notify')).toMatchObject({ ok: true })
})

it('an event that stepped aside in an outage is not to blame for the next death', async () => {
  await using world = await createWorld()
  await fill(world, keysOf(4), 1)
  const isDown = () => {
    throw failure.transient('no answer')
  }
  for (const ms of [1_000, 5_000, 100_000, 100_000, 100_000]) await lifeOf(world, ms, isDown)
  const engine = world.engine([handling(() => undefined)])
  await run(world, engine, 600_000)
  expect(await heldOf(engine, 'notify')).toEqual([])
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 4, held: 0 })
})

it('an event whose trial is over is on record again when it is tried again', () => {
  const suspicion = new Suspicion([{ position: 0, instance: 'dead' }], true, 'living', 3)
  suspicion.committed({ trial: { position: 7, instance: 'living' } })
  expect(suspicion.trialOf(7)).toBeUndefined()
  expect(suspicion.over(7)).toEqual([7])
  expect(suspicion.trialOf(7)).toEqual({ position: 7, instance: 'living' })
})
