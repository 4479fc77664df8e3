import type { Handler, RecordedEvent, Store } from '../../src/index.ts'
import { heldOf, type World } from '../fixtures.ts'

/*
 * The systems that Holdfast comes from lose, repeat or reorder events in ways that were reproduced by running them. Each of these is
 * a check here: it puts a consumer through the situation, and gives what is wrong afterwards, or nothing. Ours must come out with
 * nothing; and a small consumer that is wrong in the very way of the original must be found out, or the check would prove nothing.
 */

export interface Given {
  readonly world: World
  readonly handlers: readonly Handler[]
  /** Where it reads and writes, if not in the store of the world itself. */
  readonly store?: Store
  /** Who it is, where there are several. */
  readonly name?: string
}

/** Takes the events of the log to the handlers. */
export type Consume = (given: Given) => Promise<Consumer>

export interface Consumer {
  /** Up to where it says it is done. */
  position(): Promise<number>
  /** What it keeps for later, or for a person. */
  letters(): Promise<readonly Kept[]>
  stop(): Promise<void>
}

export interface Kept {
  readonly eventId: string
  readonly key: string
  readonly version: number | undefined
}

export const holdfast: Consume = async ({ world, handlers, store = world.store, name }) => {
  const engine = world.engine(handlers, { store, ...(name !== undefined && { name }) })
  await engine.start()
  return {
    position: async () => {
      const { subscriptions } = await engine.status()
      const partitions = subscriptions.flatMap(({ stored }) => stored?.partitions ?? [])
      return Math.min(...partitions.map(({ checkpoint }) => checkpoint.position))
    },
    letters: async () => {
      const letters = await Promise.all(handlers.map((handler) => heldOf(engine, handler.name)))
      return letters.flat().map(({ event }) => ({ eventId: event.id, key: event.key, version: event.version }))
    },
    stop: async () => {
      const stopped = engine.stop({ timeout: '1s' })
      await world.runtime.advance(2_000)
      await stopped
    },
  }
}

export async function logOf({ store }: World): Promise<readonly RecordedEvent[]> {
  return (await store.log.readAll(0, { events: 100_000, bytes: 2 ** 30 })).events
}

/** What a consumer has passed, though it was neither done nor kept. */
export async function lostBy(
  world: World,
  consumer: Consumer,
  done: Iterable<{ readonly id: string }>,
): Promise<readonly RecordedEvent[]> {
  const known = new Set([
    ...Array.from(done, ({ id }) => id),
    ...(await consumer.letters()).map(({ eventId }) => eventId),
  ])
  const position = await consumer.position()
  return (await logOf(world)).filter((event) => event.position <= position && !known.has(event.id))
}

/** In steps, so that whoever works has turns enough to do it. */
export async function pass({ runtime }: World, ms: number): Promise<void> {
  for (let i = 0; i < 20; i++) await runtime.advance(ms / 20)
}
