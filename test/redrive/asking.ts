import type { Engine, Store } from 'holdfast'
import type { Redrive, RedriveRequest } from '../../src/redrive/redrive.ts'
import type { World } from '../fixtures.ts'

let asked = 0

/** Asks for a redrive as a person would, and gives its id. */
export async function ask(
  store: Store,
  subscription: string,
  request: Partial<RedriveRequest> = {},
  at = 0,
): Promise<string> {
  const id = `redrive-${++asked}`
  const outcome = await store.redrives.ask({
    id,
    subscription,
    act: 'redrive',
    filter: {},
    by: 'ann',
    reason: 'the bug is fixed',
    at,
    expected: undefined,
    rate: undefined,
    stages: [],
    maxFailures: undefined,
    ...request,
  })
  if (outcome.outcome !== 'asked') throw new Error(`It was not asked for: ${JSON.stringify(outcome)}`)
  return outcome.redrive.id
}

export async function found(store: Store, id: string): Promise<Redrive> {
  const known = await store.redrives.find(id)
  if (!known) throw new Error(`There is no redrive ${id}.`)
  return known
}

/** Asks, and lets the engine work until it is over. */
export async function redrive(
  world: World,
  engine: Engine,
  subscription: string,
  request: Partial<RedriveRequest> = {},
): Promise<Redrive> {
  const id = await ask(world.store, subscription, request, world.runtime.clock.now())
  // Its owner hears of it with the next beat, and ends it with the one after that at the latest.
  for (let i = 0; i < 200 && (await found(world.store, id)).status === 'running'; i++) await world.runtime.advance(250)
  await engine.drain()
  return found(world.store, id)
}
