import { createLog } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, createWorld, credited } from '../fixtures.ts'

it('tells the watchdog what runs, before it does', async () => {
  await using world = await createWorld()
  const begun: string[] = []
  const engine = world.engine(undefined, { watchdog: { began: (what) => void begun.push(what) }, page: { events: 2 } })
  await createLog({ store: world.store, events: bank }).append('bob', [credited(1), credited(2), credited(3)])
  await world.settle(engine)
  expect(begun).toEqual(['balances, 2 events from position 1 on', 'balances, 1 events from position 3 on'])
})
