import type { DeadLetter } from '../../dead-letter/letter.ts'
import { HoldfastError } from '../../errors.ts'
import { createOperator } from '../../operator/operator.ts'
import type { Store } from '../../store.ts'
import type { App } from './app.ts'
import type { Chance } from './chance.ts'
import type { Process } from './process.ts'

/** An operator who does not edit events redrives them, and sometimes discards one. */
const usual = ['pause', 'redrive', 'redrive', 'redrive', 'discard'] as const
const all = [...usual, 'resolve', 'revise', 'revise', 'unrevise', 'cancel'] as const
const decisions = ['discard', 'resolve', 'revise', 'revise'] as const
/** In addition, if there are breakers. */
const breakerActs = ['isolate', 'reset', 'reset', 'discard', 'resolve', 'revise'] as const
type Act = (typeof all)[number] | (typeof breakerActs)[number]

/** The author and reason of all acts. */
export const why = { by: 'person', reason: 'to see what happens' }

/** An operator who pauses, resumes, redrives, edits and discards, over the same network as the processes. */
export class SimulatedOperator {
  /** The events that were discarded: `subscription/position`. */
  readonly discarded = new Set<string>()
  readonly #store: Store
  readonly #process: Process
  readonly #subscriptions: readonly string[]
  readonly #edit: App['edit']
  readonly #acts: readonly Act[]
  readonly #operatesBreakers: boolean
  readonly #chance: Chance
  readonly #tell: (who: string, kind: string, text: string) => void
  #asked = 0

  constructor(
    { process, store }: { readonly process: Process; readonly store: Store },
    { edit, operatesBreakers = false }: Pick<App, 'edit' | 'operatesBreakers'>,
    subscriptions: readonly string[],
    chance: Chance,
    tell: (who: string, kind: string, text: string) => void,
  ) {
    this.#process = process
    this.#store = store
    this.#subscriptions = subscriptions
    this.#edit = edit
    const decided = edit ? all : usual
    this.#acts = operatesBreakers ? [...decided, ...breakerActs.filter((act) => edit || act !== 'revise')] : decided
    this.#operatesBreakers = operatesBreakers
    this.#chance = chance
    this.#tell = tell
  }

  act(at: number): Promise<void> {
    const subscription = this.#chance.pick(this.#subscriptions)
    return this.#act(at, subscription, this.#chance.pick(this.#acts))
  }

  /** Decides on an event of one subscription while another version of it is built: the decision must hold there too. */
  decide(at: number, subscription: string): Promise<void> {
    return this.#act(at, subscription, this.#edit ? this.#chance.pick(decisions) : 'discard')
  }

