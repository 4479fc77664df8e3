import { Child } from '../chaos/child.ts'
import type { EngineCommand, EngineReport, EngineSettings } from './engine.ts'

/** An engine in its place. */
export interface Member {
  readonly slot: number
  readonly name: string
  readonly child: Child<EngineReport, EngineCommand>
  readonly running: Promise<void>
}

const script = new URL('engine.ts', import.meta.url)
const stopMs = 20_000

/** So many engines on one store. Whoever is killed is replaced at once, as a supervisor would do it. */
export class Team implements AsyncDisposable {
  readonly problems: string[] = []
  readonly #settings: Omit<EngineSettings, 'name'>
  readonly #members: Member[] = []
  readonly #ending = new Set<Child<EngineReport, EngineCommand>>()
  #spare = new Child<EngineReport, EngineCommand>(script)
  #born = 0

  constructor(size: number, settings: Omit<EngineSettings, 'name'>) {
    this.#settings = settings
    for (let slot = 0; slot < size; slot++) this.#launch(slot)
  }

  member(slot: number): Member {
    return this.#members[slot] as Member
  }

  get size(): number {
    return this.#members.length
  }

  /** Kill -9. */
  async kill({ child }: Member): Promise<void> {
    this.#ending.add(child)
    await child.kill()
  }

  replace({ slot }: Member): void {
    this.#launch(slot)
  }

  /** Lets them stop in their own time. */
  async stop(): Promise<void> {
    await Promise.all(this.#members.map((member) => this.#stopOne(member)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const children = [this.#spare, ...this.#members.map(({ child }) => child)]
    for (const child of children) this.#ending.add(child)
    await Promise.all(children.map((child) => child.kill()))
  }

  async #stopOne({ name, child }: Member): Promise<void> {
    this.#ending.add(child)
    child.send({ verb: 'stop' })
    const timer = setTimeout(() => child.signal('SIGKILL'), stopMs)
    const { code, signal } = await child.exited
    clearTimeout(timer)
    if (code !== 0) this.problems.push(`${name} did not stop cleanly: ${signal ?? code}. ${child.errors}`)
  }

  #launch(slot: number): void {
    const child = this.#spare
    const name = `engine-${slot}.${++this.#born}`
    const running = new Promise<void>((resolve) => {
      child.listen(({ kind }) => kind === 'running' && resolve())
      void child.exited.then(() => resolve())
    })
    this.#members[slot] = { slot, name, child, running }
    child.send({ verb: 'run', settings: { ...this.#settings, name } })
    void this.#watch(name, child)
    // While this one works, the next one loads its code.
    this.#spare = new Child(script)
  }

  /** Nothing here makes an engine end by itself. */
  async #watch(name: string, child: Child<EngineReport, EngineCommand>): Promise<void> {
    const { code, signal } = await child.exited
    if (!this.#ending.has(child)) this.problems.push(`${name} ended by itself, with ${signal ?? code}. ${child.errors}`)
  }
}
