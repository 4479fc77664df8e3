import { StoreError } from '../errors.ts'
import type { Runtime, Timers } from '../runtime/ports.ts'
import type { BreakerRecord, BreakerStore } from './breaker-store.ts'
import { type Circuit, closedCircuit, readCircuit, stateOf } from './circuit.ts'

export interface MirrorOptions {
  readonly store: BreakerStore
  readonly name: string
  readonly runtime: Runtime
  /** Called with everything that is read or written and differs from what was known. */
  readonly onCircuit: (from: Circuit, to: Circuit) => void
  /** The store began to fail. */
  readonly onDown: () => void
  /** The store answers again. */
  readonly onBack: () => void
  readonly onError: (error: unknown) => void
}

// How old what we know may be: what others did is seen within a second, for one small read a second of a breaker in use.
const freshMs = 1_000
// A store that hangs must not hold up calls that have nothing to do with it.
const patienceMs = 5_000
// Everybody who is in the way of a save has got his own through, so it takes many of them to lose ten times.
const mostSaves = 10
const jitterMs = 20

/**
 * What this process knows of a shared circuit, and its way to change it. One act at a time: a load is shared by all who wait for it, and
 * nobody is in his own way when he saves.
 *
 * While the store fails (`isDown`) nobody waits for it: one attempt a second in the background finds out when it is back.
 */
export class Mirror {
  circuit: Circuit = closedCircuit()
  isDown = false
  readonly #options: MirrorOptions
  #revision = 0
  #hasRead = false
  #triedAt = Number.NEGATIVE_INFINITY
  /** The store's time less our `mono`; until it has told us, the time of the wall. */
  #offset: number
  #tail: Promise<unknown> = Promise.resolve()
  #refreshing: Promise<void> | undefined
  #isClosed = false

  constructor(options: MirrorOptions) {
    this.#options = options
    const { clock } = options.runtime
    this.#offset = clock.now() - clock.mono()
  }

  /** In the time of the store. */
  now(): number {
    return Math.round(this.#options.runtime.clock.mono() + this.#offset)
  }

  /** Resolves when what we know is fresh enough, or at once while that can't be had. */
  async refresh(): Promise<void> {
    if (this.#isFresh() || this.#isClosed) return
    this.#refreshing ??= this.#serially(async () => {
      await this.#try(() => this.#load())
      this.#refreshing = undefined
    })
    if (!this.isDown) await this.#refreshing
  }

  /** Whether the store was asked less than so long ago. */
  isYounger(ms: number): boolean {
    return this.#options.runtime.clock.mono() - this.#triedAt < ms
  }

  /**
   * Takes what a read of several breakers found in the store. In its turn, and not if it is older than what is known: while that read was
   * under way this process may have saved something itself. Never throws.
   */
  async learn(breaker: BreakerRecord | undefined, now: number, readAt: number): Promise<void> {
    if (this.#isClosed) return
    await this.#serially(() =>
      this.#try(async () => {
        if ((breaker?.revision ?? 0) >= this.#revision) this.#take(breaker, now, readAt, false)
      }),
    )
  }

  /** Changes the shared circuit. Never throws; false when the store could not, or when other processes were first all the time. */
  async act(change: (circuit: Circuit, now: number) => Circuit): Promise<boolean> {
    if (this.isDown || this.#isClosed) return false
    return this.#serially(async () => !this.isDown && this.#try(() => this.#change(change)))
  }

  /** The same for a person: throws when it can't be done, and tries even if the store has just failed. */
  async insist(change: (circuit: Circuit, now: number) => Circuit): Promise<void> {
    if (this.#isClosed) throw new StoreError('STORE_CLOSED', 'This breaker was closed.')
    await this.#serially(() => this.#change(change, { isPerson: true }))
    this.#answered()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#tail
  }

  #isFresh(): boolean {
    return this.isYounger(freshMs)
  }

  async #serially<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#tail.then(work)
    this.#tail = run.catch(() => undefined)
    return run
  }

  async #try(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      this.#answered()
      return true
    } catch (error) {
      this.#triedAt = this.#options.runtime.clock.mono()
      // Lost to others, not to the store: there is nothing wrong with it.
      const wasDown = this.isDown
      if (!(error instanceof Outrun)) this.isDown = true
      if (this.isDown && !wasDown) this.#options.onDown()
      this.#options.onError(error)
      return false
    }
  }

  #answered(): void {
    if (!this.isDown) return
    this.isDown = false
    this.#options.onBack()
  }

  async #change(change: (circuit: Circuit, now: number) => Circuit, { isPerson = false } = {}): Promise<void> {
    const { name, store, runtime } = this.#options
    for (let saves = 0; saves < mostSaves; saves++) {
      // What we know is good enough to begin with: if it isn't so any more, the save will tell.
      if (saves > 0 || !this.#isFresh() || !this.#hasRead) await this.#load({ isPerson })
      const next = change(this.circuit, this.now())
      if (next === this.circuit) return
      const breaker = { name, state: stateOf(next), record: JSON.stringify(next) }
      if (await answered(store.save(breaker, this.#revision), runtime.timers)) {
        this.#triedAt = runtime.clock.mono()
        return this.#learn(next, this.#revision + 1)
      }
      // Only from the second time on: mostly it is one other process, and that one is through.
      if (saves > 0) await runtime.timers.sleep((runtime.random.u32() / 2 ** 32) * jitterMs * saves)
    }
    throw new Outrun(name)
  }

  async #load({ isPerson = false } = {}): Promise<void> {
    const { name, store, runtime } = this.#options
    const { breakers, now } = await answered(store.load([name]), runtime.timers)
    this.#take(breakers[0], now, runtime.clock.mono(), isPerson)
  }

  #take(breaker: BreakerRecord | undefined, now: number, readAt: number, isPerson: boolean): void {
    this.#triedAt = readAt
    this.#offset = now - readAt
    this.#learn(breaker ? this.#read(breaker.record, isPerson) : closedCircuit(), breaker?.revision ?? 0)
    this.#hasRead = true
  }

  /** An operator's act replaces the record as a whole, also one that can't be read. */
  #read(record: string, isPerson: boolean): Circuit {
    try {
      return readCircuit(this.#options.name, record)
    } catch (error) {
      if (isPerson) return closedCircuit(this.circuit.era)
      throw error
    }
  }

  #learn(circuit: Circuit, revision: number): void {
    const from = this.circuit
    this.#revision = revision
    this.circuit = circuit
    this.#options.onCircuit(from, circuit)
  }
}

/** What the store answers, or an error when it takes too long. */
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
    super(
      'STORE_BUSY',
      `Other processes changed the breaker ${JSON.stringify(name)} at the same time, again and again.`,
      {
        hint: 'Try again.',
      },
    )
  }
}
