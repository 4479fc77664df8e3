import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** How much of what it said on stderr is kept for whoever wants to know why it ended. */
const lastWords = 4_000

/** Kills a process when its parent is gone: one that stands still can't see that for itself. */
const guardScript = 'read -r _ || kill -9 "$1"'

/** A process of ours that runs one of the scripts here, takes commands and sends reports. It never outlives this process. */
export class Child<Report, Command> {
  readonly exited: Promise<Exit>
  readonly #process: ChildProcess
  readonly #listeners = new Set<(report: Report) => void>()
  #errors = ''

  constructor(script: `${string}.ts` | URL, nodeOptions: readonly string[] = []) {
    const file = fileURLToPath(new URL(script, import.meta.url))
    this.#process = spawn(process.execPath, ['--conditions=@holdfast/source', ...nodeOptions, file], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      // The second and all later processes start several times faster.
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'holdfast-chaos-compile-cache') },
    })
    const dismissGuard = startGuard(this.pid)
    this.#process.on('message', (report) => {
      for (const listener of this.#listeners) listener(report as Report)
    })
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-lastWords)
    })
    // `close` comes when everything it ever wrote has been read.
    this.exited = new Promise((resolve, reject) => {
      this.#process.on('error', reject).on('close', (code, signal) => {
        dismissGuard()
        resolve({ code, signal })
      })
    })
  }

  get pid(): number {
    return this.#process.pid as number
  }

  get errors(): string {
    return this.#errors
  }

  /** Returns what ends the listening. */
  listen(listener: (report: Report) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  send(command: Command): void {
    // It may be dying; then there is nobody to tell.
    if (this.#process.connected) this.#process.send(command as object, () => undefined)
  }

  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal)
  }

  async kill(): Promise<Exit> {
    this.signal('SIGKILL')
    return this.exited
  }
}

function startGuard(pid: number): () => void {
  const guard = spawn('sh', ['-c', guardScript, 'guard', String(pid)], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    // Out of reach of a Ctrl-C in the terminal.
    detached: true,
  })
  guard.stdin.on('error', () => undefined)
  guard.unref()
  return () => guard.stdin.end('\n')
}

/** The other end: takes commands from the parent and ends with it. */
export function attendParent<Report extends object, Command>(onCommand: (command: Command) => void) {
  process.on('message', (command) => onCommand(command as Command))
  process.on('disconnect', () => process.exit(1))
  return {
    tell: (report: Report) => void process.send?.(report),
    /** Lets the process come to its end. */
    leave: () => process.removeAllListeners('disconnect').disconnect(),
  }
}
