import { expect, it } from 'vitest'
import { createWorld } from '../../../test/fixtures.ts'
import { away } from '../../../test/noting.ts'
import { ask } from '../../../test/redrive/asking.ts'
import { begin, commitOf, hold, letter } from '../../testing/contracts/fixtures.ts'
import type { Store } from '../../index.ts'
import { Sweeper } from './sweeper.ts'

const hour = 3_600_000

it('logs an hour before what will be deleted, and deletes that', async () => {
  await using world = await createWorld()
  const { store, runtime } = world
  const lease = await begin(store.subscriptions)
  const held = ['a', 'b', 'c'].map((lane) => letter(lane, 1, 'parked'))
  const [first, second, third] = held.map(({ event }) => event.position) as [number, number, number]
  await store.subscriptions.commit({ ...commitOf(lease), held, lanes: held.map((one) => hold(one, 1)) })
  const resolve = (position: number, reason?: string) =>
    store.subscriptions.commit({
      ...commitOf(lease),
      at: runtime.clock.now(),
      letters: [{ change: 'resolved', position, by: 'engine', ...(reason !== undefined && { reason }) }],
    })
  await resolve(first)
  await resolve(second, 'handled manually')
  const lines: [object, string][] = []
  const info = (fields: object, message: string) => void lines.push([fields, message])
  const logger = { info, warn: () => undefined, error: () => undefined }
  const sweeper = new Sweeper(store, { subscriptions: ['s'], keptMs: 3 * hour }, runtime, logger)
  const running = sweeper.run()
  const left = async () => (await store.letters.list({ subscription: 's' })).map(({ event }) => event.position)

  await runtime.advance(3.5 * hour)
  expect(lines).toEqual([
    [{ subscription: 's', letters: 1 }, '1 letter will be deleted in an hour: resolved letters are kept for 3h'],
  ])
  expect(await left()).toEqual([first, second, third])
  await resolve(third)
  await runtime.advance(hour)
  expect(await left()).toEqual([second, third])
  expect(await store.audit.list(0, 10)).toMatchObject([
    {
      by: 'engine',
      act: 'letters.purge',
      target: 's',
      reason: 'resolved letters are kept for 3h',
      details: { letters: 1 },
    },
  ])
  await runtime.advance(4 * hour)
  expect(await left()).toEqual([second])
  sweeper.stop()
  await running
})

it('continues when the store fails, and logs that', async () => {
  await using world = await createWorld()
  const { runtime } = world
  const isAway = { letters: true }
  const isGone = () => Promise.reject(away())
  const letters = {
    ...world.store.letters,
    purgeable: (...args: Parameters<Store['letters']['purgeable']>) =>
      isAway.letters ? isGone() : world.store.letters.purgeable(...args),
  }
  const store = { ...world.store, letters, inbox: { ...world.store.inbox, sweep: isGone } }
  const warned: object[] = []
  const logger = { info: () => undefined, warn: (fields: object) => void warned.push(fields), error: () => undefined }
  const sweeper = new Sweeper(store, { subscriptions: ['s'], keptMs: 3 * hour }, runtime, logger)
  const running = sweeper.run()
  await runtime.advance(2 * hour)
  const error = away()
  expect(warned).toContainEqual({ error })
  expect(warned).toContainEqual({ subscription: 's', error })
  isAway.letters = false
  await runtime.advance(2 * hour)
  warned.length = 0
  await runtime.advance(2 * hour)
  expect(warned).not.toContainEqual({ subscription: 's', error })
  sweeper.stop()
  await running
})

it('takes redrives away that ended as long ago as letters are kept, or a timetable would fill the store', async () => {
  await using world = await createWorld()
  const { store, runtime } = world
  const lease = await begin(store.subscriptions)
  const held = [letter('a', 1, 'parked')]
  await store.subscriptions.commit({ ...commitOf(lease), held, lanes: held.map((one) => hold(one, 1)) })
  const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const sweeper = new Sweeper(store, { subscriptions: ['s'], keptMs: 3 * hour }, runtime, logger)
  const running = sweeper.run()
  for (let i = 0; i < 20; i++) {
    const id = await ask(store, 's')
    const deed = { by: 'ann', act: 'cancel', target: id, reason: 'x', at: runtime.clock.now(), details: {} }
    await store.redrives.cancel(id, deed)
    await runtime.advance(hour)
  }
  const left = await store.redrives.list({ limit: 100 })
  expect(left.length).toBeGreaterThanOrEqual(3)
  expect(left.length).toBeLessThanOrEqual(5)
  expect(await store.audit.list(0, 100)).toHaveLength(40)
  sweeper.stop()
  await running
})
