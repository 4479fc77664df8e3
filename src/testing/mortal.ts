import type { Timers } from '../runtime/ports.ts'

/**
 * The boundary between a process and everything else. While it is stopped, none of its calls reach the store, no call is
 * answered, and its time stands still. Dead is the same forever: nothing is released.
 */
export class Mortality {
  #isDead = false
  /** Continuations wait here. */
  #gate: Promise<void> | undefined

  get isDead(): boolean {
    return this.#isDead
  }

  die(): void {
    this.#isDead = true
    this.#gate = new Promise(() => undefined)
  }

  /** Returns a function that lets the process continue. */
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

  /** The same object, whose methods, also those of nested objects, are answered only while the process is alive. */
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

  /** The answer, if the process is alive to receive it. */
  async answer<T>(answer: Promise<T>): Promise<T> {
    const [result] = await Promise.allSettled([answer])
    await this.#gate
    if (result.status === 'rejected') throw result.reason
    return result.value
  }
}
