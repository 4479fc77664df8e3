import type { Benchmark, Settings } from '../benchmark.ts'
import { type ChildOptions, inChild } from '../child.ts'
import type { EngineRun, EngineTask } from './engine.ts'
import type { Inspection, InspectTask } from './inspect.ts'
import type { LimitRun, LimitTask } from './limit.ts'
import type { NaiveRun, NaiveTask } from './naive.ts'
import type { Prepared, PrepareTask } from './prepare.ts'
import { type Round, summarise } from './report.ts'
import { createWorkspace, type Workspace } from './workspace.ts'

const poisonOneIn = 100
const mostNaiveEvents = 20_000

/**
 * Four ways through the same events, each in a process of its own on a fresh copy of the same file, one after the other in
 * every round, so that what else the machine does meanwhile falls on all of them.
 */
export const projection: Benchmark = {
  summary: 'a fold into one row per key: the engine, the same in SQL, a transaction per event, and with poison',
  stores: ['sqlite'],
  run: async (settings) => {
    await using workspace = await createWorkspace(settings.dir)
    const healthy = workspace.path('healthy.db')
    const poisoned = workspace.path('poisoned.db')
    const { bytesPerEvent } = await prepare(settings, healthy, undefined)
    await prepare(settings, poisoned, poisonOneIn)
    const rounds: Round[] = []
    for (let number = 1; number <= settings.rounds; number++)
      rounds.push(await measureRound(settings, workspace, { healthy, poisoned, number }))
    return summarise(settings, { bytesPerEvent, poisonOneIn, rounds })
  },
}

async function prepare(settings: Settings, file: string, poison: number | undefined): Promise<Prepared> {
  const { events, keys, signal, progress } = settings
  progress(
    `preparing ${events.toLocaleString('en')} events over ${keys.toLocaleString('en')} keys${poison ? `, one in ${poison} poison` : ''}`,
  )
  return inChild<PrepareTask, Prepared>(
    new URL('prepare.ts', import.meta.url),
    { file, events, keys, poisonOneIn: poison },
    { signal },
  )
}

async function measureRound(
  settings: Settings,
  workspace: Workspace,
  { healthy, poisoned, number }: { healthy: string; poisoned: string; number: number },
): Promise<Round> {
  const { events, signal, progress } = settings
  const profiled = profiling(settings)
  const say = (way: string, rate: number) =>
    progress(`round ${number}  ${way.padEnd(7)} ${Math.round(rate).toLocaleString('en').padStart(9)} events/s`)

  let file = await workspace.copyOf(healthy)
  const engine = await inChild<EngineTask, EngineRun>(
    new URL('engine.ts', import.meta.url),
    { file },
    profiled('engine'),
  )
  const enginePerSecond = perSecond(events, engine)
  say('engine', enginePerSecond)
  const engineTable = await inspect({ what: 'verify', file }, signal)

  file = await workspace.copyOf(poisoned)
  const poison = await inChild<EngineTask, EngineRun>(
    new URL('engine.ts', import.meta.url),
    { file },
    profiled('poison'),
  )
  const poisonPerSecond = perSecond(events, poison)
  say('poison', poisonPerSecond)
  const { counts } = await inspect({ what: 'verify', file }, signal)

  file = await workspace.copyOf(healthy)
  const { pageEvents } = engine
  const limit = await inChild<LimitTask, LimitRun>(
    new URL('limit.ts', import.meta.url),
    { file, events, pageEvents },
    profiled('limit'),
  )
  const limitPerSecond = perSecond(events, limit)
  say('limit', limitPerSecond)
  mustEqual('The SQL statement', await inspect({ what: 'checksum', file }, signal), 'the engine', engineTable)

  file = await workspace.copyOf(healthy)
  const naiveEvents = Math.min(events, mostNaiveEvents)
  const naive = await inChild<NaiveTask, NaiveRun>(
    new URL('naive.ts', import.meta.url),
    { file, events: naiveEvents },
    profiled('naive'),
  )
  const naivePerSecond = perSecond(naiveEvents, naive)
  say('naive', naivePerSecond)
  const naiveTable = await inspect({ what: 'checksum', file }, signal)
  mustEqual(
    'The naive way',
    naiveTable,
    'the log',
    await inspect({ what: 'expected', file, events: naiveEvents }, signal),
  )

  return {
    enginePerSecond,
    limitPerSecond,
    poisonPerSecond,
    naivePerSecond,
    naiveEvents,
    pageEvents,
    rssMb: engine.rssMb,
    rssMbBefore: engine.rssMbBefore,
    poisonRssMb: poison.rssMb,
    poisonHeld: counts?.held ?? 0,
  }
}

function perSecond(events: number, { elapsedMs }: { readonly elapsedMs: number }): number {
  return (events * 1_000) / elapsedMs
}

function inspect(task: InspectTask, signal: AbortSignal): Promise<Inspection> {
  return inChild<InspectTask, Inspection>(new URL('inspect.ts', import.meta.url), task, { signal })
}

/** A way that is fast and wrong is not worth comparing with. */
function mustEqual(one: string, a: Inspection, other: string, b: Inspection): void {
  if (a.checksum !== b.checksum) throw new Error(`${one} and ${other} have made different rows.`)
}

function profiling({ profile, signal }: Settings): (way: string) => ChildOptions {
  return (way) => {
    if (profile === undefined) return { signal }
    const name = `${way}-${process.pid}-${Date.now()}.cpuprofile`
    return { signal, execArgv: ['--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${name}`] }
  }
}
