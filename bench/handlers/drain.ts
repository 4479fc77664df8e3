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
}

export interface Drained {
  readonly events: number
  /** From just before `start()` until `drain()` resolves. */
  readonly elapsedMs: number
  /** Until the first event was begun: what a process does once. The rest is `workMs`. */
  readonly startMs: number
  readonly workMs: number
  readonly workCpuMs: number
}

/** A process that takes an engine through everything that is in the log. */
async function drain({ place, concurrency, work }: DrainTask): Promise<Drained> {
  await using store = await openStore(place)
  let first: { readonly at: number; readonly cpu: NodeJS.CpuUsage } | undefined
  const handler = notifying({
    concurrency,
    act: () => {
      first ??= { at: performance.now(), cpu: process.cpuUsage() }
      return work === 'io' ? io() : undefined
    },
  })
  await using engine = createEngine({ store, subscriptions: [handler] })
  const before = await countsOf(engine)
  const begun = performance.now()
  await engine.start()
  await engine.drain()
  const ended = performance.now()
  if (!first) throw new Error('there was nothing to do')
  const { user, system } = process.cpuUsage(first.cpu)
  return {
    events: (await countsOf(engine)).applied - before.applied,
    elapsedMs: ended - begun,
    startMs: first.at - begun,
    workMs: ended - first.at,
    workCpuMs: (user + system) / 1_000,
  }
}

if (import.meta.main) await answer(drain)
