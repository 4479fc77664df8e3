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
  /** The same as in the engines. The operator uses them to decode, try and validate letters. */
  readonly subscriptions: readonly (Consumer | Subscription)[]
  /** The author of all acts, for the audit. */
  readonly by: string
}

/** Shared by all functions of an operator. */
export interface OperatorParts {
  readonly store: Store
  readonly runtime: Runtime
  readonly by: string
  readonly subscriptions: ReadonlyMap<string, Subscription>
  readonly nextId: () => string
  /** A subscription of this program. Throws `SUBSCRIPTION_UNKNOWN`. */
  subscriptionOf(name: string): Subscription
  /** The same. Throws `PROJECTION_VERSION` if another version is live. */
  liveOf(name: string): Promise<Subscription>
  /** The partitions of a subscription in the store, which this program may not have. Throws `SUBSCRIPTION_UNKNOWN`. */
  partitionsOf(name: string): Promise<readonly PartitionState[]>
  reasonOf(reason: unknown): string
  /** The same with another author. */
  as(by: string): OperatorParts
  deed(deed: Omit<Deed, 'by' | 'at'>): Deed
}

const longestReason = 2_000

export function operatorParts(options: OperatorOptions): OperatorParts {
  checkOptions(options, 'createOperator', ['store', 'subscriptions', 'by', 'clock', 'timers', 'random'])
  const { store, clock, timers, random } = options
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
  const shared = {
    store,
    runtime,
    subscriptions,
    nextId: createIds(runtime.clock, runtime.random),
    subscriptionOf,
    liveOf: async (name: string) => {
      const subscription = subscriptionOf(name)
      await refuseOtherVersion(store, subscription)
      return subscription
    },
    partitionsOf: async (name: string) => {
      if (typeof name !== 'string') throw new HoldfastError('OPTION_INVALID', 'The subscription must be a string.')
      const states = await store.subscriptions.partitions(name)
      if (states.length > 0) return states
      throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(name)}.`, {
        hint: subscriptions.has(name) ? 'Start an engine with it first.' : `This program has ${names()}.`,
      })
    },
    reasonOf: (reason: unknown) => words(reason, 'The reason', 'Give the reason of the act: the audit keeps it.'),
  }
  const as = (given: string): OperatorParts => {
    const by = words(given, 'by', 'Give the name of the operator: the audit keeps it.')
    return { ...shared, by, as, deed: (deed) => ({ ...deed, by, at: Math.floor(runtime.clock.now()) }) }
  }
  return as(options.by)
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

/** The audit keeps the text and operators read it: no control characters, and nothing that a database can't store. */
function words(text: unknown, what: string, hint: string): string {
  if (typeof text === 'string' && text.trim() !== '' && text.length <= longestReason && !/[\p{Cc}\p{Cs}]/u.test(text))
    return text
  throw new HoldfastError(
    'OPTION_INVALID',
    `${what} is missing, or is not a text of at most ${longestReason} characters without control characters.`,
    {
      hint,
    },
  )
}

/** Checks `expected`; `from` is the method that returns the digest. A count would also match a different set. */
export function digestOf(expected: unknown, from: string): string | undefined {
  if (expected === undefined || (typeof expected === 'string' && /^[0-9a-f]{64}$/.test(expected))) return expected
  throw new HoldfastError('OPTION_INVALID', 'expected is not a digest.', {
    hint: `Give the digest that ${from} returned, or omit it.`,
  })
}
