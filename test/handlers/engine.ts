// An engine in a process of its own, for its parent to kill, and for its events.
import { flushCompileCache } from 'node:module'
import { createEngine, type Duration } from 'holdfast'
import { startWatchdog } from 'holdfast/watchdog'
import { attendParent } from '../chaos/child.ts'
import { consumers, type Name } from './consumers.ts'
import { writeEvidence } from './evidence.ts'
import { openStore, type Place } from './place.ts'

export interface EngineSettings {
  readonly place: Place
  readonly name: string
  /** The file of the effects. */
  readonly evidence: string
  readonly consumers: readonly Name[]
  readonly lease?: Duration
  readonly maxDeaths?: number
  /** With a watchdog, that bites after this. */
  readonly watchdog?: Duration
}

export type EngineReport =
  /** Everything is loaded; the store is not touched yet. */
  { readonly kind: 'ready' } | { readonly kind: 'running' } | { readonly kind: 'claimed' }

export type EngineCommand = { readonly verb: 'run'; readonly settings: EngineSettings } | { readonly verb: 'stop' }

if (import.meta.main) {
  const run = Promise.withResolvers<EngineSettings>()
  const stop = Promise.withResolvers<void>()
  const parent = attendParent<EngineReport, EngineCommand>((command) => {
    if (command.verb === 'run') run.resolve(command.settings)
    else stop.resolve()
  })
  flushCompileCache()
  parent.tell({ kind: 'ready' })
  await work(await run.promise, parent.tell, stop.promise)
  parent.leave()
}

async function work(
  { place, name, evidence: file, consumers: names, lease = '2s', maxDeaths, watchdog: after }: EngineSettings,
  tell: (report: EngineReport) => void,
  stopped: Promise<void>,
): Promise<void> {
  const evidence = writeEvidence(file, name)
  await using watchdog = after === undefined ? undefined : startWatchdog({ after })
  await using store = await openStore(place)
  await using engine = createEngine({
    store,
    subscriptions: names.map((one) => consumers[one](evidence, maxDeaths, store.dialect)),
    name,
    lease,
    poll: '20ms',
    ...(watchdog && { watchdog }),
    logger: {
      info: () => undefined,
      warn: () => undefined,
      error: (fields, message) => console.error(message, fields),
    },
  })
  engine.on('partition.claimed', () => tell({ kind: 'claimed' }))
  engine.on('message.acked', ({ eventId }) => evidence.write({ phase: 'finished', id: eventId }))
  await engine.start()
  tell({ kind: 'running' })
  await stopped
}
