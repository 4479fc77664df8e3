import { setTimeout } from 'node:timers/promises'
import { createAdmin } from './admin.ts'
import { checkAll } from './check/all.ts'
import { createMomentCheck } from './check/moment.ts'
import { createChaosDatabase } from './database.ts'
import { Fleet } from './fleet.ts'
import { type Ground, roles } from './ground.ts'
import type { Nemesis, Random, Scene } from './scene.ts'
import { measureTakeover } from './takeover.ts'
import type { Tally } from './tally.ts'
import { Writers } from './writers.ts'

export interface RoundOptions {
  readonly ground: Ground
  readonly database: string
  readonly seed: number
  readonly random: Random
  readonly tally: Tally
  /** How many kills are measured, with the settings that Holdfast has by itself. */
  readonly takeovers: number
  readonly nemeses: readonly Nemesis[]
  readonly onCycle: () => void
}

/** A lease so short that a process can be stopped past it in passing, and pages so small that there are many commits. */
const hasty = { lease: '1s', poll: '20ms', page: { events: 40 } } as const
const cyclesPerCheck = 20
const progressMs = 20_000
const writerCount = 2

/** One database from its beginning to its end. A new one now and then keeps the complete checks from growing with the run. */
export async function runRound(options: RoundOptions): Promise<void> {
  const { ground, database, seed, random, tally, onCycle } = options
  await using created = await createChaosDatabase(ground, database)
  const { url } = created
  await using admin = createAdmin(url)
  const urls = ground.engineProxies.map((proxy) => ground.url(proxy, roles.engine, database))
  const writerUrl = ground.url(ground.writerProxy, roles.writer, database)
  await using writers = new Writers({ url: writerUrl, seed, count: writerCount, tally })
  const checkMoment = createMomentCheck(admin, tally)
  const place = { ground, database, admin, writers, random, tally }

  {
    await using fleet = await Fleet.start({ urls, settings: {}, tally })
    for (let i = 0; i < options.takeovers && !tally.isEnough; i++) {
      await cycle('take-over', () => measureTakeover({ ...place, fleet }))
      await checkMoment()
    }
    await fleet.stop()
  }

  await using fleet = await Fleet.start({ urls, settings: hasty, tally })
  const scene: Scene = { ...place, fleet }
  for (const [i, nemesis] of options.nemeses.entries()) {
    if (tally.isEnough) return
    await cycle(nemesis.name, () => nemesis.strike(scene))
    await settle(scene)
    await checkMoment()
    if ((i + 1) % cyclesPerCheck === 0) await checkAll(scene, url)
  }
  tally.place = `${database}, the end`
  const { appended, applied, held } = await checkAll(scene, url)
  tally.add('appended', appended)
  tally.add('applied', applied)
  tally.add('held', held)
  await fleet.stop()

  async function cycle(name: string, run: () => Promise<void>): Promise<void> {
    tally.add('cycles')
    tally.place = `${database}, cycle ${tally.of('cycles')} (${name})`
    await run()
    onCycle()
  }
}

/** Half of the time the next nemesis comes before everybody has found their feet again. */
async function settle({ fleet, random, tally }: Scene): Promise<void> {
  if (random.below(2) === 0) return setTimeout(random.below(150))
  if (!(await fleet.reports.next(({ kind }) => kind === 'committed', progressMs)))
    tally.problem(`Nobody committed anything in ${progressMs} ms.`)
}
