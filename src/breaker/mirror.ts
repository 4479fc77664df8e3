import { StoreError } from '../errors.ts'
import type { Runtime, Timers } from '../runtime/ports.ts'
import { actsOn } from './acts.ts'
import type { BreakerRecord, BreakerStore } from './breaker-store.ts'
import { type Circuit, closedCircuit, readCircuit, stateOf } from './circuit.ts'

export interface MirrorOptions {
  readonly store: BreakerStore
  readonly name: string
  readonly runtime: Runtime
  /** Called with every state that is read or written and differs from the last one. */
  readonly onCircuit: (from: Circuit, to: Circuit) => void
  /** The store began to fail. */
  readonly onDown: () => void
  /** The store answers again. */
  readonly onBack: () => void
  readonly onError: (error: unknown) => void
}

/** The result of a read of the store. */
export interface Reading {
  readonly breaker: BreakerRecord | undefined
  /** Store time. */
  readonly now: number
  /** When the store answered, by the monotonic clock. */
  readonly readAt: number
  /** `actsOn` the store before the read: it contains the acts up to this one. */
  readonly acts: number
}

// The maximum age of the known state. Changes by other processes are seen within 1 second, for one small read per second and
// breaker in use.
const freshMs = 1_000
// A store that hangs must not delay calls that don't depend on it.
const patienceMs = 5_000
// Every conflict means that another process succeeded, so ten conflicts need many processes.
const mostSaves = 10
const jitterMs = 20

/**
 * The known state of a shared circuit, and the way to change it. Operations run one at a time: waiting callers share one load,
 * and saves of one process don't conflict.
 *
 * While the store fails (`isDown`), callers don't wait for it: one attempt per second in the background detects when it is back.
 */
export class Mirror {
  circuit: Circuit = closedCircuit()
  isDown = false
  readonly #options: MirrorOptions
  #revision = 0
  #hasRead = false
  #triedAt = Number.NEGATIVE_INFINITY
  /** The acts of operators of this process that the last read contains. */
  #acts = 0
  /** The store's time minus `mono`; wall time until the store was read. */
  #offset: number
  #tail: Promise<unknown> = Promise.resolve()
  #refreshing: Promise<void> | undefined
  #isClosed = false

  constructor(options: MirrorOptions) {
    this.#options = options
    const { clock } = options.runtime
    this.#offset = clock.now() - clock.mono()
  }

  /** Store time. */
  now(): number {
    return Math.round(this.#options.runtime.clock.mono() + this.#offset)
  }

  /**
   * Resolves when the known state is fresh enough, or at once while the store is unavailable. After an act of this process it waits also
   * then, because the store has just answered that act.
   */
  async refresh(): Promise<void> {
    if (this.#isFresh() || this.#isClosed) return
    this.#refreshing ??= this.#serially(async () => {
      await this.#try(() => this.#load())
      this.#refreshing = undefined
    })
    if (this.isDown && !this.#missesAct()) return
    await this.#refreshing
    // The act came during the read.
    if (this.#missesAct()) await this.refresh()
  }

  /** Whether the store was read less than `ms` ago, and since the last act of an operator of this process. */
  isYounger(ms: number): boolean {
    return this.#options.runtime.clock.mono() - this.#triedAt < ms && !this.#missesAct()
  }

  /**
   * Takes the result of a read of several breakers. Runs in turn, and ignores a result that is older than the known state: this
   * process may have saved during the read. Never throws.
   */
  async learn(reading: Reading): Promise<void> {
    if (this.#isClosed) return
    await this.#serially(() =>
      this.#try(async () => {
        if ((reading.breaker?.revision ?? 0) >= this.#revision) this.#take(reading)
      }),
    )
  }

  /** Changes the shared circuit. Never throws; false if the store failed, or if other processes were always first. */
  async act(change: (circuit: Circuit, now: number) => Circuit): Promise<boolean> {
    if (this.isDown || this.#isClosed) return false
    return this.#serially(async () => !this.isDown && this.#try(() => this.#change(change)))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#tail
  }

  #isFresh(): boolean {
    return this.isYounger(freshMs)
  }

  #missesAct(): boolean {
    return this.#acts !== actsOn(this.#options.store)
  }

  async #serially<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#tail.then(work)
    this.#tail = run.catch(() => undefined)
    return run
  }

  async #try(work: () => Promise<void>): Promise<boolean> {
    const acts = actsOn(this.#options.store)
    try {
      await work()
      if (this.isDown) {
        this.isDown = false
        this.#options.onBack()
      }
      return true
    } catch (error) {
      this.#triedAt = this.#options.runtime.clock.mono()
      this.#acts = acts
      // A conflict, not a failure of the store.
      const wasDown = this.isDown
      if (!(error instanceof Outrun)) this.isDown = true
      if (this.isDown && !wasDown) this.#options.onDown()
      this.#options.onError(error)
      return false
    }
  }

  async #change(change: (circuit: Circuit, now: number) => Circuit): Promise<void> {
    const { name, store, runtime } = this.#options
    for (let saves = 0; saves < mostSaves; saves++) {
      // The known state is enough for the first try; if it is outdated, the save is refused.
      if (saves > 0 || !this.#isFresh() || !this.#hasRead) await this.#load()
      const next = change(this.circuit, this.now())
      if (next === this.circuit) return
      const breaker = { name, state: stateOf(next), record: JSON.stringify(next) }
      if (await answered(store.save(breaker, this.#revision), runtime.timers)) {
        this.#triedAt = runtime.clock.mono()
        return this.#learn(next, this.#revision + 1)
      }
      // From the second try on. The first conflict is usually with one process, which is done.
      if (saves > 0) await runtime.timers.sleep((runtime.random.u32() / 2 ** 32) * jitterMs * saves)
    }
    throw new Outrun(name)
  }

  async #load(): Promise<void> {
    const { name, store, runtime } = this.#options
    const acts = actsOn(store)
    const { breakers, now } = await answered(store.load([name]), runtime.timers)
    this.#take({ breaker: breakers[0], now, readAt: runtime.clock.mono(), acts })
  }

  #take({ breaker, now, readAt, acts }: Reading): void {
    this.#triedAt = readAt
    this.#acts = acts
    this.#offset = now - readAt
    this.#learn(breaker ? readCircuit(this.#options.name, breaker.record) : closedCircuit(), breaker?.revision ?? 0)
    this.#hasRead = true
  }

  #learn(circuit: Circuit, revision: number): void {
    const from = this.circuit
    this.#revision = revision
    this.circuit = circuit
    this.#options.onCircuit(from, circuit)
  }
}

/** The answer of the store, or an error if it takes too long. */
export async function answered<T>(work: Promise<T>, timers: Timers): Promise<T> {
  const done = new AbortController()
  const late = timers.sleep(patienceMs, done.signal).then((): never => {
    throw new StoreError('STORE_UNAVAILABLE', `The store did not answer within ${patienceMs} ms.`)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    done.abort()
  }
}

class Outrun extends StoreError {
  constructor(name: string) {
    super('STORE_BUSY', `Other processes kept changing the breaker ${JSON.stringify(name)} at the same time.`, {
      hint: 'Try again.',
    })
  }
}
