import {
  block,
  defineEvents,
  defineHandler,
  definePolicy,
  defineProjection,
  defineSubscription,
  exponential,
  failure,
  HoldfastError,
  park,
  pause,
  retry,
  type StandardSchema,
  type Store,
  type Subscription,
} from 'holdfast'
import { parseBody, type RecordedEvent } from '../../src/event/event.ts'
import type { App, Note, Outside, PlannedAppend, Rebuilt } from '../../src/testing/simulation/app.ts'
import { type Chance, createChance } from '../../src/testing/simulation/chance.ts'
import type { Plan } from '../../src/testing/simulation/plan.ts'
import { defineMemoryProjection } from '../../src/testing/memory/projection.ts'
import { Arrivals, never } from './arrivals.ts'

/**
 * What is wrong with an event until the code is mended. One that is needless is passed over by its handler now and then; one that is
 * fickle fails in every process first, and kills it when it is tried again.
 */
export type Flaw =
  | 'none'
  | 'fold'
  | 'sql'
  | 'permanent'
  | 'transient'
  | 'deadly'
  | 'hangs'
  | 'needless'
  | 'fatal'
  | 'fickle'
  | 'unreadable'

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
  /** To how many endpoints the events go, each with a breaker of its own; 0: one for all of them. */
  readonly endpoints: number
  readonly flaws: readonly Flaw[]
  /** Whether there are events from a bad source too. */
  readonly arrivals: boolean
  /** How many of them it keeps; 0 for all. */
  readonly kept: number
  /** Whether people build other versions of the fold. */
  readonly rebuilds: boolean
  /** The chance that an event has one. */
  readonly flawed: number
  /** Whether the handler looks whether it did something before; it never did. */
  readonly dedupe: boolean
  readonly order: 'key' | 'partition'
  /** Whether the handler stands still where it may be nobody's fault, instead of trying again later. */
  readonly stops: 'never' | 'block' | 'pause'
  /** Whether people also mend events, see to them elsewhere, and think better of it. */
  readonly decisions: boolean
  /** Whether other versions of the fold may have its bug no more. */
  readonly corrects?: boolean
  /** Whether people decide about events when the last version of the fold is built, and not the live one yet. */
  readonly debates?: boolean
  /** Whether the bad source does not answer now and then. */
  readonly silences?: boolean
  /** Whether there is a projection with a key of its own, whose rows gather the events of several keys. */
  readonly gathers?: boolean
  /** Whether operators isolate and reset breakers, and act on lanes that wait for one. */
  readonly operates?: boolean
  /** Whether processes have to come right by themselves before the code is mended and all of them begin anew. */
  readonly settles?: boolean
}

/** What a handler, or a projection that can kill, notes of each try: which one it is, of which event, and in the end how it went. */
export interface Tried {
  readonly subscription: 'calls' | 'notes'
  readonly number: number
  readonly id: string
  /** What the handler was told; a projection is told nothing. */
  readonly attempt?: number | undefined
  readonly how?: 'done' | 'permanent' | 'transient' | 'abandoned' | 'died'
  /** What it failed of. */
  readonly why?: string | undefined
}

export const walksTable = { name: 'walks', columns: [{ name: 'count', type: 'integer' }] } as const

export const gatheredTable = { name: 'gathered', columns: [] } as const

/** The row that gathers the events of a key, and what an event adds to it: no other event adds the same. */
export function rowOf(key: string): string {
  return `row-${keyNumber(key) % 2}`
}

export function gatheredOf(key: string, n: number): number {
  return keyNumber(key) * 10_000 + n
}

function keyNumber(key: string): number {
  return Number(key.slice('key-'.length))
}

export async function liveVersion({ rebuilds }: Store): Promise<number | undefined> {
  return (await rebuilds.list('walks')).find(({ isLive }) => isLive)?.version
}

export const maxDeaths = 4
export const firstDelayMs = 200
const longestDelayMs = 5_000
/** How long the policy waits after so many failures, written down here by hand. */
export function retryDelayMs(failures: number): number {
  return Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1))
}
export const timeoutMs = 3_000
/** So many failures in a row make it pause, where it does. */
export const pausesAfter = 3
/** So many failures in a row open a breaker. */
export const opensAfter = 3
/** So many lanes that fail alike are an outage. */
export const outageLanes = 3

