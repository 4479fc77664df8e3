import { createEngine } from 'holdfast'
import { answer } from '../child.ts'
import { balances } from './bank.ts'
import { openStore } from './open-store.ts'
import type { WayRun, WayTask } from './way.ts'

export interface EngineRun extends WayRun {
  /** The largest page that was committed: the engine's page size, unless bytes cut it short. */
  readonly pageEvents: number
  /** The peak of the whole process, and what it had when the store was open and the engine not yet started. */
  readonly rssMb: number
  readonly rssMbBefore: number
}

/** A process that opens a store and runs an engine with nothing set, so that its time and memory are the engine's. */
async function runEngine({ place }: WayTask): Promise<EngineRun> {
  await using store = await openStore(place)
  await using engine = createEngine({ store, subscriptions: [balances] })
  let pageEvents = 0
  engine.on('page.committed', ({ events }) => {
    pageEvents = Math.max(pageEvents, events)
  })
  const rssMbBefore = peakRssMb()
  const begun = performance.now()
  await engine.start()
  await engine.drain()
  const elapsedMs = performance.now() - begun
  return { elapsedMs, pageEvents, rssMb: peakRssMb(), rssMbBefore }
}

function peakRssMb(): number {
  return (process.resourceUsage().maxRSS * 1_024) / 1_000_000
}

if (import.meta.main) await answer(runEngine)
