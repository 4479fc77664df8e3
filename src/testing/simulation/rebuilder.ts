import { HoldfastError } from '../../errors.ts'
import { createOperator, type Operator } from '../../operator/operator.ts'
import type { Store } from '../../store.ts'
import type { Rebuilt } from './app.ts'
import type { Chance } from './chance.ts'
import type { Process } from './process.ts'

export interface RebuilderParts {
  readonly rebuilt: Rebuilt
  readonly chance: Chance
  /** Opens a separate process for each act, and closes it. */
  readonly open: (name: string) => { readonly process: Process; readonly store: Store }
  readonly end: (process: Process) => void
  readonly tell: (who: string, kind: string, text: string) => void
  readonly pageEvents: number
}

/** The process that builds one more version at the end. */
export const lastBuilder = 'rebuilder-last'
/** How long a build may run before it is abandoned, or its process dies. */
const patienceMs = 6_000
/** How long a running act may take when the faults have stopped. An act whose process died never ends. */
const lastWordsMs = 12_000
const mostDecisions = 3
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const reason = 'to see what happens'

/** An operator who builds versions of a projection beside the live one, switches to them and back, drops them, and resets. */
export class Rebuilder {
  readonly #parts: RebuilderParts
  /** The processes of running and abandoned acts. */
  readonly #atWork = new Set<Process>()
  #acts = 0
  #newest = 1
  /** A version that is built and will become live at the end. */
  #prepared: number | undefined

  constructor(parts: RebuilderParts) {
    this.#parts = parts
  }

  /** The name of the projection. */
  get name(): string {
    return this.#parts.rebuilt.name
  }

  /** Never rejects. */
  async act(): Promise<void> {
    const { chance, open, end, tell, rebuilt } = this.#parts
    const what = chance.pick(['rebuild', 'rebuild', 'rebuild', 'switch', 'drop', 'reset'] as const)
    const { process, store } = open(`rebuilder-${++this.#acts}`)
    tell(process.name, what, rebuilt.name)
    this.#atWork.add(process)
    try {
      await this.#do(what, process, store)
    } catch (error) {
      // A refused or failed act is tried again later.
      if (!(error instanceof HoldfastError)) throw error
    }
    this.#atWork.delete(process)
    end(process)
  }

  /**
   * When everything is calm, a version that is built from the first event on must be able to become live, whatever operators
   * decided. Returns why it could not. Waits until acts that were requested during the faults have arrived.
   */
  async conclude(notBeforeMs: number): Promise<string | undefined> {
    const { open, end, tell, rebuilt } = this.#parts
    const { process, store } = open(lastBuilder)
    await this.#quiet(process, notBeforeMs)
    const isSwitched = this.#prepared !== undefined && (await this.#switchToPrepared(this.#prepared, process, store))
    if (isSwitched === true) return undefined
    if (isSwitched !== false) return isSwitched
    const version = ++this.#newest
    tell(process.name, 'conclude', `${rebuilt.name} ${version}`)
    try {
      const operator = this.#operator(version, process, store)
      const { end: ended } = await operator.rebuild(rebuilt.name, this.#building(process))
      if (ended !== 'level') return `version ${version} of ${rebuilt.name} is ${ended}, and was to be built`
      await operator.switchRebuild(rebuilt.name, { version, logger: silent, wait: '30s', reason })
    } catch (error) {
      return this.#refusalOf(version, error)
    }
    end(process)
    return undefined
  }

  /** When everything is calm and the code is not fixed: builds a version, on whose events operators decide before it becomes live. */
  async prepare(notBeforeMs: number, decide: () => Promise<void>): Promise<void> {
    const { open, end, tell, rebuilt } = this.#parts
    const { process, store } = open('rebuilder-early')
    await this.#quiet(process, notBeforeMs)
    const version = ++this.#newest
    tell(process.name, 'prepare', `${rebuilt.name} ${version}`)
    try {
      const operator = this.#operator(version, process, store)
      const { end: ended } = await operator.rebuild(rebuilt.name, this.#building(process))
      if (ended === 'level') this.#prepared = version
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
    }
    for (let decisions = 0; decisions < mostDecisions; decisions++) {
      await decide()
      await process.runtime.timers.sleep(1_000)
    }
    end(process)
  }

  /** False if it is impossible: it has passed events that were decided later. */
  async #switchToPrepared(version: number, process: Process, store: Store): Promise<boolean | string> {
    const { rebuilt, end, tell } = this.#parts
    tell(process.name, 'conclude', `${rebuilt.name} ${version}`)
    try {
      const operator = this.#operator(version, process, store)
      await operator.switchRebuild(rebuilt.name, { version, logger: silent, wait: '30s', reason })
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'REBUILD_STRAYS') return false
      return this.#refusalOf(version, error)
    }
    end(process)
    return true
  }