/** What a person makes of a step is told from it by so much. */
export const mendedBy = 1_000

/** Whom an event is for, and how that breaker is called. */
export function breakerOf({ breaker, endpoints }: StepsSettings, key: string): string | undefined {
  if (!breaker) return undefined
  return endpoints === 0 ? 'calls' : `calls:${endpointOf(key, endpoints)}`
}

function endpointOf(key: string, endpoints: number): string {
  return `endpoint-${keyNumber(key) % endpoints}`
}

/** A fold that shows every event lost, repeated or out of order, and a handler whose effects are kept by the service it calls. */
export class StepsApp implements App {
  readonly events = steps
  readonly effects: Effect[] = []
  readonly written = new Map<string, Step[]>()
  readonly arrivals: Arrivals | undefined
  readonly #settings: StepsSettings
  readonly #plan: Plan
  readonly rebuilt: Rebuilt | undefined
  readonly edit: App['edit']
  /** What somebody saw who read while everything went wrong. */
  readonly seen: string[] = []
  readonly #versions = new Set([1])
  /** Whether something is needed, nobody can tell beforehand. */
  readonly #whims: Chance
  #isMended = false
  #tries = 0
  /** The version that all processes have, when that is known. */
  #deployed: number | undefined

  constructor(settings: StepsSettings, plan: Plan) {
    this.#settings = settings
    this.#plan = plan
    const { seed, faultsMs, appends } = plan
    this.#whims = createChance(seed, 'whims')
    if (settings.decisions) this.edit = mended
    if (settings.rebuilds)
      this.rebuilt = {
        name: 'walks',
        code: (version) => this.#built(version),
        look: (store) => this.#look(store),
        isDebated: settings.debates === true,
      }
    if (settings.arrivals)
      this.arrivals = new Arrivals(createChance(seed, 'arrivals'), {
        events: Math.min(appends, 30),
        faultsMs,
        kept: settings.kept,
        isSilent: settings.silences === true,
      })
  }

  get order(): StepsSettings['order'] {
    return this.#settings.order
  }

