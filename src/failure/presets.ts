import type { BreakerSettings } from '../breaker/breaker.ts'
import { type Action, park, pause, retry, skip } from './action.ts'
import { delays, exponential, fixed } from './backoff.ts'
import { definePolicy, type Policy, type PolicyOptions } from './policy.ts'

/*
 * Policies with the numbers of well-known designs. They carry no jitter where the design has none, so that their timetables are what
 * they say. Each takes options, which are put in the place of its own.
 */

/** Three retries, after 2, 4 and 8 s; then it is parked. */
export function bounded(options: PolicyOptions = {}): Policy {
  return preset('bounded', options, {
    transient: retry({ attempts: 4, backoff: delays(['2s', '4s', '8s']) }).then(park),
  })
}

/** Rather late than wrong: retries without end, from 1 s to 30 s. What can't go through is parked at once. */
export function consistencyFirst(options: PolicyOptions = {}): Policy {
  return preset('consistencyFirst', options, {
    transient: retry({ unlimited: true, backoff: exponential('1s', { cap: '30s' }) }),
  })
}

/** Three retries, each after 1 s; after that, a recovery pass every 30 s, without end. */
export function recovering(options: PolicyOptions = {}): Policy {
  return preset('recovering', options, {
    transient: retry({ attempts: 4, backoff: fixed('1s') }).then(retry({ unlimited: true, backoff: fixed('30s') })),
    dependency: pause({ failures: 10, for: '60s' }),
  })
}

/**
 * Three retries, at once, after 1 s and after 2 s; then it is parked. For calls to many endpoints: give the handler
 * `differentiatedBreaker` with a key, and an endpoint that is down waits by itself. So a dependency that is down does not stop the
 * partition: its lanes are tried again without end, and the breaker spares it most of that.
 */
export function differentiated(options: PolicyOptions = {}): Policy {
  return preset('differentiated', options, {
    transient: retry({ attempts: 4, backoff: delays(['0s', '1s', '2s']) }).then(park),
    dependency: retry({ unlimited: true, backoff: exponential('1s', { cap: '5m' }) }),
  })
}

/** Opens after 5 failures, for 5 minutes. */
export const differentiatedBreaker: BreakerSettings = breaker(5, 300_000, 1)

export interface CategorisedOptions extends Omit<PolicyOptions, 'permanent'> {
  /** `skip` records it as discarded and goes on. */
  readonly permanent?: 'park' | 'skip' | Action
}

/**
 * Three attempts, after 100 and 200 ms, less up to half by chance; then it is parked, also when it is the infrastructure that
 * fails. What nobody can tell is parked at once.
 */
export function categorised({ permanent = 'park', ...options }: CategorisedOptions = {}): Policy {
  const brief = retry({ attempts: 3, backoff: exponential('100ms', { cap: '10s', jitter: 0.5 }) }).then(park)
  return preset('categorised', options, {
    transient: brief,
    permanent: permanent === 'park' ? park : permanent === 'skip' ? skip('a permanent failure') : permanent,
    infrastructure: brief,
    dependency: retry({ unlimited: true, backoff: exponential('1s', { cap: '60s', jitter: 0.5 }) }),
    unknown: park,
  })
}

/** Opens after 5 failures, for 60 s; 2 successes close it. */
export const categorisedBreaker: BreakerSettings = breaker(5, 60_000, 2)

function preset(name: string, options: PolicyOptions, own: PolicyOptions): Policy {
  // An option that is there but undefined is not given; spread as it is, it would bring back the default of `definePolicy`.
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return definePolicy({ name, ...own, ...Object.fromEntries(given) })
}

function breaker(failures: number, ms: number, successes: number): BreakerSettings {
  return Object.freeze({
    opens: Object.freeze({ by: 'count', failures }),
    cooldown: Object.freeze({ ms, factor: 1, mostMs: ms }),
    probes: 1,
    successes,
    quorum: 1,
  })
}
