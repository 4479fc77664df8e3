// A process with an engine. main.ts starts several, kills one with SIGKILL while it works, and starts another.
import { once } from 'node:events'
import { createEngine } from 'holdfast'
import { balances, countDone } from './bank.ts'
import { openStore, type Place } from './place.ts'

/** The reports of an engine process. */
export type EngineMessage =
  /** Before it starts: how many events were processed. */
  | { readonly kind: 'started'; readonly done: number }
  | { readonly kind: 'claimed'; readonly partition: number; readonly position: number }
  | { readonly kind: 'committed'; readonly partition: number; readonly position: number; readonly events: number }
  | { readonly kind: 'held' }
  /** At the end: how many events it processed while there was a backlog, and in what time. */
  | { readonly kind: 'drained'; readonly events: number; readonly busyMs: number }

if (import.meta.main) {
  const [place = '', pageEvents = ''] = process.argv.slice(2)
  const tell = (message: EngineMessage) => process.send?.(message)
  // Ctrl-C reaches this process too, but main.ts decides when to stop. If main.ts has ended, this process ends too.
  process.on('SIGINT', () => undefined)
  process.on('disconnect', () => process.exit(1))
  const everythingIsAppended = once(process, 'message')

  await using store = await openStore(JSON.parse(place) as Place)
  await using engine = createEngine({ store, subscriptions: [balances], page: { events: Number(pageEvents) } })

  const work = { events: 0, ms: 0, since: undefined as number | undefined }
  engine.on('subscription.state', ({ to }) => {
    if (work.since !== undefined) work.ms += performance.now() - work.since
    work.since = to.state === 'catching-up' ? performance.now() : undefined
    // The reason is already on stderr. Waiting does not help.
    if (to.state === 'failed') process.exit(1)
  })
  engine.on('lane.held', () => tell({ kind: 'held' }))
  engine.on('partition.claimed', ({ partition, position }) => tell({ kind: 'claimed', partition, position }))
  engine.on('page.committed', ({ partition, position, events }) => {
    if (work.since !== undefined) work.events += events
    tell({ kind: 'committed', partition, position, events })
  })

  tell({ kind: 'started', done: await countDone(engine) })
  await engine.start()
  await everythingIsAppended
  await engine.drain()
  await engine.stop()
  tell({ kind: 'drained', events: work.events, busyMs: work.ms })
  process.removeAllListeners('disconnect').disconnect()
}
