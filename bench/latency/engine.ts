import { createEngine, type Engine, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { balances } from '../projection/bank.ts'

/** A commit, and when the engine told of it. */
export interface Commit {
  readonly position: number
  /** Nanoseconds of the machine's monotonic clock, which all its processes share; as text, for the way between them. */
  readonly at: string
}

/** An engine with nothing set. */
export async function startEngine(store: Store, tell: (commit: Commit) => void): Promise<Engine> {
  const engine = createEngine({ store, subscriptions: [balances] })
  engine.on('page.committed', ({ position, events }) => {
    // A partition that has nothing to do may move its checkpoint as well.
    if (events > 0) tell({ position, at: String(process.hrtime.bigint()) })
  })
  await engine.start()
  return engine
}

/** A separate process: reports to its parent that it runs and what it commits, and ends when the parent disconnects. */
async function main(url: string): Promise<void> {
  const gone = new Promise((resolve) => process.once('disconnect', resolve))
  await using running = new AsyncDisposableStack()
  const store = running.use(await createPostgresStore({ connection: url }))
  running.use(await startEngine(store, (commit) => process.send?.(commit)))
  process.send?.('running')
  await gone
}

if (import.meta.main) await main(process.argv[2] as string)
