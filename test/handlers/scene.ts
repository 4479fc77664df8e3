import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine, createLog, type Store } from 'holdfast'
import { consumers, type Name, nowhere } from './consumers.ts'
import { Evidence } from './evidence.ts'
import { outcomesIn } from './finished.ts'
import type { Open } from './judge.ts'
import { openStore, type Place } from './place.ts'
import { type Task, taskEvents } from './tasks.ts'

/** A store with the given subscriptions in it, and the tasks that were asked for. */
export interface Scene extends AsyncDisposable {
  readonly place: Place
  /** The file of the effects. */
  readonly file: string
  readonly evidence: Evidence
  readonly store: Store
  /** One event after the other, to its key. */
  ask(...tasks: readonly (Partial<Task> & { readonly key: string })[]): Promise<void>
  /** Whether everybody has an outcome for everything, and nothing is about to be tried again. */
  isSettled(): Promise<boolean>
  /** How many trials the store has. */
  trialsOf(name: Name): Promise<number>
  openOf(name: Name): Promise<readonly Open[]>
  /** What `verify` has against a subscription. */
  differencesOf(name: Name): Promise<readonly unknown[]>
}

/** Without a URL in a SQLite file of its own. */
export async function createScene(names: readonly Name[], url: string | undefined): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-scene-'))
  const place: Place =
    url === undefined ? { store: 'sqlite', file: join(folder, 'log.db') } : { store: 'postgres', url }
  const file = join(folder, 'effects')
  const evidence = new Evidence(file)
  const store = await openStore(place)
  const engine = createEngine({
    store,
    subscriptions: names.map((name) => consumers[name](nowhere, undefined, store.dialect)),
  })
  await engine.prepare()
  const log = createLog({ store, events: taskEvents })
  const versions = new Map<string, number>()
  const written: { readonly id: string; readonly key: string; readonly position: number }[] = []
  return {
    place,
    file,
    evidence,
    store,
    ask: async (...tasks) => {
      for (const { key, ...task } of tasks) {
        const version = (versions.get(key) ?? 0) + 1
        versions.set(key, version)
        const id = `${key}-${version}`
        const data: Task = { act: 'go', hiccups: 0, ms: 2, ...task }
        const { position } = await log.append(key, [{ id, type: 'Asked', data }])
        written.push({ id, key, position })
      }
    },
    isSettled: async () => {
      const outcomes = await Promise.all(names.map((name) => outcomesIn(store, name, written)))
      return outcomes.every(({ pending }) => pending === 0)
    },
    trialsOf: async (name) => (await store.subscriptions.partitions(name)).flatMap(({ trials }) => trials).length,
    openOf: async (name) => (await outcomesIn(store, name, written)).open,
    differencesOf: async (name) => (await engine.verify(name)).differences,
    [Symbol.asyncDispose]: async () => {
      await store.close()
      evidence[Symbol.dispose]()
      await rm(folder, { recursive: true })
    },
  }
}