  #refusalOf(version: number, error: unknown): string {
    if (!(error instanceof HoldfastError)) throw error
    const { name } = this.#parts.rebuilt
    return `version ${version} of ${name} could not become live: ${error.code} ${error.message}`
  }

  /** Waits until no act is running, and acts that were requested during the faults have arrived. */
  async #quiet({ runtime: { clock, timers } }: Process, notBeforeMs: number): Promise<void> {
    const until = clock.mono() + lastWordsMs
    if (this.#acts > 0) await timers.sleep(Math.max(0, notBeforeMs - clock.mono()))
    while (this.#atWork.size > 0 && clock.mono() < until) await timers.sleep(100)
    this.#atWork.clear()
  }

  async #do(what: 'rebuild' | 'switch' | 'drop' | 'reset', process: Process, store: Store): Promise<void> {
    const { chance, rebuilt } = this.#parts
    if (what === 'rebuild') return this.#rebuild(process, store)
    const versions = await store.rebuilds.list(rebuilt.name)
    const live = versions.find(({ isLive }) => isLive)
    const others = versions.filter(({ isLive }) => !isLive)
    if (what === 'reset') {
      if (!live) return
      return void (await this.#operator(live.version, process, store).reset(rebuilt.name, reason))
    }
    if (others.length === 0) return
    const { version } = chance.pick(others)
    if (what === 'drop') return this.#operator(version, process, store).dropRebuild(rebuilt.name, { version, reason })
    return this.#switch(version, process, store)
  }

  async #rebuild(process: Process, store: Store): Promise<void> {
    const { chance, rebuilt, end } = this.#parts
    const isNew = this.#newest === 1 || chance.is(0.5)
    const version = isNew ? ++this.#newest : 1 + chance.below(this.#newest)
    const tired = new AbortController()
    const dies = chance.is(0.3)
    const afterMs = chance.upTo(patienceMs)
    void process.later(afterMs, () => (dies ? end(process) : tired.abort()))
    const building = { ...this.#building(process), signal: tired.signal }
    const { end: ended } = await this.#operator(version, process, store).rebuild(rebuilt.name, building)
    if (ended === 'level' && chance.is(0.8)) await this.#switch(version, process, store)
  }

  /** One whose program has a version of the code. */
  #operator(version: number, { runtime }: Process, store: Store): Operator {
    return createOperator({ store, subscriptions: [this.#parts.rebuilt.code(version)], by: 'person', ...runtime })
  }

  #building({ name }: Process) {
    const page = { events: this.#parts.pageEvents }
    return { load: 1, name, lease: '2s', page, logger: silent, reason } as const
  }

  async #switch(version: number, process: Process, store: Store): Promise<void> {
    const { chance, rebuilt } = this.#parts
    const waits = chance.is(0.7) ? ({ wait: '3s' } as const) : {}
    const options = { version, logger: silent, ...waits, reason }
    await this.#operator(version, process, store).switchRebuild(rebuilt.name, options)
  }
}
