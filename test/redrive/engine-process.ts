import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EngineSettings, Report } from './engine.ts'

const patienceMs = 60_000

/** An engine in another process, seen from here. */
export class EngineProcess {
  readonly #process: ChildProcess
  readonly #exited: Promise<void>
  readonly #reports: Report[] = []
  #errors = ''
  #look: () => void = () => undefined

  constructor(settings: EngineSettings) {
    const script = fileURLToPath(new URL('engine.ts', import.meta.url))
    this.#process = spawn(
      process.execPath,
      ['--conditions=@holdfast/source', '--no-warnings', script, JSON.stringify(settings)],
      {
        stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
        env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'holdfast-redrive-compile-cache') },
      },
    )
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#process.on('message', (report: Report) => {
      this.#reports.push(report)
      this.#look()
    })
    this.#exited = new Promise((resolve) => {
      this.#process.on('close', () => {
        resolve()
        this.#look()
      })
    })
  }

  get commits(): number {
    return this.#reports.filter((report) => report === 'committed').length
  }

  async until(wanted: Report): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const fail = (what: string) => reject(new Error(`The engine ${what} before it was ${wanted}. ${this.#errors}`))
      const timer = setTimeout(() => fail('took too long'), patienceMs)
      this.#look = () => {
        if (this.#reports.includes(wanted)) resolve()
        else if (this.#process.exitCode !== null || this.#process.signalCode !== null) fail('ended')
        else return
        clearTimeout(timer)
      }
      this.#look()
    })
  }

  say(word: 'drain' | 'stop'): void {
    this.#process.send(word)
  }

  /** Kill -9. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  async finish(): Promise<void> {
    this.say('drain')
    await this.until('drained')
    this.say('stop')
    await this.#exited
    if (this.#process.exitCode !== 0) throw new Error(`The engine did not stop cleanly. ${this.#errors}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
