import type { Timers } from '../runtime/ports.ts'

/**
 * What stands between a process and everything else. While it is stopped, nothing of it reaches the store, nothing it asked for is
 * answered, and its time stands still. Dead is the same for ever: it gives nothing back, and says no last words.
 */
export class Mortality {
  #isDead = false
  /** Whoever wants to go on waits here. */
  #gate: Promise<void> | undefined

  get isDead(): boolean {
    return this.#isDead
  }

  die(): void {
    this.#isDead = true
    this.#gate = new Promise(() => undefined)
  }

  /** Gives what lets it go on. */
  stop(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#gate = promise
    return () => {
      if (!this.#isDead) this.#gate = undefined
      resolve()
    }
  }

  timers(timers: Timers): Timers {
    return {
      sleep: async (ms, signal) => {
        await timers.sleep(ms, signal)
        await this.#gate
      },
      yield: async () => {
        await timers.yield()
        await this.#gate
      },
    }
  }

  /** The same object, whose methods are answered only while the process lives; and so are those of what is in it. */
  guard<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value === 'object' && value !== null) return this.guard(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const ask = (): unknown => Reflect.apply(value, target, args)
          const answer = this.#gate ? this.#gate.then(ask) : ask()
          return answer instanceof Promise ? this.answer(answer) : answer
        }
      },
    })
  }

  /** What comes back, if the process is there to hear it. */
  async answer<T>(answer: Promise<T>): Promise<T> {
    const [result] = await Promise.allSettled([answer])
    await this.#gate
    if (result.status === 'rejected') throw result.reason
    return result.value
  }
}
