// An engine in a process of its own, for its parent to kill, stop and starve.
import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createEngine, defineSubscription, type Duration, type Store } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { ledgerProjection, shuffledSource } from './ledger.ts'

export interface EngineSettings {
  readonly file: string
  readonly name: string
  readonly pageEvents?: number
  readonly lease?: Duration
  readonly busyTimeout?: Duration
  /** How long the reducer keeps the processor busy, for a page that takes its time. */
  readonly spinMs?: number
  /** With a second subscription, to a source that shuffles. */
  readonly shuffleSeed?: number
}

export type EngineReport =
  /** Everything is loaded; the file is not touched yet. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'claimed'; readonly subscription: string; readonly epoch: number; readonly position: number }
  | { readonly kind: 'committed'; readonly subscription: string; readonly position: number }
  | { readonly kind: 'fenced'; readonly subscription: string }
  /** The store refused a commit of a page, because the partition has a new owner. */
  | { readonly kind: 'refused'; readonly events: number }
  | { readonly kind: 'state'; readonly subscription: string; readonly state: string }
  | { readonly kind: 'store-failed'; readonly code: string; readonly attempt: number }
  | { readonly kind: 'drained' }

export type EngineCommand = 'go' | 'drain' | 'stop'

/** The pipe on which a process marks the beginning and the end of each commit, at once and in order. */
export const markPipe = 4

if (import.meta.main) {
  const settings = JSON.parse(process.argv[2] ?? '{}') as EngineSettings
  const tell = (report: EngineReport) => process.send?.(report)
  // All of them from the beginning: a message that nobody listens for is lost.
  const commands = { go: heard('go'), drain: heard('drain'), stop: heard('stop') }
  process.on('disconnect', () => process.exit(1))
  flushCompileCache()
  tell({ kind: 'ready' })
  await commands.go
  await work(settings, tell, commands)
  process.removeAllListeners('disconnect').disconnect()
}

async function work(
  settings: EngineSettings,
  tell: (report: EngineReport) => void,
  commands: { readonly drain: Promise<void>; readonly stop: Promise<void> },
): Promise<void> {
  const { file, name, pageEvents = 40, lease = '10s', busyTimeout = '1s', spinMs, shuffleSeed } = settings
  await using store = await createSqliteStore({ file, busyTimeout })
  const ledger = ledgerProjection('ledger', spinMs)
  const shuffled =
    shuffleSeed === undefined
      ? []
      : [
          defineSubscription(ledgerProjection('shuffled'), {
            source: shuffledSource(shuffleSeed, () => store.log.head()),
          }),
        ]
  await using engine = createEngine({
    store: watched(store, tell),
    subscriptions: [ledger, ...shuffled],
    name,
    lease,
    poll: '20ms',
    page: { events: pageEvents },
    logger: {
      info: () => undefined,
      warn: () => undefined,
      error: (fields, message) => console.error(message, fields),
    },
  })
  engine.on('partition.claimed', ({ subscription, epoch, position }) =>
    tell({ kind: 'claimed', subscription, epoch, position }),
  )
  engine.on('page.committed', ({ subscription, position }) => tell({ kind: 'committed', subscription, position }))
  engine.on('partition.fenced', ({ subscription }) => tell({ kind: 'fenced', subscription }))
  engine.on('subscription.state', ({ subscription, to }) => tell({ kind: 'state', subscription, state: to.state }))
  engine.on('store.failed', ({ error, attempt }) => {
    const code = (error as { code?: unknown } | null)?.code
    tell({ kind: 'store-failed', code: typeof code === 'string' ? code : String(error), attempt })
  })
  await engine.start()
  const isToDrain = await Promise.race([commands.drain.then(() => true), commands.stop.then(() => false)])
  if (!isToDrain) return
  await engine.drain()
  tell({ kind: 'drained' })
  await commands.stop
}

function heard(wanted: EngineCommand): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (command) => {
      if (command === wanted) resolve()
    })
  })
}

/** The same store; its commits can be seen from outside. */
function watched(store: Store, tell: (report: EngineReport) => void): Store {
  return {
    ...store,
    subscriptions: {
      ...store.subscriptions,
      commit: async (commit) => {
        writeSync(markPipe, '<')
        try {
          const result = await store.subscriptions.commit(commit)
          if (result.outcome === 'fenced') tell({ kind: 'refused', events: commit.to.position - commit.from })
          return result
        } finally {
          writeSync(markPipe, '>')
        }
      },
    },
  }
}
