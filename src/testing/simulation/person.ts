import { HoldfastError } from '../../errors.ts'
import type { Store } from '../../store.ts'
import type { Chance } from './chance.ts'
import type { Process } from './process.ts'

/** Somebody who pauses, resumes, lets go and discards, over a network like everybody else's. */
export class Person {
  /** What was asked to be discarded: `subscription/position`. */
  readonly discarded = new Set<string>()
  readonly #store: Store
  readonly #process: Process
  readonly #subscriptions: readonly string[]
  readonly #chance: Chance
  readonly #tell: (who: string, kind: string, text: string) => void
  #acts = 0

  constructor(
    { process, store }: { readonly process: Process; readonly store: Store },
    subscriptions: readonly string[],
    chance: Chance,
    tell: (who: string, kind: string, text: string) => void,
  ) {
    this.#process = process
    this.#store = store
    this.#subscriptions = subscriptions
    this.#chance = chance
    this.#tell = tell
  }

  act(at: number): Promise<void> {
    const subscription = this.#chance.pick(this.#subscriptions)
    return this.#act(at, subscription, this.#chance.pick(['pause', 'redrive', 'redrive', 'redrive', 'discard']))
  }

  discard(at: number, subscription: string): Promise<void> {
    return this.#act(at, subscription, 'discard')
  }

  /** Never rejects. */
  async #act(at: number, subscription: string, what: 'pause' | 'redrive' | 'discard'): Promise<void> {
    this.#tell('person', what, subscription)
    try {
      if (what === 'pause') await this.#pause(subscription, at)
      else await this.#ask(subscription, what, at)
    } catch (error) {
      // A person tries again some other time.
      if (!(error instanceof HoldfastError)) throw error
    }
  }

  async #pause(subscription: string, at: number): Promise<void> {
    const { subscriptions } = this.#store
    await subscriptions.pause(subscription, { reason: 'to have a look', at })
    await this.#process.runtime.timers.sleep(this.#chance.upTo(3_000))
    await subscriptions.resume(subscription)
  }

  async #ask(subscription: string, act: 'redrive' | 'discard', at: number): Promise<void> {
    const { letters, redrives } = this.#store
    const parked = await letters.list({ subscription, status: 'parked', limit: 100 })
    if (parked.length === 0) return
    const { position } = this.#chance.pick(parked).event
    if (act === 'discard') this.discarded.add(`${subscription}/${position}`)
    const isOne = act === 'discard' || this.#chance.is(0.5)
    await redrives.ask({
      id: `act-${++this.#acts}`,
      subscription,
      act,
      filter: isOne ? { position } : { status: 'parked' },
      by: 'person',
      reason: 'to see what happens',
      at,
      expected: undefined,
      rate: this.#chance.is(0.2) ? 5 : undefined,
      stages: this.#chance.is(0.3) ? [1, 3] : [],
      maxFailures: this.#chance.is(0.3) ? 0 : undefined,
    })
  }
}
