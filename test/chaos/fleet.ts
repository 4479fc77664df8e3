import { Bus } from './bus.ts'
import { Child } from './child.ts'
import type { EngineCommand, EngineReport, EngineSettings } from './engine.ts'
import type { Tally } from './tally.ts'

/** A process with an engine, in its place. */
export interface Member {
  readonly slot: number
  readonly name: string
  readonly child: Child<EngineReport, EngineCommand>
}

export type FleetReport = EngineReport & { readonly member: Member }

export interface FleetOptions {
  /** How each place reaches the database. */
  readonly urls: readonly string[]
  readonly settings: Omit<EngineSettings, 'url' | 'name'>
  readonly tally: Tally
}

const startMs = 30_000
const stopMs = 20_000

/** So many engines, each in a process of its own and each with a way of its own to the database. */
export class Fleet {
  readonly reports = new Bus<FleetReport>()
  readonly #options: FleetOptions
  readonly #members: Member[] = []
  readonly #ending = new Set<Child<EngineReport, EngineCommand>>()
  #spare = new Child<EngineReport, EngineCommand>('engine.ts')
  #born = 0
  #isOver = false

  private constructor(options: FleetOptions) {
    this.#options = options
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options)
    const running = options.urls.map(async (_, slot) => {
      const isSlot = (report: FleetReport) => report.kind === 'running' && report.member.slot === slot
      if (!(await fleet.reports.next(isSlot, startMs))) options.tally.problem(`The engine ${slot} did not start.`)
    })
    for (const slot of options.urls.keys()) fleet.#launch(slot)
    await Promise.all(running)
    return fleet
  }

  get members(): readonly Member[] {
    return this.#members
  }

  /** Kill -9. Its place is empty until it is filled. */
  async kill({ child }: Member): Promise<void> {
    this.#ending.add(child)
    await child.kill()
  }

  /** Another process takes the place of one that was killed, unless one has already. */
  fill(member: Member): void {
    if (!this.#isOver && this.#members[member.slot] === member) this.#launch(member.slot)
  }

  /** Lets them stop in their own time. */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all([this.#retire(this.#spare), ...this.#members.map((member) => this.#stopOne(member))])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await Promise.all([this.#spare, ...this.#members.map(({ child }) => child)].map((child) => this.#retire(child)))
  }

  async #retire(child: Child<EngineReport, EngineCommand>): Promise<void> {
    this.#ending.add(child)
    await child.kill()
  }

  async #stopOne({ name, child }: Member): Promise<void> {
    const { tally } = this.#options
    this.#ending.add(child)
    child.send({ verb: 'stop' })
    const timer = setTimeout(() => {
      tally.problem(`The engine ${name} did not stop in ${stopMs} ms.`)
      child.signal('SIGKILL')
    }, stopMs)
    const { code, signal } = await child.exited
    clearTimeout(timer)
    if (code !== 0 && signal === null) tally.problem(`The engine ${name} stopped with ${code}: ${child.errors}`)
  }

  #launch(slot: number): void {
    const { urls, settings } = this.#options
    const child = this.#spare
    const name = `engine-${slot}.${++this.#born}`
    const member: Member = { slot, name, child }
    this.#members[slot] = member
    child.listen((report) => this.#hear(member, report))
    child.send({ verb: 'run', settings: { ...settings, url: urls[slot] as string, name } })
    void this.#watch(member)
    // While this one works, the next one loads its code.
    this.#spare = new Child('engine.ts')
  }

  #hear(member: Member, report: EngineReport): void {
    const { tally } = this.#options
    if (report.kind === 'fenced') tally.add('fenced')
    else if (report.kind === 'refused') tally.add('refused')
    else if (report.kind === 'unanswered') tally.add(report.happened ? 'unknownCommits' : 'undoneCommits')
    else if (report.kind === 'failed') void this.#replace(member, `${report.subscription} failed: ${report.why}`)
    this.reports.publish({ ...report, member })
  }

  /** No fault of ours makes an engine end by itself. */
  async #watch(member: Member): Promise<void> {
    const { name, child } = member
    const { code, signal } = await child.exited
    if (this.#ending.has(child)) return
    this.#options.tally.problem(`The engine ${name} ended by itself, with ${signal ?? code}: ${child.errors}`)
    this.fill(member)
  }

  /** What waiting can't mend, a supervisor might, by a new start; a problem it is all the same. */
  async #replace(member: Member, why: string): Promise<void> {
    if (this.#ending.has(member.child)) return
    this.#options.tally.problem(`${member.name}: ${why}`)
    await this.kill(member)
    this.fill(member)
  }
}
