import { type Event, type Handler, type HandlerContext, type RecordedEvent, type Store } from '../../src/index.ts'
import type { World } from '../fixtures.ts'
import type { Consume, Kept } from './consume.ts'

/** What a wrong consumer is built of. */
export interface Tools {
  readonly world: World
  readonly store: Store
  readonly handlers: readonly Handler[]
  readonly letters: Kept[]
  readonly isStopped: () => boolean
  position: number
  /** Calls a handler as it is, and throws what it throws. */
  readonly call: (handler: Handler, event: RecordedEvent) => Promise<void>
  readonly keep: (event: RecordedEvent) => void
  readonly sleep: (ms: number) => Promise<void>
}

/** Works until it is stopped; what it does with what it read is the variant's. */
type Work = (tools: Tools) => Promise<void>

export function naive(work: Work): Consume {
  return async ({ world, handlers, store = world.store }) => {
    let stopped = false
    const letters: Kept[] = []
    const attempts = new Map<string, number>()
    const tools: Tools = {
      world,
      store,
      handlers,
      letters,
      isStopped: () => stopped,
      position: 0,
      call: async (handler, event) => {
        const times = (attempts.get(event.id) ?? 0) + 1
        attempts.set(event.id, times)
        await handler.functions.get(event.type)?.(eventOf(event), contextOf(handler, event, times))
      },
      keep: ({ id, key, version }) => void letters.push({ eventId: id, key, version }),
      sleep: (ms) => world.runtime.timers.sleep(ms),
    }
    const working = work(tools).catch(() => undefined)
    return {
      position: async () => tools.position,
      letters: async () => letters,
      stop: async () => {
        stopped = true
        await world.runtime.advance(60_000)
        // It may hang in a handler; then nobody waits for it.
        await Promise.race([working, world.runtime.timers.yield()])
      },
    }
  }
}

/** The loop that everybody writes first: a page, each event of it, and then a nap. */
export function each(handle: (event: RecordedEvent, tools: Tools) => Promise<void>): Consume {
  return naive(async (tools) => {
    while (!tools.isStopped()) {
      const { events } = await read(tools)
      for (const event of events) {
        await handle(event, tools)
        tools.position = event.position
      }
      if (events.length === 0) await tools.sleep(100)
    }
  })
}

export function read({ store, position }: Pick<Tools, 'store' | 'position'>) {
  return store.log.readAll(position, { events: 100, bytes: 2 ** 20 })
}

export function eventOf({ id, type, key, version, body, time }: RecordedEvent): Event {
  const data: unknown = JSON.parse(body as string)
  return { id, type, key, data, metadata: {}, time, ...(version !== undefined && { version }) }
}

function contextOf({ name }: Handler, { id }: RecordedEvent, attempt: number): HandlerContext {
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
  return {
    subscription: name,
    signal: new AbortController().signal,
    attempt,
    idempotencyKey: `${name}/${id}`,
    deadline: Number.POSITIVE_INFINITY,
    redrive: undefined,
    logger: silent,
    dryRun: false,
    effect: async (_what, run) => run(),
  }
}
