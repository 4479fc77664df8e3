import type { Counts } from 'holdfast'
import { rounded, type Settings } from '../benchmark.ts'
import { inChild } from '../child.ts'
import type { EventsSpec } from '../projection/events.ts'
import type { Place, Prepared, PrepareTask } from '../projection/way.ts'
import type { Drained, DrainTask } from './drain.ts'
import type { HandlerGround } from './ground.ts'
import type { HoldTask } from './hold.ts'
import type { IdealTask } from './ideal.ts'
import type { OpenLoad, OpenLoadTask } from './open-load.ts'

/** Many where the question is one of throughput; where it is one of waiting, as many as a handler has with nothing set. */
const draining = 64
const waiting = 16

export interface Rate {
  readonly elapsedMs: number
  readonly perSecond: number
}

export interface Waits {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failedAttempts: number
  readonly standstills: number
  readonly held: number
}

export interface Cost {
  readonly microsPerEvent: number
  readonly cpuMicrosPerEvent: number
  readonly startMs: number
}

export interface Sizes {
  readonly heldLanes: number
  /** How many events the second question takes, and the third. */
  readonly loadEvents: number
  readonly costEvents: number
}

/** The sides of the three questions, and the logs they run on. */
export class Sides {
  readonly #settings: Settings
  readonly #ground: HandlerGround
  readonly #sizes: Sizes

  constructor(settings: Settings, ground: HandlerGround, sizes: Sizes) {
    this.#settings = settings
    this.#ground = ground
    this.#sizes = sizes
  }

  async prepare(): Promise<void> {
    const { events, keys } = this.#settings
    const { heldLanes, costEvents } = this.#sizes
    await this.#fill('backlog', { events, keys })
    await this.#fill('empty', { events: 0, keys })
    for (const log of ['flowing', 'held']) {
      const place = await this.#fill(log, { events: heldLanes + costEvents, keys, singles: heldLanes })
      const fail = log === 'held'
      if (fail) this.#settings.progress(`holding ${heldLanes.toLocaleString('en')} lanes`)
      await this.#child<HoldTask, number>('hold', { place, singles: heldLanes, fail })
    }
  }

  readonly ideal = async (): Promise<Rate> => {
    const { events } = this.#settings
    return rateOf(events, await this.#child<IdealTask, number>('ideal', { events, concurrency: draining }))
  }

  readonly io = async (): Promise<Rate> => {
    const { events } = this.#settings
    const drained = await this.#drain('backlog', 'io', events)
    if (drained.events !== events) throw new Error(`${drained.events} events were handled, of ${events}`)
    return rateOf(events, drained.elapsedMs)
  }

  readonly healthy = (): Promise<Waits> => this.#load(false)
  readonly failing = (): Promise<Waits> => this.#load(true)

  readonly flowing = (): Promise<Cost> => this.#cost('flowing')
  readonly held = (): Promise<Cost> => this.#cost('held')

  async #load(fail: boolean): Promise<Waits> {
    const { keys } = this.#settings
    const { loadEvents } = this.#sizes
    const place = await this.#ground.workspace.copyOf('empty')
    const task = { place, events: loadEvents, keys, concurrency: waiting, fail }
    const { handledMs, failedAttempts, standstills } = await this.#child<OpenLoadTask, OpenLoad>('open-load', task)
    const { held } = await this.#inspect(place)
    const sorted = handledMs.toSorted((a, b) => a - b)
    const at = (share: number) => rounded(sorted[Math.ceil(share * sorted.length) - 1] as number)
    return { p50Ms: at(0.5), p99Ms: at(0.99), failedAttempts, standstills, held }
  }

  async #cost(log: string): Promise<Cost> {
    const { perEventMs, perEventCpuMs, startMs } = await this.#drain(log, 'nothing', this.#sizes.costEvents)
    return {
      microsPerEvent: rounded(perEventMs * 1_000),
      cpuMicrosPerEvent: rounded(perEventCpuMs * 1_000),
      startMs: rounded(startMs),
    }
  }

  async #drain(log: string, work: DrainTask['work'], events: number): Promise<Drained> {
    const place = await this.#ground.workspace.copyOf(log)
    const drained = await this.#child<DrainTask, Drained>('drain', { place, concurrency: draining, work, events })
    const { held } = await this.#inspect(place)
    const expected = log === 'held' ? this.#sizes.heldLanes : 0
    if (held !== expected) throw new Error(`${held} events are held, of ${expected}`)
    return drained
  }

  #inspect(place: Place): Promise<Counts> {
    const { signal } = this.#settings
    return inChild<{ place: Place }, Counts>(new URL('inspect.ts', import.meta.url), { place }, { signal })
  }

  async #fill(log: string, spec: EventsSpec): Promise<Place> {
    const { signal, progress } = this.#settings
    progress(`preparing ${spec.events.toLocaleString('en')} events, ${log}`)
    const place = await this.#ground.workspace.create(log)
    await inChild<PrepareTask, Prepared>(this.#ground.prepare, { place, ...spec }, { signal })
    return place
  }

  #child<Task, Answer>(program: string, task: Task): Promise<Answer> {
    const { signal, profile } = this.#settings
    const name = `${program}-${process.pid}-${Date.now()}.cpuprofile`
    const execArgv = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${name}`]
    return inChild<Task, Answer>(new URL(`${program}.ts`, import.meta.url), task, { signal, execArgv })
  }
}

function rateOf(events: number, elapsedMs: number): Rate {
  return { elapsedMs, perSecond: (events * 1_000) / elapsedMs }
}
