// An engine in a process of its own, for its parent to kill, stop and cut off.
import { flushCompileCache } from 'node:module'
import { setTimeout } from 'node:timers/promises'
import { createEngine, type Duration, type Store, StoreError } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { attendParent } from './child.ts'
import { codeOf } from './code.ts'
import { subscriptions } from './postings.ts'
import { watchCommits } from './watch.ts'

export interface EngineSettings {
  readonly url: string
  readonly name: string
  /** Where nothing is said, the defaults of Holdfast hold. */
  readonly lease?: Duration
  readonly poll?: Duration
  readonly page?: { readonly events: number }
}

/** Which partition, and when: in milliseconds since 1970, and finer. */
export interface Moment {
  readonly subscription: string
  readonly partition: number
  readonly at: number
}

export type EngineReport =
  /** Everything is loaded; the database is not touched yet. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'running' }
  | ({ readonly kind: 'claimed' | 'committed' | 'fenced' } & Moment)
  /** The store refused a page, because the partition has another owner. */
  | ({ readonly kind: 'refused' } & Moment)
  /** A commit had no answer, and this is what the engine found when it looked. */
  | ({ readonly kind: 'unanswered'; readonly happened: boolean } & Moment)
  | { readonly kind: 'store-failed'; readonly subscription: string; readonly code: string }
  /** Waiting can't mend it, says the engine. */
  | { readonly kind: 'failed'; readonly subscription: string; readonly why: string }

export type EngineCommand = { readonly verb: 'run'; readonly settings: EngineSettings } | { readonly verb: 'stop' }

const quiet = {
  info: () => undefined,
  warn: () => undefined,
  error: (fields: object, message: string) => console.error(message, fields),
}

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
  { url, ...options }: EngineSettings,
  tell: (report: EngineReport) => void,
  stopped: Promise<void>,
): Promise<void> {
  await using store = await openStore(url)
  await using engine = createEngine({ ...options, store: watchCommits(store, tell), subscriptions, logger: quiet })
  const at = () => performance.timeOrigin + performance.now()
  engine.on('partition.claimed', ({ subscription, partition }) =>
    tell({ kind: 'claimed', subscription, partition, at: at() }),
  )
  engine.on('page.committed', ({ subscription, partition }) =>
    tell({ kind: 'committed', subscription, partition, at: at() }),
  )
  engine.on('partition.fenced', ({ subscription, partition }) =>
    tell({ kind: 'fenced', subscription, partition, at: at() }),
  )
  engine.on('store.failed', ({ subscription, error }) =>
    tell({ kind: 'store-failed', subscription, code: codeOf(error) }),
  )
  engine.on('subscription.state', ({ subscription, to }) => {
    if (to.state === 'failed') tell({ kind: 'failed', subscription, why: describe(to.error) })
  })
  await engine.start()
  tell({ kind: 'running' })
  await stopped
}

/** A supervisor would start the process again; this is the same, and cheaper. */
async function openStore(url: string): Promise<Store> {
  for (;;) {
    try {
      return await createPostgresStore({ connection: url, migrate: false })
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      await setTimeout(50)
    }
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.message} ${error.cause instanceof Error ? error.cause.message : ''}` : ''
}
