import type { Settings } from '../../benchmark.ts'
import { type Ground, pageEvents, poisonOneIn } from '../way.ts'
import { createWorkspace } from './workspace.ts'

const mostNaiveEvents = 20_000

export async function openSqlite({ events, keys, dir }: Settings): Promise<Ground> {
  const workspace = await createWorkspace(dir)
  const prepare = new URL('prepare.ts', import.meta.url)
  const engine = new URL('../engine.ts', import.meta.url)
  const limit = new URL('limit.ts', import.meta.url)
  const naive = new URL('naive.ts', import.meta.url)
  const all = { log: 'healthy', events, pageEvents, checks: ['compare'] } as const
  return {
    workspace,
    logs: [
      { name: 'healthy', program: prepare, spec: { events, keys } },
      { name: 'poisoned', program: prepare, spec: { events, keys, poisonOneIn } },
    ],
    ways: [
      { ...all, name: 'engine', program: engine, checks: ['verify', 'compare'] },
      { ...all, name: 'poison', program: engine, checks: ['verify'], log: 'poisoned' },
      { ...all, name: 'limit', program: limit },
      { ...all, name: 'naive', program: naive, events: Math.min(events, mostNaiveEvents) },
    ],
    facts: {},
    [Symbol.asyncDispose]: () => workspace[Symbol.asyncDispose](),
  }
}
