// The engine's own process. main.ts starts it, kills it with -9 in the middle of its work, and starts it again.
import { once } from 'node:events'
import { createEngine } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { balances } from './bank.ts'

/** What the engine's process tells. */
export type EngineMessage =
  | { readonly kind: 'claimed'; readonly pid: number; readonly position: number }
  | { readonly kind: 'committed'; readonly position: number; readonly lanesHeld: number }
  /** Done: how many events it took while there was more than it could do at once, and in what time. */
  | { readonly kind: 'drained'; readonly events: number; readonly busyMs: number }

if (import.meta.main) {
  const [file = '', pageEvents = '500'] = process.argv.slice(2)
  const tell = (message: EngineMessage) => process.send?.(message)
  // Ctrl-C reaches us too, but it is main.ts who decides; when main.ts is gone, there is nobody to work for.
  process.on('SIGINT', () => undefined)
  process.on('disconnect', () => process.exit(1))
  const everythingIsAppended = once(process, 'message')

  await using store = await createSqliteStore({ file })
  await using engine = createEngine({ store, subscriptions: [balances], page: { events: Number(pageEvents) } })

  const work = { events: 0, ms: 0, since: undefined as number | undefined }
  let lanesHeld = (await engine.status()).subscriptions[0]?.stored?.held.lanes ?? 0
  engine.on('subscription.state', ({ to }) => {
    if (work.since !== undefined) work.ms += performance.now() - work.since
    work.since = to.state === 'catching-up' ? performance.now() : undefined
  })
  engine.on('lane.held', () => void lanesHeld++)
  engine.on('partition.claimed', ({ position }) => tell({ kind: 'claimed', pid: process.pid, position }))
  engine.on('page.committed', ({ position, events }) => {
    if (work.since !== undefined) work.events += events
    tell({ kind: 'committed', position, lanesHeld })
  })

  await engine.start()
  await everythingIsAppended
  await engine.drain()
  await engine.stop()
  tell({ kind: 'drained', events: work.events, busyMs: work.ms })
  process.removeAllListeners('disconnect').disconnect()
}