  /** Never rejects. */
  async #act(at: number, subscription: string, what: Act): Promise<void> {
    this.#tell('person', what, subscription)
    try {
      if (what === 'pause') await this.#pause(subscription, at)
      else if (what === 'cancel') await this.#cancel(at)
      else if (what === 'isolate' || what === 'reset') await this.#operate(what)
      else await this.#see(subscription, what, at)
    } catch (error) {
      // An operator tries again later.
      if (!(error instanceof HoldfastError)) throw error
    }
  }

  async #pause(subscription: string, at: number): Promise<void> {
    const { subscriptions } = this.#store
    const deed = { ...why, act: 'subscription.pause', target: subscription, at, details: {} }
    await subscriptions.pause(subscription, { reason: why.reason, at }, deed)
    await this.#process.runtime.timers.sleep(this.#chance.upTo(3_000))
    await subscriptions.resume(subscription, { ...deed, act: 'subscription.resume' })
  }

  /** A closed breaker is not reset: its counting can be checked only until then. */
  async #operate(act: 'isolate' | 'reset'): Promise<void> {
    const breakers = await this.#store.breakers.list()
    const meant = breakers.filter(({ state }) => act === 'isolate' || state.state !== 'closed')
    if (meant.length === 0) return
    const { name } = this.#chance.pick(meant)
    const { runtime } = this.#process
    const operator = createOperator({ store: this.#store, subscriptions: [], by: why.by, ...runtime })
    if (act === 'reset') return operator.resetBreaker(name, why.reason)
    await operator.isolateBreaker(name, why.reason)
    await runtime.timers.sleep(this.#chance.upTo(3_000))
    await operator.resetBreaker(name, why.reason)
  }

  async #cancel(at: number): Promise<void> {
    const asked = await this.#store.redrives.list({ limit: 100 })
    const running = asked.filter(({ status }) => status === 'running')
    if (running.length === 0) return
    const { id } = this.#chance.pick(running)
    await this.#store.redrives.cancel(id, { ...why, act: 'redrive.cancel', target: id, at, details: {} })
  }

  /** Acts on one of the letters that are parked or wait for a breaker, or on all parked ones. */
  async #see(
    subscription: string,
    act: Exclude<Act, 'pause' | 'cancel' | 'isolate' | 'reset'>,
    at: number,
  ): Promise<void> {
    const heads = (act !== 'redrive' && this.#operatesBreakers && (await this.#waiting())) || []
    const held = heads.length > 0 ? heads : await this.#parked(subscription)
    if (held.length === 0) return
    const letter = this.#chance.pick(held)
    if (act !== 'revise' && act !== 'unrevise') return this.#ask(letter, act, at)
    await this.#revise(letter, act, at)
    // After an edit the operator usually redrives, at once or later.
    if (act === 'revise' && this.#chance.is(0.7)) await this.#ask(letter, 'redrive', at)
  }

  /** The heads of lanes that wait for a breaker, of all subscriptions. */
  async #waiting(): Promise<readonly DeadLetter[]> {
    const { letters } = this.#store
    const found = this.#subscriptions.map((subscription) =>
      letters.list({ subscription, status: 'waiting', limit: 100 }),
    )
    return (await Promise.all(found)).flat()
  }

  /** Of one subscription; or, for a busy operator, of the first one that has any. */
  async #parked(subscription: string): Promise<readonly DeadLetter[]> {
    const names = this.#edit ? [subscription, ...this.#subscriptions] : [subscription]
    for (const name of names) {
      const parked = await this.#store.letters.list({ subscription: name, status: 'parked', limit: 100 })
      if (parked.length > 0) return parked
    }
    return []
  }

  async #revise({ subscription, partition, event }: DeadLetter, act: 'revise' | 'unrevise', at: number): Promise<void> {
    const { letters } = this.#store
    const { position } = event
    const name = { subscription, partition, position }
    const deed = { ...why, act: `letter.${act}`, target: `${subscription}/${position}`, at, details: {} }
    if (act === 'unrevise') await letters.unrevise(name, deed)
    else await letters.revise(name, this.#edit?.(event) as string, deed)
  }

  async #ask(
    { subscription, lane, event }: DeadLetter,
    act: 'redrive' | 'discard' | 'resolve',
    at: number,
  ): Promise<void> {
    const { position } = event
    if (act !== 'redrive') this.discarded.add(`${subscription}/${position}`)
    // Checks of users know of no act on several letters.
    const isWhole = act !== 'redrive' && this.#edit !== undefined && this.#chance.is(0.4)
    const through = isWhole ? await this.#lastOf(subscription, lane) : undefined
    const isOne = act !== 'redrive' || this.#chance.is(0.5)
    await this.#store.redrives.ask({
      id: `act-${++this.#asked}`,
      subscription,
      act,
      filter: isOne ? { position } : { status: 'parked' },
      ...why,
      at,
      expected: undefined,
      rate: this.#chance.is(0.2) ? 5 : undefined,
      stages: this.#chance.is(0.3) ? [1, 3] : [],
      maxFailures: this.#chance.is(0.3) ? 0 : undefined,
      through,
    })
  }

  /** The last letter that the operator sees in a lane. Letters that are queued later are not part of the act. */
  async #lastOf(subscription: string, lane: string): Promise<number> {
    const letters = await this.#store.letters.list({ subscription, lane, limit: 1_000 })
    const positions = letters.filter(({ endedAt }) => endedAt === undefined).map(({ event }) => event.position)
    for (const position of positions) this.discarded.add(`${subscription}/${position}`)
    return Math.max(1, ...positions)
  }
}
