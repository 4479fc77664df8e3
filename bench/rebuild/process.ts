import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A process that can be waited for, stopped and killed. */
export class BenchProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #reports = new Set<unknown>()

  constructor(file: URL, task: object, signal: AbortSignal, onReport: (report: unknown) => void = () => undefined) {
    this.#child = fork(fileURLToPath(file), [JSON.stringify(task)], {
      signal,
      stdio: ['ignore', 2, 'inherit', 'ipc'],
    })
    // An interruption of the benchmark is reported elsewhere.
    this.#child.on('error', () => undefined)
    this.#child.on('message', (report) => {
      if (typeof report === 'string') this.#reports.add(report)
      onReport(report)
    })
    this.#exited = once(this.#child, 'exit')
  }

  async until(wanted: string): Promise<void> {
    while (!this.#reports.has(wanted)) {
      const ended = this.#exited.then(() => Promise.reject(new Error(`The process ended before it was ${wanted}.`)))
      await Promise.race([once(this.#child, 'message'), ended])
    }
  }

  has(report: string): boolean {
    return this.#reports.has(report)
  }

  /** Kill -9. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.send('stop')
    await this.#exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill()
  }
}
