// An engine in a process of its own, for its parent to kill in the middle of a redrive.
import { flushCompileCache } from 'node:module'
import { createEngine, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { foldOf, handlerOf } from './consumers.ts'

export interface EngineSettings {
  /** A URL, or the path of a file. */
  readonly store: string
  readonly name: string
  readonly effects: string
  readonly hasBug: boolean
}

export type Report = 'ready' | 'committed' | 'drained'

export function openStore(store: string): Promise<Store> {
  return store.includes('://')
    ? createPostgresStore({ connection: store })
    : createSqliteStore({ file: store, busyTimeout: '5s' })
}

if (import.meta.main) {
  const { store: place, name, effects, hasBug } = JSON.parse(process.argv[2] ?? '{}') as EngineSettings
  const tell = (report: Report) => process.send?.(report)
  const heard = (wanted: string) =>
    new Promise<void>((resolve) => process.on('message', (said) => void (said === wanted && resolve())))
  const [draining, stopping] = [heard('drain'), heard('stop')]
  process.on('disconnect', () => process.exit(1))
  flushCompileCache()
  const store = await openStore(place)
  const engine = createEngine({
    store,
    subscriptions: [foldOf(hasBug), handlerOf(hasBug, effects)],
    name,
    lease: '3s',
    page: { events: 100 },
    logger: { info: () => undefined, warn: () => undefined, error: (fields, said) => console.error(said, fields) },
  })
  engine.on('page.committed', () => tell('committed'))
  await engine.start()
  tell('ready')
  await draining
  await engine.drain()
  tell('drained')
  await stopping
  await engine.stop()
  await store.close()
  process.removeAllListeners('disconnect').disconnect()
}
