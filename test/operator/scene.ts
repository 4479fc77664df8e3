import { createLog, createOperator, type Engine, type EngineOptions, type Log, type Operator } from 'holdfast'
import { balances, bank, createWorld, credited, debited, type World } from '../fixtures.ts'

export interface Scene extends AsyncDisposable {
  readonly world: World
  readonly log: Log<typeof bank>
  readonly engine: Engine
  readonly operator: Operator
  operatorBy(by: string): Operator
}

/**
 * A small bank on a bad day. Lane `a` is held at position 2 with two more behind it, `b` at position 5 with none, `c` flows.
 */
export async function createScene(
  subscriptions: EngineOptions['subscriptions'] = [balances],
  prepare: (world: World) => unknown = () => undefined,
): Promise<Scene> {
  const world = await createWorld()
  await prepare(world)
  const log = createLog({ store: world.store, events: bank })
  await log.append('a', [credited(1), debited(2), credited(100)])
  await log.append('c', [credited(7)])
  await log.append('b', [debited(3)])
  await log.append('a', [debited(5)])
  const engine = world.engine(subscriptions)
  await world.settle(engine)
  const operatorBy = (by: string) => createOperator({ store: world.store, subscriptions, by, ...world.runtime })
  return {
    world,
    log,
    engine,
    operator: operatorBy('ada'),
    operatorBy,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

export async function codeOf(work: Promise<unknown> | (() => unknown)): Promise<string> {
  try {
    await (typeof work === 'function' ? work() : work)
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
  return 'nothing was thrown'
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
