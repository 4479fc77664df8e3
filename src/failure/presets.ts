import type { BreakerOptions } from '../breaker/settings.ts'
import { type Action, park, pause, retry, skip } from './action.ts'
import { delays, exponential, fixed } from './backoff.ts'
import { definePolicy, type Policy, type PolicyOptions } from './policy.ts'

/*
 * Policies with the numbers of well-known designs. They have no jitter where the design has none. Each takes options, which
 * override its own.
 */

/** Three retries, after 2, 4 and 8 s; then park. */
export function bounded(options: PolicyOptions = {}): Policy {
  return preset('bounded', options, {
    transient: retry({ attempts: 4, backoff: delays(['2s', '4s', '8s']) }).then(park),
  })
}

/** Consistency over latency: retries without limit, from 1 s to 30 s. Permanent failures are parked at once. */
export function consistencyFirst(options: PolicyOptions = {}): Policy {
  return preset('consistencyFirst', options, {
    transient: retry({ unlimited: true, backoff: exponential('1s', { cap: '30s' }) }),
  })
}

/** Three retries, each after 1 s; after that, a recovery pass every 30 s, without limit. */
export function recovering(options: PolicyOptions = {}): Policy {
  return preset('recovering', options, {
    transient: retry({ attempts: 4, backoff: fixed('1s') }).then(retry({ unlimited: true, backoff: fixed('30s') })),
    dependency: pause({ failures: 10, for: '60s' }),
  })
}

/**
 * Three retries, at once, after 1 s and after 2 s; then park. For calls to many endpoints: give the handler
 * `differentiatedBreaker` with a key, and only the lanes of an unavailable endpoint wait. A dependency failure does not stop the
 * partition: its lanes are retried without limit, and the breaker prevents most of the calls.
 */
export function differentiated(options: PolicyOptions = {}): Policy {
  return preset('differentiated', options, {
    transient: retry({ attempts: 4, backoff: delays(['0s', '1s', '2s']) }).then(park),
    dependency: retry({ unlimited: true, backoff: exponential('1s', { cap: '5m' }) }),
  })
}

/** For `breaker` of a handler, or `createBreaker`: opens after 5 failures, for 5 minutes. With a key: `{ ...differentiatedBreaker, key }`. */
export const differentiatedBreaker: BreakerOptions = Object.freeze({
  opens: Object.freeze({ failures: 5 }),
  cooldown: '5m',
})

export interface CategorisedOptions extends Omit<PolicyOptions, 'permanent'> {
  /** `skip` records the event as discarded and continues. */
  readonly permanent?: 'park' | 'skip' | Action
}

/**
 * Three attempts, after 100 and 200 ms, with jitter of up to half; then park, also for infrastructure failures. Unknown failures
 * are parked at once.
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

/** For `breaker` of a handler, or `createBreaker`: opens after 5 failures, for 60 s; 2 successes close it. */
export const categorisedBreaker: BreakerOptions = Object.freeze({
  opens: Object.freeze({ failures: 5 }),
  cooldown: '60s',
  successes: 2,
})

function preset(name: string, options: PolicyOptions, own: PolicyOptions): Policy {
  // An undefined option counts as not given; otherwise it would restore the default of `definePolicy`.
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return definePolicy({ name, ...own, ...Object.fromEntries(given) })
}