  /** All of them, in whichever process they run. */
  get names(): readonly string[] {
    const own = this.#plan.store === 'server' ? ['walks', 'calls', 'notes'] : ['walks', 'calls']
    return [...own, ...(this.#settings.gathers ? ['gathered'] : []), ...(this.arrivals ? ['arrivals'] : [])]
  }

  /** Those that nothing keeps from it: no policy that stands still, no code that is not there, and no source that has dropped something or does not answer. */
  get settles(): readonly string[] | undefined {
    const { settles, rebuilds, kept, silences, stops, order, flaws, keys, breaker } = this.#settings
    if (!settles) return undefined
    // Several that fail alike are an outage, and some open a breaker: both end when one of them goes through.
    const mayFailAlike = breaker || keys >= outageLanes
    const hasPoison = (['transient', 'hangs', 'fickle'] as const).some((flaw) => flaws.includes(flaw))
    const isStanding = stops !== 'never' || order !== 'key' || (mayFailAlike && hasPoison)
    const standing = [
      ...(rebuilds ? ['walks'] : []),
      ...(kept > 0 || silences ? ['arrivals'] : []),
      ...(isStanding ? ['calls'] : []),
      ...(flaws.includes('unreadable') ? ['gathered'] : []),
    ]
    return this.names.filter((name) => !standing.includes(name))
  }

  get operatesBreakers(): boolean {
    const { breaker, operates = false } = this.#settings
    return breaker && operates
  }

  /** Nobody waits for ever for what was asked for. */
  async left({ redrives }: Store, subscriptions: readonly string[]): Promise<string | undefined> {
    const asked = await redrives.list({ limit: 10_000 })
    const running = asked.find(
      ({ status, subscription }) => status === 'running' && subscriptions.includes(subscription),
    )
    return running && `the ${running.act} ${running.id} of ${running.subscription} is still under way`
  }

  heal(): void {
    this.#isMended = true
  }

  /** Somebody who is told that events are gone puts them back. Who is not told does nothing. */
  async tend(store: Store, halted: ReadonlyMap<string, unknown>): Promise<boolean> {
    const live = await liveVersion(store)
    const isOther = this.#versions.size > 1 && live !== undefined && live !== this.#deployed
    if (isOther) this.#deployed = live
    const isTrimmed = codeOf(halted.get('arrivals')) === 'SOURCE_TRIMMED'
    if (isTrimmed) this.arrivals?.restore()
    return isOther || isTrimmed
  }

  /** Whoever reads the live table sees one version, and never a mixture. */
  async #look(store: Store): Promise<void> {
    const live = await liveVersion(store)
    // Nobody has begun it yet.
    if (live === undefined) return
    const rows = await store.rows.load(walksTable, [...this.written.keys()])
    for (const [key, { json }] of rows) {
      const { v } = JSON.parse(json) as { v?: number }
      if (v !== live) this.seen.push(`I16 ${key} was seen in version ${v}, and ${live} is live`)
    }
  }

  #built(version: number): Subscription {
    this.#versions.add(version)
    return defineSubscription(this.#walks(version), { partitions: this.#settings.partitions })
  }

  /** While things go wrong, some processes have old code and some have new. */
  #versionOf(process: string): number {
    const known = [...this.#versions].toSorted((a, b) => b - a).slice(0, 3)
    return this.#deployed ?? createChance(this.#plan.seed, `version of ${process}`).pick(known)
  }

  #walks(version: number) {
    const isOther = this.#settings.corrects && version > 1
    const hasBug = !(isOther && createChance(this.#plan.seed, `code of ${version}`).is(0.5))
    return defineProjection('walks', {
      events: steps,
      version,
      initial: () => ({ last: 0, count: 0, trail: 0, v: 0 }),
      on: {
        Stepped: ({ count, trail }, { data }) => {
          if (data.flaw === 'fold' && hasBug && !this.#isMended) throw new RangeError('a bug')
          return { last: data.n, count: count + 1, trail: (trail * 31 + data.n) % 1_000_003, v: version }
        },
      },
      columns: { count: 'integer' },
      maxDeaths: 1_000,
    })
  }

  /** Some events it can't read until the code is fixed, and then nobody can tell which row they are about. */
  #gathered() {
    const validate: (typeof step)['~standard']['validate'] = (value) => {
      const isUnreadable = (value as Step | undefined)?.flaw === 'unreadable' && !this.#isMended
      return isUnreadable ? { issues: [{ message: 'can not be read' }] } : step['~standard'].validate(value)
    }
    const readable: StandardSchema<Step> = { '~standard': { ...step['~standard'], validate } }
    return defineProjection('gathered', {
      events: defineEvents({ Stepped: readable, Rested: readable }),
      key: ({ key }) => rowOf(key),
      initial: () => ({ count: 0, trail: 0 }),
      on: {
        Stepped: ({ count, trail }, { key, data }) => ({
          count: count + 1,
          trail: (trail * 31 + gatheredOf(key, data.n)) % 1_000_003,
        }),
      },
      maxDeaths: 1_000,
    })
  }

  subscriptions(outside: Outside, note: Note) {
    const { partitions, concurrency, attempts, breaker, endpoints, dedupe, order, stops } = this.#settings
    const backoff = exponential(`${firstDelayMs}ms`, { cap: `${longestDelayMs}ms` })
    const again = retry({ attempts, backoff }).then(park)
    const transient = {
      never: again,
      block: block(backoff),
      pause: pause({ failures: pausesAfter, for: '2s', before: again }),
    }
    const isFlawed = ({ flaw }: Step, which: Flaw) => flaw === which && !this.#isMended
    const failedHere = new Set<string>()
    const walks = this.#walks(this.#versionOf(outside.name))
    const calls = defineHandler('calls', {
      events: steps,
      on: {
        Stepped: async ({ key, data }, { idempotencyKey, signal, attempt }) => {
          const n = data.n % mendedBy
          const end = this.#begin('calls', `${key}-${n}`, note, attempt)
          const isNeedless = isFlawed(data, 'needless') && this.#whims.is(0.5)
          const isFickle = isFlawed(data, 'fickle')
          const isFirst = isFickle && !failedHere.has(`${key}-${n}`)
          if (isFirst) failedHere.add(`${key}-${n}`)
          try {
            if (isFlawed(data, 'permanent')) throw failure.permanent('a bug')
            if (isNeedless) throw failure.skip('not needed')
            if (isFlawed(data, 'transient') || isFirst) throw failure.transient('not yet')
            if (isFlawed(data, 'deadly') || isFickle) {
              end('died')
              await outside.die()
            }
            if (isFlawed(data, 'hangs')) await never(signal)
            await outside.call('call', () => void this.effects.push({ key, n, idempotencyKey }), signal)
            end('done')
          } catch (error) {
            const isAbandoned = signal.aborted && signal.reason instanceof HoldfastError
            const isOwn = isFlawed(data, 'permanent') || isNeedless
            end(isAbandoned ? 'abandoned' : isOwn ? 'permanent' : 'transient', String(error))
            throw error
          }
        },
      },
      failure: definePolicy({
        transient: transient[stops],
        outage: { lanes: outageLanes },
        maxDeaths,
      }),
      concurrency,
      order,
      timeout: timeoutMs,
      ...(dedupe && { dedupe: { by: 'id' } }),
      ...(breaker && {
        breaker: {
          opens: { failures: opensAfter },
          cooldown: '2s',
          ...(endpoints > 0 && { key: ({ key }: { readonly key: string }) => endpointOf(key, endpoints) }),
        },
      }),
    })
    const notes = defineMemoryProjection('notes', {
      events: steps,
      on: {
        Stepped: async ({ key, data }, tx) => {
          if (isFlawed(data, 'fatal')) {
            this.#begin('notes', `${key}-${data.n}`, note)('died')
            await outside.die()
          }
          const { count = 0, trail = 0 } = ((await tx.get('notes', key)) ?? {}) as { count?: number; trail?: number }
          await tx.put('notes', key, { count: count + 1, trail: (trail * 31 + data.n) % 1_000_003 })
          if (isFlawed(data, 'sql')) throw new RangeError('a bug')
        },
      },
      maxDeaths,
    })
    const own = this.#plan.store === 'server' ? [walks, calls, notes] : [walks, calls]
    const all = own.map((consumer) => defineSubscription(consumer, { partitions }))
    if (this.#settings.gathers) all.push(defineSubscription(this.#gathered()))
    if (!this.arrivals) return all
    const far = defineProjection('arrivals', {
      events: steps,
      initial: () => ({ count: 0, trail: 0 }),
      on: {
        Stepped: ({ count, trail }, { data }) => ({ count: count + 1, trail: (trail * 31 + data.n) % 1_000_003 }),
      },
      maxDeaths: 1_000,
    })
    return [...all, defineSubscription(far, { source: this.arrivals.source(outside) })]
  }

  /** Gives what is to be said in the end. */
  #begin(subscription: Tried['subscription'], id: string, note: Note, attempt?: number) {
    const tried: Tried = { subscription, number: ++this.#tries, id, attempt }
    note('begin', id, tried)
    return (how: NonNullable<Tried['how']>, why?: string) =>
      note('end', `${id} ${how}`, { ...tried, how, why } satisfies Tried)
  }

  appends(chance: Chance, faultsMs: number): readonly PlannedAppend[] {
    const { keys, events, flaws, flawed } = this.#settings
    const planned: PlannedAppend[] = []
    for (let made = 0; made < events && planned.length < this.#plan.appends; ) {
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

function mended({ body }: RecordedEvent): string {
  const { n } = parseBody(body) as Step
  return JSON.stringify({ n: n + mendedBy, flaw: 'none' } satisfies Step)
}

function codeOf(error: unknown): string | undefined {
  return error instanceof HoldfastError ? error.code : undefined
}
