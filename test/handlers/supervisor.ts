import { setTimeout } from 'node:timers/promises'
import { Child, type Exit } from '../chaos/child.ts'
import type { EngineCommand, EngineReport, EngineSettings } from './engine.ts'

/** Starts an engine anew whenever it ends, as a supervisor does. */
export class Supervisor implements AsyncDisposable {
  /** How each of them ended. */
  readonly deaths: Exit[] = []
  /** What the last of them said on its way. */
  lastWords = ''
  readonly #settings: EngineSettings
  readonly #nodeOptions: readonly string[]
  #child: Child<EngineReport, EngineCommand>
  #spare: Child<EngineReport, EngineCommand>
  #isOver = false

  constructor(settings: EngineSettings, nodeOptions: readonly string[] = []) {
    this.#settings = settings
    this.#nodeOptions = nodeOptions
    this.#spare = this.#prepare()
    this.#child = this.#launch()
  }

  /** Until something holds; or too many have died, or it takes too long, which throws. */
  async until(holds: () => Promise<boolean>, mostDeaths: number, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs
    while (!(await holds())) {
      if (this.deaths.length > mostDeaths) throw new Error(`${this.deaths.length} processes died. ${this.lastWords}`)
      if (performance.now() > deadline) throw new Error(`It took longer than ${timeoutMs} ms. ${this.#child.errors}`)
      await setTimeout(20)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await Promise.all([this.#child.kill(), this.#spare.kill()])
  }

  #prepare(): Child<EngineReport, EngineCommand> {
    return new Child(new URL('engine.ts', import.meta.url), this.#nodeOptions)
  }

  #launch(): Child<EngineReport, EngineCommand> {
    const child = this.#spare
    this.#spare = this.#prepare()
    child.send({ verb: 'run', settings: { ...this.#settings, name: `engine-${this.deaths.length + 1}` } })
    void this.#watch(child)
    return child
  }

  async #watch(child: Child<EngineReport, EngineCommand>): Promise<void> {
    const exit = await child.exited
    if (this.#isOver) return
    this.deaths.push(exit)
    this.lastWords = child.errors
    this.#child = this.#launch()
  }
}
