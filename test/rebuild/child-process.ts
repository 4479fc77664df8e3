import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ChildReport, ChildSettings } from './child.ts'

/** A process that runs the live version or builds the other, seen from here. */
export class RebuildProcess implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown>

  constructor(settings: ChildSettings) {
    const script = fileURLToPath(new URL('child.ts', import.meta.url))
    this.#process = spawn(
      process.execPath,
      ['--conditions=@holdfast/source', '--no-warnings', script, JSON.stringify(settings)],
      {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'holdfast-rebuild-compile-cache') },
      },
    )
    this.#exited = once(this.#process, 'exit')
  }

  /** Rejects when it ends before. */
  async until(wanted: ChildReport): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#process.on('message', (report: ChildReport) => report === wanted && resolve())
    this.#process.on('exit', (code, signal) => reject(new Error(`It ended (${signal ?? code}) before ${wanted}.`)))
    await promise
  }

  /** Kill -9. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  async stop(): Promise<void> {
    if (this.#process.connected) this.#process.send('stop')
    await this.#exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill()
  }
}
