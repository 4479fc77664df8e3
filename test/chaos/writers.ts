import { Bus } from './bus.ts'
import { Child } from './child.ts'
import { AppendRecord } from './record.ts'
import type { Tally } from './tally.ts'
import type { WriterCommand, WriterReport } from './writer.ts'

export interface WritersOptions {
  readonly url: string
  readonly seed: number
  readonly count: number
  readonly tally: Tally
}

const pauseMs = 30_000

/** Processes that append, and the record of what they were told. */
export class Writers {
  readonly record = new AppendRecord()
  readonly reports = new Bus<WriterReport & { readonly writer: number }>()
  readonly #children: readonly Child<WriterReport, WriterCommand>[]
  readonly #tally: Tally
  #isEnding = false

  constructor({ url, seed, count, tally }: WritersOptions) {
    this.#tally = tally
    this.#children = Array.from({ length: count }, () => new Child<WriterReport, WriterCommand>('writer.ts'))
    for (const [i, child] of this.#children.entries()) {
      child.listen((report) => this.#hear(i, report))
      child.send({ verb: 'run', settings: { url, name: `w${i}`, seed: seed * 100 + i * 10 } })
      void this.#watch(i, child)
    }
  }

  /** Resolves when every append has its outcome, as far as it ever will. */
  async pause(): Promise<void> {
    const paused = this.#children.map((_, i) =>
      this.reports.next(({ kind, writer }) => kind === 'paused' && writer === i, pauseMs),
    )
    this.#tell({ verb: 'pause' })
    const heard = await Promise.all(paused)
    if (heard.some((report) => !report)) this.#tally.problem(`An append did not come to an end in ${pauseMs} ms.`)
  }

  resume(): void {
    this.#tell({ verb: 'resume' })
  }

  /** The next events of new keys are poison. */
  poison(): void {
    this.#tell({ verb: 'poison' })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true
    await Promise.all(this.#children.map((child) => child.kill()))
  }

  #tell(command: WriterCommand): void {
    for (const child of this.#children) child.send(command)
  }

  #hear(writer: number, report: WriterReport): void {
    if (report.kind === 'acknowledged') {
      this.record.acknowledge(report.batch)
      if (report.repeated) this.#tally.add('repeated')
    } else if (report.kind === 'unknown') {
      this.record.giveUp(report.batch)
      this.#tally.add('unknownAppends')
    } else if (report.kind === 'problem') this.#tally.problem(report.what)
    this.reports.publish({ ...report, writer })
  }

  async #watch(writer: number, child: Child<WriterReport, WriterCommand>): Promise<void> {
    const { code, signal } = await child.exited
    if (!this.#isEnding)
      this.#tally.problem(`The writer ${writer} ended by itself, with ${signal ?? code}: ${child.errors}`)
  }
}
