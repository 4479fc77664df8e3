import type { Runtime } from '../../runtime/ports.ts'
import type { Attempt } from './attempt.ts'

/**
 * Aborts attempts at their timeout. All attempts of a handler have the same timeout, so the oldest one expires first and one timer is
 * enough. Most attempts end before the timer fires; then it is set for the next one, if there is one.
 */
export class Deadlines {
  readonly #timeoutMs: number
  readonly #runtime: Runtime
  /** The deadline of each attempt, by the monotonic clock, in order. */
  readonly #attempts = new Map<Attempt, number>()
  readonly #closed = new AbortController()
  #isWatching = false

  constructor(timeoutMs: number, runtime: Runtime) {
    this.#timeoutMs = timeoutMs
    this.#runtime = runtime
  }

  add(attempt: Attempt): void {
    this.#attempts.set(attempt, this.#runtime.clock.mono() + this.#timeoutMs)
    if (!this.#isWatching) void this.#watch()
  }

  delete(attempt: Attempt): void {
    this.#attempts.delete(attempt)
  }

  close(): void {
    this.#closed.abort()
  }

  /** Never rejects. */
  async #watch(): Promise<void> {
    const { clock, timers } = this.#runtime
    const { signal } = this.#closed
    this.#isWatching = true
    for (let next = this.#next(); next !== undefined && !signal.aborted; next = this.#next()) {
      await timers.sleep(Math.max(0, next - clock.mono()), signal)
      this.#expire(clock.mono())
    }
    this.#isWatching = false
  }

  #next(): number | undefined {
    for (const until of this.#attempts.values()) return until
    return undefined
  }

  #expire(now: number): void {
    for (const [attempt, until] of this.#attempts) {
      if (until > now) return
      this.#attempts.delete(attempt)
      attempt.giveUp(new DOMException(`The handler took longer than ${this.#timeoutMs} ms.`, 'TimeoutError'))
    }
  }
}
