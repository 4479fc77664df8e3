import { HoldfastError } from '../../errors.ts'
import { createOperator } from '../../operator/operator.ts'
import { rebuild } from '../../rebuild/rebuild.ts'
import { dropRebuild, switchRebuild } from '../../rebuild/switch.ts'
import type { Store } from '../../store.ts'
import type { Rebuilt } from './app.ts'
import type { Chance } from './chance.ts'
import type { Process } from './process.ts'

export interface RebuilderParts {
  readonly rebuilt: Rebuilt
  readonly chance: Chance
  /** A process of its own for everything that is done, and its end. */
  readonly open: (name: string) => { readonly process: Process; readonly store: Store }
  readonly end: (process: Process) => void
  readonly tell: (who: string, kind: string, text: string) => void
  readonly pageEvents: number
}

/** Who builds one more when everything has come right. */
export const lastBuilder = 'rebuilder-last'
/** How long somebody builds before they are tired of it, or their process dies. */
const patienceMs = 6_000
/** How long what somebody has begun may take when nothing goes wrong any more. Who died over it never comes to an end. */
const lastWordsMs = 12_000
const mostDecisions = 3
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const why = { by: 'person', reason: 'to see what happens' }

/** Somebody who builds versions of a projection beside the live one, switches to them and back, drops them, and begins anew. */
export class Rebuilder {
  readonly #parts: RebuilderParts
  /** Who is at it, or died over it. */
  readonly #atWork = new Set<Process>()
  #acts = 0
  #newest = 1
  /** A version that is built, and is to become the live one in the end. */
  #prepared: number | undefined

  constructor(parts: RebuilderParts) {
    this.#parts = parts
  }

  /** Of what it builds. */
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
      // What is refused, or can't be done at the moment, is tried some other time.
      if (!(error instanceof HoldfastError)) throw error
    }
    this.#atWork.delete(process)
    end(process)
  }

  /**
   * When all is calm: whatever people have decided, a version that is built from the first event on can become the live one. Gives why it
   * could not. Not before a time at which nothing is on its way any more that somebody asked for while things went wrong.
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
      const code = rebuilt.code(version)
      const { end: ended } = await rebuild(code, this.#building(process, store))
      if (ended !== 'level') return `version ${version} of ${rebuilt.name} is ${ended}, and was to be built`
      await switchRebuild(code, { store, version, logger: silent, wait: '30s', ...why, ...process.runtime })
    } catch (error) {
      return this.#refusalOf(version, error)
    }
    end(process)
    return undefined
  }

  /** When all is calm, and the code is not mended: builds one, about whose events people decide before it becomes the live one. */
  async prepare(notBeforeMs: number, decide: () => Promise<void>): Promise<void> {
    const { open, end, tell, rebuilt } = this.#parts
    const { process, store } = open('rebuilder-early')
    await this.#quiet(process, notBeforeMs)
    const version = ++this.#newest
    tell(process.name, 'prepare', `${rebuilt.name} ${version}`)
    try {
      const { end: ended } = await rebuild(rebuilt.code(version), this.#building(process, store))
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

  /** False when that can't be: it has passed what was decided after that. */
  async #switchToPrepared(version: number, process: Process, store: Store): Promise<boolean | string> {
    const { rebuilt, end, tell } = this.#parts
    tell(process.name, 'conclude', `${rebuilt.name} ${version}`)
    try {
      const options = { store, version, logger: silent, wait: '30s', ...why, ...process.runtime } as const
      await switchRebuild(rebuilt.code(version), options)
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
    return `version ${version} of ${name} could not become the live one: ${error.code} ${error.message}`
  }

  /** Until nobody is at it any more, and nothing is on its way that somebody asked for while things went wrong. */
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
      const subscriptions = [rebuilt.code(live.version)]
      const operator = createOperator({ store, subscriptions, by: why.by, ...process.runtime })
      return void (await operator.reset(rebuilt.name, why.reason))
    }
    if (others.length === 0) return
    const { version } = chance.pick(others)
    if (what === 'drop') return dropRebuild(rebuilt.name, { store, version, ...why, ...process.runtime })
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
    const building = { ...this.#building(process, store), signal: tired.signal }
    const { end: ended } = await rebuild(rebuilt.code(version), building)
    if (ended === 'level' && chance.is(0.8)) await this.#switch(version, process, store)
  }

  #building({ name, runtime }: Process, store: Store) {
    const page = { events: this.#parts.pageEvents }
    return { store, load: 1, name, lease: '2s', page, logger: silent, ...why, ...runtime } as const
  }

  async #switch(version: number, process: Process, store: Store): Promise<void> {
    const { chance, rebuilt } = this.#parts
    const waits = chance.is(0.7) ? ({ wait: '3s' } as const) : {}
    const options = { store, version, logger: silent, ...waits, ...why, ...process.runtime }
    await switchRebuild(rebuilt.code(version), options)
  }
}
