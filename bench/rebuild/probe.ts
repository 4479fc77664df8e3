import { setTimeout } from 'node:timers/promises'
import { createLog, type Store } from 'holdfast'
import { bankEvents, homeCurrency } from '../projection/bank.ts'
import type { Commit } from './engine.ts'

/** Between two events, so that each finds the live engine at rest: a lag is then what one event has to wait. */
const pauseMs = { least: 5, most: 15 }
const patienceMs = 30_000

/**
 * Live traffic: one event at a time; the next one follows when the live engine has reported the commit. The time between is the lag.
 * An event whose commit is not reported, because another version took over meanwhile, is not a sample.
 */
export class Probe implements AsyncDisposable {
  readonly #store: Store
  readonly #keys: number
  readonly #run: Promise<void>
  #samples: number[] = []
  #told: Commit[] = []
  #look: () => void = () => undefined
  #isOver = false
  #count = 0

  constructor(store: Store, keys: number) {
    this.#store = store
    this.#keys = keys
    this.#run = this.#append()
  }

  get count(): number {
    return this.#count
  }

  tell(commit: Commit): void {
    this.#told.push(commit)
    this.#look()
  }

  /** The samples since the last time, in milliseconds. */
  take(): number[] {
    const samples = this.#samples
    this.#samples = []
    return samples
  }

  async stop(): Promise<void> {
    this.#isOver = true
    this.#look()
    await this.#run
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #append(): Promise<void> {
    const log = createLog({ store: this.#store, events: bankEvents })
    while (!this.#isOver) {
      const key = `account-${String(Math.floor(Math.random() * this.#keys)).padStart(6, '0')}`
      const data = { amount: 1, currency: homeCurrency, reference: 'live', counterparty: 'DE', purpose: 'live' }
      const begun = process.hrtime.bigint()
      const { position } = await log.append(key, [{ type: 'FundsCredited', data }])
      this.#count++
      const at = await this.#reach(position)
      if (at !== undefined) this.#samples.push(Number(at - begun) / 1_000_000)
      await setTimeout(pauseMs.least + Math.random() * (pauseMs.most - pauseMs.least))
    }
  }

  async #reach(position: number): Promise<bigint | undefined> {
    const until = performance.now() + patienceMs
    for (;;) {
      const commit = this.#told.find((told) => told.position >= position)
      this.#told = []
      if (commit) return BigInt(commit.at)
      if (this.#isOver || performance.now() > until) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#look = resolve
      await Promise.race([promise, setTimeout(200)])
    }
  }
}
