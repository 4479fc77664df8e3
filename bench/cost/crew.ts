import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Answer, Question, Task } from './task.ts'

const file = fileURLToPath(new URL('idle.ts', import.meta.url))

const farewellMs = 20_000

/** How many processes start at once: more of them make each other miss the connection timeout on a small machine. */
const together = 5

export type Sample = Extract<Answer, { kind: 'sample' }>

/** The processes of one store; `grow` adds to them. */
export class Crew implements AsyncDisposable {
  readonly #members: Member[] = []
  readonly #task: Omit<Task, 'act'>
  readonly #signal: AbortSignal

  constructor(task: Omit<Task, 'act'>, signal: AbortSignal) {
    this.#task = task
    this.#signal = signal
  }

  /** Makes what the subscriptions need, in a process of its own. */
  async prepare(): Promise<void> {
    const [code] = (await once(this.#fork('prepare'), 'exit')) as [number | null]
    if (code !== 0) throw new Error(`The process that prepares the store ended with exit code ${code}.`)
  }

  /** False when they have not all started in time. */
  async grow(to: number, seconds: number): Promise<boolean> {
    const late = new AbortController()
    const isLate = setTimeout(seconds * 1_000, false, { signal: late.signal }).catch(() => false)
    const isGrown = await Promise.race([this.#growTo(to).then(() => true), isLate])
    late.abort()
    return isGrown
  }

  async #growTo(to: number): Promise<void> {
    while (this.#members.length < to) {
      const size = Math.min(together, to - this.#members.length)
      const added = Array.from({ length: size }, () => new Member(this.#fork('idle')))
      this.#members.push(...added)
      await Promise.all(added.map((member) => member.started))
    }
  }

  sample(): Promise<Sample[]> {
    return Promise.all(this.#members.map((member) => member.sample()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()))
  }

  #fork(act: Task['act']): ChildProcess {
    // stdout is for the report.
    return fork(file, [JSON.stringify({ ...this.#task, act } satisfies Task)], {
      signal: this.#signal,
      stdio: ['ignore', 2, 'inherit', 'ipc'],
    })
  }
}

class Member {
  readonly started: Promise<unknown>
  readonly #child: ChildProcess
  readonly #died: Promise<never>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#died = once(child, 'exit').then(([code, signal]) => {
      throw new Error(`A process of the measurement ended with ${signal ?? `exit code ${code}`}.`)
    })
    this.#died.catch(() => undefined)
    this.started = this.#next('started')
    this.started.catch(() => undefined)
  }

  sample(): Promise<Sample> {
    const sample = this.#next('sample')
    this.#child.send('sample' satisfies Question)
    return sample
  }

  async stop(): Promise<void> {
    if (!this.#child.connected) return
    this.#child.send('stop' satisfies Question)
    const isLate = new AbortController()
    const kill = setTimeout(farewellMs, undefined, { signal: isLate.signal }).then(() => this.#child.kill('SIGKILL'))
    kill.catch(() => undefined)
    await this.#died.catch(() => undefined)
    isLate.abort()
  }

  #next<Kind extends Answer['kind']>(kind: Kind): Promise<Extract<Answer, { kind: Kind }>> {
    const told = once(this.#child, 'message').then(([answer]) => {
      if ((answer as Answer).kind !== kind) throw new Error(`Expected ${kind}, got ${(answer as Answer).kind}.`)
      return answer as Extract<Answer, { kind: Kind }>
    })
    return Promise.race([told, this.#died])
  }
}
