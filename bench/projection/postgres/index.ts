import type { Settings } from '../../benchmark.ts'
import { findEmmett } from '../../emmett/install.ts'
import { useServer } from '../../server.ts'
import { type Ground, holdKeyOneIn, pageEvents, poisonOneIn, type PreparedLog, type Way } from '../way.ts'
import { createWorkspace } from './workspace.ts'

const mostNaiveEvents = 10_000
const mostEmmettEvents = 20_000

export async function openPostgres(settings: Settings): Promise<Ground> {
  const { events, keys } = settings
  const emmett = await findEmmett(settings)
  await using opened = new AsyncDisposableStack()
  const server = opened.use(await useServer(settings))
  const workspace = opened.use(await createWorkspace(server))
  const prepare = new URL('prepare.ts', import.meta.url)
  const engine = new URL('../engine.ts', import.meta.url)
  const limit = new URL('limit.ts', import.meta.url)
  const naive = new URL('naive.ts', import.meta.url)
  const all = { log: 'healthy', events, pageEvents, checks: ['compare'] } as const
  const emmettEvents = Math.min(events, mostEmmettEvents)
  const emmettLog: PreparedLog = { name: 'emmett', program: emmett.fill, spec: { events: emmettEvents, keys } }
  const emmettWay: Way = {
    ...all,
    name: 'emmett',
    program: emmett.consume,
    log: 'emmett',
    events: emmettEvents,
    checks: [],
  }
  const resources = opened.move()
  return {
    workspace,
    logs: [
      { name: 'healthy', program: prepare, spec: { events, keys } },
      { name: 'poisoned', program: prepare, spec: { events, keys, poisonOneIn } },
      { name: 'held', program: prepare, spec: { events, keys, holdKeyOneIn } },
      ...(emmett.missing === undefined ? [emmettLog] : []),
    ],
    ways: [
      { ...all, name: 'limit', program: limit },
      { ...all, name: 'engine', program: engine, checks: ['verify', 'compare'] },
      { ...all, name: 'poison', program: engine, checks: ['verify'], log: 'poisoned' },
      { ...all, name: 'held', program: engine, checks: ['verify'], log: 'held' },
      { ...all, name: 'limit10000', program: limit, pageEvents: 10_000 },
      { ...all, name: 'naive', program: naive, events: Math.min(events, mostNaiveEvents) },
      ...(emmett.missing === undefined ? [emmettWay] : []),
    ],
    facts: { postgres: server.version, ...(emmett.missing !== undefined && { emmettSkipped: emmett.missing }) },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}
