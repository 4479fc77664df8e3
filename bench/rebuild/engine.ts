import { createEngine } from 'holdfast'
import { quietLogger } from '../handlers/notify.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { accounts } from './accounts.ts'

export interface EngineTask {
  readonly place: Place
  readonly version: 1 | 2
}

/** A commit, and when the engine told of it, in nanoseconds of the machine's monotonic clock. */
export interface Commit {
  readonly position: number
  readonly at: string
}

export type EngineReport = 'running' | 'drained' | Commit

/** Runs one version until it is stopped, and reports every commit that applied something. */
async function run({ place, version }: EngineTask): Promise<void> {
  await using store = await openStore(place)
  await using engine = createEngine({ store, subscriptions: [accounts(version)], logger: quietLogger })
  let isDrained = version === 2
  engine.on('page.committed', ({ position, events }) => {
    if (events > 0 && isDrained) tell({ position, at: String(process.hrtime.bigint()) })
  })
  await engine.start()
  tell('running')
  if (!isDrained) await engine.drain()
  isDrained = true
  tell('drained')
  await new Promise((resolve) => process.once('message', resolve))
}

function tell(report: EngineReport): void {
  process.send?.(report)
}

if (import.meta.main) {
  await run(JSON.parse(process.argv[2] ?? 'null') as EngineTask)
  process.disconnect()
}
