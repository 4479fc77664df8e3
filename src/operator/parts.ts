import type { Deed } from '../audit/audit.ts'
import { refuseOtherVersion } from '../rebuild/live.ts'
import { HoldfastError } from '../errors.ts'
import { createIds } from '../event/identity.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Store } from '../store.ts'
import { type Consumer, defineSubscription, type Subscription } from '../subscription/subscription.ts'
import type { PartitionState } from '../subscription/subscription-store.ts'

export interface OperatorOptions extends Partial<Runtime> {
  readonly store: Store
  /** The same that the engines run: letters are decoded, tried and validated by them. */
  readonly subscriptions: readonly (Consumer | Subscription)[]
  /** Who does all of this, as the audit will have it. */
  readonly by: string
}

/** What all parts of an operator share. */
export interface OperatorParts {
  readonly store: Store
  readonly runtime: Runtime
  readonly by: string
  readonly subscriptions: ReadonlyMap<string, Subscription>
  readonly nextId: () => string
  /** One that this program has; `SUBSCRIPTION_UNKNOWN` otherwise. */
  subscriptionOf(name: string): Subscription
  /** The same, in the version that is live: `PROJECTION_VERSION` where this program has another. */
  liveOf(name: string): Promise<Subscription>
  /** The partitions of one that the store has, whether this program knows it or not; `SUBSCRIPTION_UNKNOWN` otherwise. */
  partitionsOf(name: string): Promise<readonly PartitionState[]>
  reasonOf(reason: unknown): string
  deed(deed: Omit<Deed, 'by' | 'at'>): Deed
}

const longestReason = 2_000

export function operatorParts(options: OperatorOptions): OperatorParts {
  checkOptions(options, 'createOperator', ['store', 'subscriptions', 'by', 'clock', 'timers', 'random'])
  const { store, by, clock, timers, random } = options
  checkStore(store, 'createOperator')
  const runtime: Runtime = {
    clock: clock ?? systemRuntime.clock,
    timers: timers ?? systemRuntime.timers,
    random: random ?? systemRuntime.random,
  }
  const subscriptions = known(options.subscriptions)
  const names = () => [...subscriptions.keys()].join(', ') || 'none'
  const subscriptionOf = (name: string) => {
    const subscription = subscriptions.get(name)
    if (subscription) return subscription
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `This program has no subscription ${JSON.stringify(name)}.`, {
      hint: `It has ${names()}.`,
    })
  }
  return {
    store,
    runtime,
    by: words(by, 'by', 'Say who does it, as the audit will have it.'),
    subscriptions,
    nextId: createIds(runtime.clock, runtime.random),
    subscriptionOf,
    liveOf: async (name) => {
      const subscription = subscriptionOf(name)
      await refuseOtherVersion(store, subscription)
      return subscription
    },
    partitionsOf: async (name) => {
      if (typeof name !== 'string') throw new HoldfastError('OPTION_INVALID', 'The subscription is no text.')
      const states = await store.subscriptions.partitions(name)
      if (states.length > 0) return states
      throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(name)}.`, {
        hint: subscriptions.has(name) ? 'Start an engine with it first.' : `This program has ${names()}.`,
      })
    },
    reasonOf: (reason) => words(reason, 'The reason', 'Say why, for whoever reads the audit.'),
    deed: (deed) => ({ ...deed, by, at: runtime.clock.now() }),
  }
}

function known(given: OperatorOptions['subscriptions']): ReadonlyMap<string, Subscription> {
  if (!Array.isArray(given)) throw new HoldfastError('OPTION_INVALID', 'createOperator needs a list of subscriptions.')
  const subscriptions = (given as OperatorOptions['subscriptions']).map((declared) =>
    declared.kind === 'subscription' ? declared : defineSubscription(declared),
  )
  const byName = new Map(subscriptions.map((subscription) => [subscription.name, subscription]))
  if (byName.size < subscriptions.length)
    throw new HoldfastError('OPTION_INVALID', 'Two subscriptions have the same name.')
  return byName
}

/** Kept for ever and shown to people: no control characters, and nothing that a database can't hold. */
function words(text: unknown, what: string, hint: string): string {
  if (typeof text === 'string' && text.trim() !== '' && text.length <= longestReason && !/[\p{Cc}\p{Cs}]/u.test(text))
    return text
  throw new HoldfastError('OPTION_INVALID', `${what} is missing, or no text of up to ${longestReason} characters.`, {
    hint,
  })
}

/** A whole number within bounds. */
export function whole(value: unknown, what: string, least: number, most: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  throw new HoldfastError(
    'OPTION_INVALID',
    `${what} is ${typeof value === 'number' ? value : `of type ${typeof value}`}.`,
    {
      hint: `Give a whole number from ${least} to ${most}.`,
    },
  )
}
