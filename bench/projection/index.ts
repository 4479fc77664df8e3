import type { Counts } from 'holdfast'
import type { Benchmark, Settings } from '../benchmark.ts'
import { type ChildOptions, inChild } from '../child.ts'
import type { EngineRun } from './engine.ts'
import type { InspectTask } from './inspect.ts'
import { openPostgres } from './postgres/index.ts'
import { type Measured, type Round, summarise } from './report.ts'
import { openSqlite } from './sqlite/index.ts'
import type { Ground, Prepared, PreparedLog, PrepareTask, Way, WayName, WayRun, WayTask } from './way.ts'

const grounds: Readonly<Record<string, (settings: Settings) => Promise<Ground>>> = {
  sqlite: openSqlite,
  postgres: openPostgres,
}

/**
 * Several ways through the same events, each in a process of its own on a fresh copy of the same log, one after the other in
 * every round, so that what else the machine does meanwhile falls on all of them.
 */
export const projection: Benchmark = {
  summary: 'a fold into one row per key: the engine, the same in SQL, a transaction per event, and with poison events',
  stores: ['sqlite', 'postgres'],
  defaults: { events: 1_000_000, rounds: 3 },
  run: async (settings) => {
    const open = grounds[settings.store] as (settings: Settings) => Promise<Ground>
    await using ground = await open(settings)
    const prepared: Prepared[] = []
    for (const log of ground.logs) prepared.push(await prepare(settings, ground, log))
    const rounds: Round[] = []
    for (let number = 1; number <= settings.rounds; number++) {
      const round: Partial<Record<WayName, Measured>> = {}
      for (const way of ground.ways) {
        const measured = await measure(settings, ground, way)
        round[way.name] = measured
        const rate = Math.round(measured.perSecond).toLocaleString('en')
        settings.progress(`round ${number}  ${way.name.padEnd(10)} ${rate.padStart(9)} events/s`)
      }
      rounds.push(round)
    }
    const [{ bytesPerEvent }] = prepared as [Prepared]
    return summarise(settings, { bytesPerEvent, rounds, ways: ground.ways, facts: ground.facts })
  },
}

async function prepare({ signal, progress }: Settings, { workspace }: Ground, log: PreparedLog): Promise<Prepared> {
  const { name, program, spec } = log
  progress(`preparing ${spec.events.toLocaleString('en')} events over ${spec.keys.toLocaleString('en')} keys, ${name}`)
  const place = await workspace.create(name)
  return inChild<PrepareTask, Prepared>(program, { place, ...spec }, { signal })
}

async function measure(settings: Settings, { workspace }: Ground, way: Way): Promise<Measured> {
  const { name, log, program, events, pageEvents, checks } = way
  const place = await workspace.copyOf(log)
  const task: WayTask = { place, events, pageEvents }
  const run = await inChild<WayTask, WayRun & Partial<EngineRun>>(program, task, profiling(settings, name))
  const counts = await inChild<InspectTask, Counts | undefined>(
    new URL('inspect.ts', import.meta.url),
    { place, events, checks },
    { signal: settings.signal },
  )
  return { ...run, perSecond: (events * 1_000) / run.elapsedMs, heldEvents: counts?.held ?? 0 }
}

function profiling({ profile, signal }: Settings, way: WayName): ChildOptions {
  if (profile === undefined) return { signal }
  const name = `${way}-${process.pid}-${Date.now()}.cpuprofile`
  return { signal, execArgv: ['--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${name}`] }
}
