import { createEngine } from 'holdfast'
import { answer } from '../child.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { countsOf } from './counts.ts'
import { io, notifying } from './notify.ts'

export interface DrainTask {
  readonly place: Place
  readonly concurrency: number
  /** What the handler does: it waits for a call, or does nothing at all. */
  readonly work: 'io' | 'nothing'
  /** About how many there are to handle. */
  readonly events: number
}

export interface Drained {
  readonly events: number
  /** From just before `start()` until `drain()` resolves. */
  readonly elapsedMs: number
  /** From `start()` until the first event was begun. */
  readonly startMs: number
  /** Of a warm process: from when a quarter of the events was begun, for each of the others. */
  readonly perEventMs: number
  readonly perEventCpuMs: number
}

const warmUpShare = 0.25

/** A process that takes an engine through everything that is in the log. */
async function drain({ place, concurrency, work, events }: DrainTask): Promise<Drained> {
  await using store = await openStore(place)
  const marks: { readonly at: number; readonly cpu: NodeJS.CpuUsage }[] = []
  const warmUp = Math.floor(warmUpShare * events)
  let begun = 0
  const handler = notifying({
    concurrency,
    act: () => {
      if (begun === 0 || begun === warmUp) marks.push({ at: performance.now(), cpu: process.cpuUsage() })
      begun++
      return work === 'io' ? io() : undefined
    },
  })
  await using engine = createEngine({ store, subscriptions: [handler] })
  const before = await countsOf(engine)
  const startedAt = performance.now()
  await engine.start()
  await engine.drain()
  const endedAt = performance.now()
  const [first, warm] = marks
  if (!first || !warm) throw new Error(`there was too little to do: ${begun} of ${events} events`)
  const { user, system } = process.cpuUsage(warm.cpu)
  return {
    events: (await countsOf(engine)).applied - before.applied,
    elapsedMs: endedAt - startedAt,
    startMs: first.at - startedAt,
    perEventMs: (endedAt - warm.at) / (begun - warmUp),
    perEventCpuMs: (user + system) / 1_000 / (begun - warmUp),
  }
}

if (import.meta.main) await answer(drain)
