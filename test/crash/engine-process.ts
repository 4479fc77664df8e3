import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { EngineCommand, EngineReport, EngineSettings } from './engine.ts'

const patienceMs = 20_000

type ReportOf<Kind extends EngineReport['kind']> = Extract<EngineReport, { kind: Kind }>

/** An engine in another process, seen from here. */
export class EngineProcess {
  readonly name: string
  readonly reports: EngineReport[] = []
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  readonly #process: ChildProcess
  readonly #listeners = new Set<() => void>()
  #marks = ''
  #errors = ''
  #ended = false

  constructor(settings: EngineSettings, { shell }: { readonly shell?: string } = {}) {
    this.name = settings.name
    const node = [process.execPath, '--conditions=@holdfast/source', script('engine.ts'), JSON.stringify(settings)]
    const [command = '', ...args] = shell ? ['/bin/sh', '-c', `${shell} && exec "$0" "$@"`, ...node] : node
    this.#process = spawn(command, args, {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc', 'pipe'],
      // The second and all later processes start four times faster.
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'holdfast-crash-compile-cache') },
    })
    this.#process.on('message', (report: EngineReport) => {
      this.reports.push(report)
      this.#wake()
    })
    const marks = this.#process.stdio[4] as Readable
    marks.setEncoding('latin1').on('data', (text: string) => {
      this.#marks += text
    })
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
    // `close` comes when everything it ever wrote has been read.
    this.exited = new Promise((resolve, reject) => {
      this.#process.on('error', reject).on('close', (code, signal) => {
        this.#ended = true
        this.#wake()
        resolve({ code, signal })
      })
    })
  }

  get pid(): number {
    return this.#process.pid as number
  }

  get commits(): number {
    return this.#marks.split('>').length - 1
  }

  /** Whether it is, or was when it died, between the beginning and the end of a commit. */
  get isCommitting(): boolean {
    return this.#marks.endsWith('<')
  }

  count(kind: EngineReport['kind']): number {
    return this.reports.filter((report) => report.kind === kind).length
  }

  send(command: EngineCommand): void {
    this.#process.send(command)
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal)
  }

  /** Resolves with the first report after the first `seen` that fits. */
  async until<Kind extends EngineReport['kind']>(
    kind: Kind,
    fits: (report: ReportOf<Kind>) => boolean = () => true,
    seen = 0,
    timeoutMs = patienceMs,
  ): Promise<ReportOf<Kind>> {
    let found: ReportOf<Kind> | undefined
    let next = seen
    await this.when(
      () => {
        for (; next < this.reports.length && !found; next++) {
          const report = this.reports[next] as EngineReport
          if (report.kind === kind && fits(report as ReportOf<Kind>)) found = report as ReportOf<Kind>
        }
        return found !== undefined
      },
      `report "${kind}"`,
      timeoutMs,
    )
    return found as unknown as ReportOf<Kind>
  }

  /** Resolves when a condition on this process holds; looks at it whenever the process says something. */
  async when(holds: () => boolean, what: string, timeoutMs = patienceMs): Promise<void> {
    if (holds()) return
    await new Promise<void>((resolve, reject) => {
      const stop = (settle: () => void) => {
        clearTimeout(timer)
        this.#listeners.delete(look)
        settle()
      }
      const look = () => {
        if (holds()) stop(resolve)
        else if (this.#ended) stop(() => reject(this.#problem(`ended without: ${what}`)))
      }
      const timer = setTimeout(() => stop(() => reject(this.#problem(`has no ${what} in ${timeoutMs} ms`))), timeoutMs)
      this.#listeners.add(look)
    })
  }

  /** Kill -9. Throws when there was nothing to kill, because it had ended by itself. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    const { code, signal } = await this.exited
    if (signal !== 'SIGKILL') throw this.#problem(`ended by itself, with ${signal ?? code}`)
  }

  /** Lets it stop in its own time. */
  async stop(): Promise<void> {
    this.send('stop')
    const { code, signal } = await this.exited
    if (code !== 0) throw this.#problem(`did not stop cleanly: ${signal ?? code}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.exited
  }

  #problem(what: string): Error {
    const last = JSON.stringify(this.reports.slice(-5))
    return new Error(
      `The engine process ${this.name} (${this.pid}) ${what}. Its last reports: ${last}. ${this.#errors}`,
    )
  }

  #wake(): void {
    for (const listener of this.#listeners) listener()
  }
}

export function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
