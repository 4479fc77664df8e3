import { HoldfastError } from '../errors.ts'
import type { Duration } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { type Action, block, checkAction, checkCount, defaultMaxDeaths, park, patient, pause, retry } from './action.ts'
import { type Backoff, checkBackoff, durationMs, exponential } from './backoff.ts'
import type { Classified } from './classify.ts'
import { type FailureClass, failureClasses } from './failure.ts'
import type { Rule } from './rules.ts'

export type { Action } from './action.ts'
export { decide } from './decide.ts'

/** Several lanes that fail alike with no success between them are an outage; no event is blamed. */
export interface OutageSettings {
  /** The number of lanes. */
  readonly lanes: number
  /** Between two probes. */
  readonly backoff: Backoff
}

/** The maximum number of retries in each period, per partition; further retries wait. */
export interface RetryBudget {
  readonly retries: number
  readonly perMs: number
}

/** The action for each class of failure, and the rules that determine the class. Created by `definePolicy` and the presets. */
export interface Policy {
  readonly name: string
  readonly classes: Readonly<Record<FailureClass, Action>>
  /** For single event types, before `classes`. */
  readonly types: ReadonlyMap<string, Readonly<Partial<Record<FailureClass, Action>>>>
  /** Checked before the built-in rules. */
  readonly rules: readonly Rule[]
  readonly outage: OutageSettings | undefined
  readonly budget: RetryBudget | undefined
  /** How many processes may die over one event before it is parked. */
  readonly maxDeaths: number
  /** Of `customPolicy`: decides instead of `classes` and `types`. */
  readonly custom?: (failing: Failing) => Decision
  /** Of `only`: all of them must agree to a retry. */
  readonly retries?: readonly ((failing: Failing) => boolean)[]
}

export type Decision =
  | { readonly decision: 'retry'; readonly delayMs: number }
  | { readonly decision: 'park' }
  | { readonly decision: 'skip'; readonly reason: string }
  | { readonly decision: 'stop'; readonly why: 'block' | 'pause'; readonly backoff: Backoff }

/** The input of a decision. */
export interface Failing {
  readonly failure: Classified
  readonly type: string
  /** The number of counted attempts of this event, this one included. */
  readonly tries: number
  /** The number of consecutive failed events of the partition, this one included. */
  readonly inARow: number
}

/** Options that are left out have the default of `definePolicy`, or of the preset. */
export interface PolicyOptions extends Partial<Readonly<Record<FailureClass, Action>>> {
  readonly name?: string
  readonly types?: Readonly<Record<string, Readonly<Partial<Record<FailureClass, Action>>>>>
  readonly rules?: readonly Rule[]
  readonly budget?: { readonly retries: number; readonly per: Duration }
  /** `false`: each lane is judged separately. */
  readonly outage?: { readonly lanes?: number; readonly backoff?: Backoff } | false
  /** How many processes may die over one event before it is parked. Default: 4. */
  readonly maxDeaths?: number
}

export const policyOptions = ['name', ...failureClasses, 'types', 'rules', 'budget', 'outage', 'maxDeaths'] as const

/** Three retries cover a short interruption; after that an operator is needed. */
export const hiccup = retry({ attempts: 4, backoff: exponential('1s', { jitter: 0.5 }) }).then(park)

export function definePolicy(options: PolicyOptions = {}): Policy {
  checkOptions(options, 'A policy', policyOptions)
  const {
    name = 'own',
    types = {},
    rules = [],
    maxDeaths = defaultMaxDeaths,
    transient = hiccup,
    unknown = transient,
  } = options
  const { permanent = park, infrastructure = block(), dependency = pause() } = options
  if (typeof name !== 'string' || name === '' || name.length > 48)
    throw refused(`The name of a policy is ${JSON.stringify(name)}.`, 'Give a text of up to 48 characters.')
  if (!Array.isArray(rules) || rules.some((rule) => typeof rule !== 'function'))
    throw refused(
      `The rules of ${name} must be an array of functions.`,
      "For example [(error) => error instanceof Declined ? 'permanent' : undefined].",
    )
  // One death may have any cause in the process.
  checkCount(maxDeaths, `maxDeaths of ${name}`, 2, 1_000)
  return Object.freeze({
    name,
    classes: checkClasses({ transient, permanent, infrastructure, dependency, unknown }, name),
    types: typesOf(types, name),
    rules: Object.freeze([...rules]),
    outage: outageOf(options.outage, name),
    budget: budgetOf(options.budget, name),
    maxDeaths,
  })
}

function checkClasses<T extends Partial<Record<FailureClass, Action>>>(classes: T, what: string): T {
  checkOptions(classes, what, failureClasses)
  const given = Object.entries(classes).filter(([, action]) => action !== undefined)
  return Object.freeze(
    Object.fromEntries(given.map(([name, action]) => [name, checkAction(action, `${name} of ${what}`)])),
  ) as T
}

function typesOf(types: NonNullable<PolicyOptions['types']>, name: string): Policy['types'] {
  if (typeof types !== 'object' || types === null || Array.isArray(types))
    throw refused(`The types of ${name} must be an object.`, 'For example { OrderPlaced: { permanent: skip(…) } }.')
  return new Map(Object.entries(types).map(([type, classes]) => [type, checkClasses(classes, `${type} in ${name}`)]))
}

function outageOf(outage: PolicyOptions['outage'], name: string): OutageSettings | undefined {
  if (outage === false) return undefined
  checkOptions(outage ?? {}, `outage of ${name}`, ['lanes', 'backoff'])
  const { lanes = 3, backoff = patient } = outage ?? {}
  // One lane that fails alone is the typical case of poison.
  checkCount(lanes, `lanes in outage of ${name}`, 2, 1_000)
  return Object.freeze({ lanes, backoff: checkBackoff(backoff, `outage of ${name}`, true) })
}

function budgetOf(budget: PolicyOptions['budget'], name: string): RetryBudget | undefined {
  if (budget === undefined) return undefined
  checkOptions(budget, `budget of ${name}`, ['retries', 'per'])
  checkCount(budget.retries, `retries in budget of ${name}`, 1, 100_000)
  return Object.freeze({ retries: budget.retries, perMs: durationMs(budget.per, `per in budget of ${name}`, 1) })
}

function refused(what: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', what, { hint })
}
