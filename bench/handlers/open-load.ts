import { setTimeout } from 'node:timers/promises'
import { type Counts, createEngine, createLog, failure } from 'holdfast'
import { answer } from '../child.ts'
import { bankEvents, type Movement } from '../projection/bank.ts'
import { makeEvents } from '../projection/events.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { countsOf } from './counts.ts'
import { io, mostPerSecond, notifying, quietLogger } from './notify.ts'

export interface OpenLoadTask {
  readonly place: Place
  readonly events: number
  readonly keys: number
  readonly concurrency: number
  /** Whether some of the lanes fail every time. */
  readonly fail: boolean
}

export interface OpenLoad {
  /** Of each event of a healthy lane, from when it was due to be appended until it was handled. */
  readonly handledMs: readonly number[]
  readonly failedAttempts: number
  readonly standstills: number
  readonly counts: Counts
}

export const failingLaneOneIn = 20
/** Of what so many calls side by side can do: little enough for queues not to be what is measured. */
export const loadShare = 0.3
const tickMs = 5
/** The first tenth is that of a cold process. */
const warmUpShare = 0.1
const patienceMs = 60_000

/** Appends at a steady rate, whatever becomes of it, to a log that an engine with the default policy handles in the same process. */
async function run({ place, events, keys, concurrency, fail }: OpenLoadTask): Promise<OpenLoad> {
  await using store = await openStore(place)
  const healthy = new Healthy()
  let failedAttempts = 0
  let standstills = 0
  const handler = notifying({
    concurrency,
    act: async ({ key, data }) => {
      await io()
      if (isHealthy(key)) return healthy.handled(data.reference)
      if (!fail) return
      failedAttempts++
      throw failure.transient('no answer')
    },
  })
  await using engine = createEngine({ store, subscriptions: [handler], logger: quietLogger })
  engine.on('subscription.blocked', () => standstills++)
  await engine.start()
  await engine.drain()

  const log = createLog({ store, events: bankEvents })
  const drafts = Array.from(makeEvents({ events, keys }), ({ key, type, data }) => {
    return { key, type, data: JSON.parse(data) as Movement }
  })
  const everyMs = 1_000 / (loadShare * mostPerSecond(concurrency))
  const begun = performance.now()
  const appends: Promise<unknown>[] = []
  for (let i = 0; i < drafts.length; ) {
    // By the clock and not by the answers: an engine that stalls must not slow down those who wait for it.
    for (; i < drafts.length && begun + i * everyMs <= performance.now(); i++) {
      const { key, type, data } = drafts[i] as (typeof drafts)[number]
      if (isHealthy(key)) healthy.due(data.reference, begun + i * everyMs)
      appends.push(log.append(key, [{ type, data }]))
    }
    await setTimeout(tickMs)
  }
  await Promise.all(appends)
  const missing = await healthy.all(patienceMs)
  if (missing > 0) throw new Error(`${missing} events of healthy lanes were not handled`)
  await engine.stop()
  const handledMs = healthy.since(begun + warmUpShare * events * everyMs)
  return { handledMs, failedAttempts, standstills, counts: await countsOf(engine) }
}

function isHealthy(key: string): boolean {
  return Number(key.slice(-6)) % failingLaneOneIn !== 0
}

/** When the events of healthy lanes were due, and when they were handled, by their references. */
class Healthy {
  readonly #due = new Map<string, number>()
  readonly #handled = new Map<string, number>()

  due(reference: string, at: number): void {
    this.#due.set(reference, at)
  }

  handled(reference: string): void {
    if (!this.#handled.has(reference)) this.#handled.set(reference, performance.now())
  }

  /** Waits for the rest; how many are missing in the end. */
  async all(mostMs: number): Promise<number> {
    const until = performance.now() + mostMs
    while (this.#handled.size < this.#due.size && performance.now() < until) await setTimeout(50)
    return this.#due.size - this.#handled.size
  }

  /** How long each took that was due from a time on. */
  since(from: number): number[] {
    return [...this.#due].flatMap(([reference, due]) => (due < from ? [] : [(this.#handled.get(reference) ?? 0) - due]))
  }
}

if (import.meta.main) await answer(run)
