import type { Settings } from '../benchmark.ts'
import { createWorkspace as createDatabases } from '../projection/postgres/workspace.ts'
import { createWorkspace as createFiles } from '../projection/sqlite/workspace.ts'
import type { Workspace } from '../projection/way.ts'
import { useServer } from '../server.ts'

export interface HandlerGround extends AsyncDisposable {
  readonly workspace: Workspace
  /** Fills a new place, given a `PrepareTask`. */
  readonly prepare: URL
  /** For the report. */
  readonly facts: object
}

export async function openGround(settings: Settings): Promise<HandlerGround> {
  await using opened = new AsyncDisposableStack()
  const prepare = new URL(`../projection/${settings.store}/prepare.ts`, import.meta.url)
  if (settings.store === 'sqlite') {
    const workspace = opened.use(await createFiles(settings.dir))
    const resources = opened.move()
    return { workspace, prepare, facts: {}, [Symbol.asyncDispose]: () => resources.disposeAsync() }
  }
  const server = opened.use(await useServer(settings))
  const workspace = opened.use(await createDatabases(server))
  const resources = opened.move()
  const facts = { postgres: server.version }
  return { workspace, prepare, facts, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}
