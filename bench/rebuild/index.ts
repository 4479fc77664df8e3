import { setTimeout } from 'node:timers/promises'
import { createOperator, type Store } from 'holdfast'
import type { Benchmark, Settings } from '../benchmark.ts'
import { inChild } from '../child.ts'
import { openGround } from '../handlers/ground.ts'
import { quietLogger } from '../handlers/notify.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { accounts } from './accounts.ts'
import type { Checked } from './check.ts'
import type { Commit } from './engine.ts'
import { Probe } from './probe.ts'
import { BenchProcess } from './process.ts'
import { type Findings, summarise } from './report.ts'

const here = (file: string) => new URL(file, import.meta.url)

/** When the process that rebuilds is killed, by how much of it is done. */
const kills = [0.25, 0.5, 0.75]
const lookEveryMs = 50
/** Long enough for a median; a run that only shows that it works need not wait so long. */
const beforeMs = (events: number) => (events < 100_000 ? 2_000 : 10_000)

/**
 * The next version of a projection is built beside the live one, while live events come and are waited for one by one; the process that
 * builds is killed three times, the version is switched to, and everything is compared with the fold.
 */
export const rebuild: Benchmark = {
  summary: 'a rebuild beside live events, killed and resumed, then switched; and its effect on the lag',
  stores: ['postgres', 'sqlite'],
  defaults: { events: 1_000_000, rounds: 1 },
  run: async (settings) => {
    await using ground = await openGround(settings)
    const { signal, progress, events, keys } = settings
    const rounds: Findings[] = []
    for (let number = 1; number <= settings.rounds; number++) {
      const place = await ground.workspace.create(`round-${number}`)
      await inChild(ground.prepare, { place, events, keys }, { signal })
      progress(`round ${number}  ${events} events are in the log`)
      const run = await measure(settings, place)
      const checked = await inChild<unknown, Checked>(here('check.ts'), { place }, { signal })
      progress(`round ${number}  ${checked.events} events, ${checked.differences} differences`)
      rounds.push({ ...run, checked })
    }
    return summarise(settings, rounds, ground.facts)
  },
}

async function measure({ signal, progress, events, keys }: Settings, place: Place): Promise<Omit<Findings, 'checked'>> {
  await using store = await openStore(place)
  let probe: Probe | undefined
  const hear = (report: unknown) => {
    if (typeof report === 'object') probe?.tell(report as Commit)
  }
  await using live = new BenchProcess(here('engine.ts'), { place, version: 1 }, signal, hear)
  await live.until('drained')
  progress('the live version has caught up')
  await using next = new BenchProcess(here('engine.ts'), { place, version: 2 }, signal)
  await next.until('running')
  await using traffic = new Probe(store, keys)
  probe = traffic
  await setTimeout(1_000, undefined, { signal })
  traffic.take()
  await setTimeout(beforeMs(events), undefined, { signal })
  const before = traffic.take()
  const begun = performance.now()
  const count = await buildAndKill(store, place, events, signal, progress)
  const rebuildMs = performance.now() - begun
  const during = traffic.take()
  progress(`rebuilt in ${Math.round(rebuildMs)} ms`)
  const operator = createOperator({ store, subscriptions: [accounts(2)], by: 'bench' })
  const switching = performance.now()
  await operator.switchRebuild(accounts(2).name, { reason: 'to measure it', wait: '60s', logger: quietLogger })
  const switchMs = performance.now() - switching
  await traffic.stop()
  await reach(store, signal)
  await live.stop()
  await next.stop()
  await count.last[Symbol.asyncDispose]()
  return { before, during, rebuildMs, switchMs, kills: count.kills, live: traffic.count }
}

async function buildAndKill(
  store: Store,
  place: Place,
  events: number,
  signal: AbortSignal,
  progress: Settings['progress'],
) {
  let building = new BenchProcess(here('build.ts'), { place }, signal)
  const left = [...kills]
  while (!building.has('level')) {
    signal.throwIfAborted()
    await setTimeout(lookEveryMs)
    if ((await appliedOf(store)) / events < (left[0] ?? 2)) continue
    progress(`killed at ${left.shift()}`)
    await building.kill()
    building = new BenchProcess(here('build.ts'), { place }, signal)
  }
  return { kills: kills.length - left.length, last: building }
}

async function appliedOf(store: Store): Promise<number> {
  const generations = await store.rebuilds.list('accounts')
  const building = generations.find(({ isLive }) => !isLive)
  return building?.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.applied, 0) ?? 0
}

/** Until the version that took over has everything. */
async function reach(store: Store, signal: AbortSignal): Promise<void> {
  const head = await store.log.head()
  for (;;) {
    signal.throwIfAborted()
    const partitions = await store.subscriptions.partitions('accounts')
    if (partitions.every(({ checkpoint }) => checkpoint.position >= head)) return
    await setTimeout(lookEveryMs)
  }
}
