import {
  defineEvents,
  defineHandler,
  definePolicy,
  defineProjection,
  defineSubscription,
  exponential,
  failure,
  park,
  retry,
  type StandardSchema,
} from 'holdfast'
import type { App, Outside, PlannedAppend } from '../../src/testing/simulation/app.ts'
import type { Chance } from '../../src/testing/simulation/chance.ts'

/** What is wrong with an event until the code is mended. */
export type Flaw = 'none' | 'fold' | 'permanent' | 'transient' | 'deadly' | 'hangs'

export interface Step {
  readonly n: number
  readonly flaw: Flaw
}

const step: StandardSchema<Step> = {
  '~standard': {
    version: 1,
    vendor: 'simulation',
    validate: (value) => {
      const { n, flaw } = (value ?? {}) as Step
      return Number.isSafeInteger(n) && typeof flaw === 'string'
        ? { value: { n, flaw } }
        : { issues: [{ message: 'is no step' }] }
    },
  },
}
const steps = defineEvents({ Stepped: step, Rested: step })

/** What a service was asked to do, in the order in which it did it. */
export interface Effect {
  readonly key: string
  readonly n: number
  readonly idempotencyKey: string
}

export interface StepsSettings {
  readonly keys: number
  readonly events: number
  readonly partitions: number
  readonly concurrency: number
  readonly attempts: number
  readonly breaker: boolean
  readonly flaws: readonly Flaw[]
  /** The chance that an event has one. */
  readonly flawed: number
}

/** A fold that shows every event lost, repeated or out of order, and a handler whose effects are kept by the service it calls. */
export class StepsApp implements App {
  readonly events = steps
  readonly effects: Effect[] = []
  readonly written = new Map<string, Step[]>()
  readonly #settings: StepsSettings
  readonly #mostAppends: number
  #isMended = false

  constructor(settings: StepsSettings, mostAppends: number) {
    this.#settings = settings
    this.#mostAppends = mostAppends
  }

  heal(): void {
    this.#isMended = true
  }

  subscriptions(outside: Outside) {
    const { partitions, concurrency, attempts, breaker } = this.#settings
    const isFlawed = ({ flaw }: Step, which: Flaw) => flaw === which && !this.#isMended
    const walks = defineProjection('walks', {
      events: steps,
      initial: () => ({ last: 0, count: 0, trail: 0 }),
      on: {
        Stepped: ({ count, trail }, { data }) => {
          if (isFlawed(data, 'fold')) throw new RangeError('a bug')
          return { last: data.n, count: count + 1, trail: (trail * 31 + data.n) % 1_000_003 }
        },
      },
      columns: { count: 'integer' },
      maxDeaths: 1_000,
    })
    const calls = defineHandler('calls', {
      events: steps,
      on: {
        Stepped: async ({ key, data }, { idempotencyKey, signal }) => {
          if (isFlawed(data, 'permanent')) throw failure.permanent('a bug')
          if (isFlawed(data, 'transient')) throw failure.transient('not yet')
          if (isFlawed(data, 'deadly')) await outside.die()
          if (isFlawed(data, 'hangs')) await never(signal)
          await outside.call('call', () => void this.effects.push({ key, n: data.n, idempotencyKey }), signal)
        },
      },
      failure: definePolicy({
        transient: retry({ attempts, backoff: exponential('200ms', { cap: '5s' }) }).then(park),
        maxDeaths: 3,
      }),
      concurrency,
      timeout: '3s',
      ...(breaker ? { breaker: { opens: { failures: 3 }, cooldown: '2s' } } : {}),
    })
    return [walks, calls].map((consumer) => defineSubscription(consumer, { partitions }))
  }

  appends(chance: Chance, faultsMs: number): readonly PlannedAppend[] {
    const { keys, events, flaws, flawed } = this.#settings
    const planned: PlannedAppend[] = []
    for (let made = 0; made < events && planned.length < this.#mostAppends; ) {
      const key = `key-${chance.below(keys)}`
      const before = this.written.get(key) ?? []
      const own = Array.from({ length: 1 + chance.below(3) }, (_, i) => ({
        n: before.length + i + 1,
        flaw: flaws.length > 0 && chance.is(flawed) ? chance.pick(flaws) : 'none',
      }))
      this.written.set(key, [...before, ...own])
      made += own.length
      planned.push({
        atMs: 0,
        key,
        drafts: own.map((data) => ({ id: `${key}-${data.n}`, type: 'Stepped', data })),
      })
    }
    return planned.map((one, i) => ({ ...one, atMs: (i * faultsMs * 0.9) / planned.length }))
  }
}

function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
