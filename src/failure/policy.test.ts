import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { type Action, block, park, pause, retry, skip } from './action.ts'
import { delays, exponential, fixed } from './backoff.ts'
import type { Classified } from './classify.ts'
import { type FailureClass, failureClasses } from './failure.ts'
import { type Decision, decide, definePolicy, type Failing, type Policy, type PolicyOptions } from './policy.ts'
import { bounded, categorised, consistencyFirst, differentiated, recovering } from './presets.ts'
import { customPolicy, noRetry, only } from './special.ts'

const most = { u32: () => 2 ** 32 - 1 }
const of = (failureClass: FailureClass, more: Partial<Classified> = {}): Classified => ({
  class: failureClass,
  rule: 'test',
  evidence: null,
  ...more,
})
const failing = (failure: Classified, more: Partial<Failing> = {}): Failing => ({
  failure,
  type: 'OrderPlaced',
  tries: 1,
  inARow: 1,
  ...more,
})
const decided = (policy: Policy, failure: Classified, more?: Partial<Failing>) =>
  decide(policy, failing(failure, more), most)
/** In short: what is decided after each of so many tries. */
const briefly = (policy: Policy, failureClass: FailureClass, tries: number, inARow = 1) =>
  Array.from({ length: tries }, (_, i) => {
    const decision = decided(policy, of(failureClass), { tries: i + 1, inARow })
    return decision.decision === 'retry' ? decision.delayMs : decision.decision
  })
const refusal = expect.objectContaining({ code: 'OPTION_INVALID' })

describe('a policy that says nothing', () => {
  const policy = definePolicy()

  it('retries three times, then parks, also what nobody can tell', () => {
    for (const name of ['transient', 'unknown'] as const)
      expect(briefly(policy, name, 5)).toEqual([1_000, 2_000, 4_000, 'park', 'park'])
  })

  it('parks at once what can not go through', () => {
    expect(briefly(policy, 'permanent', 2)).toEqual(['park', 'park'])
  })

  it('stands still when the infrastructure fails, however often', () => {
    expect(decided(policy, of('infrastructure'), { tries: 9_999 })).toMatchObject({ decision: 'stop', why: 'block' })
  })

  it('stands still when a dependency fails five times in a row; until then its lanes are tried without end', () => {
    expect(briefly(policy, 'dependency', 8, 4)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    expect(decided(policy, of('dependency'), { inARow: 5 })).toMatchObject({ decision: 'stop', why: 'pause' })
    expect(decided(policy, of('dependency'), { tries: 9_999, inARow: 4 }).decision).toBe('retry')
  })

  it('knows an outage by three lanes, and blames an event for four deaths', () => {
    expect(policy).toMatchObject({ name: 'own', maxDeaths: 4, outage: { lanes: 3 }, budget: undefined, rules: [] })
    const { backoff } = policy.outage as { backoff: { delayMs(retry: number, random: typeof most): number } }
    expect([1, 2, 9].map((probe) => backoff.delayMs(probe, most))).toEqual([1_000, 2_000, 30_000])
  })
})

describe('a policy', () => {
  it('does what it says for each class, and lets unknown be as transient unless it says so', () => {
    const policy = definePolicy({ transient: skip('no matter'), permanent: retry({ attempts: 2, backoff: fixed(5) }) })
    expect(briefly(policy, 'transient', 1)).toEqual(['skip'])
    expect(briefly(policy, 'unknown', 1)).toEqual(['skip'])
    expect(briefly(policy, 'permanent', 3)).toEqual([5, 'park', 'park'])
    expect(briefly(definePolicy({ transient: skip('no matter'), unknown: park }), 'unknown', 1)).toEqual(['park'])
  })

  it('may differ for single types of event', () => {
    const policy = definePolicy({ types: { Ping: { permanent: skip('only a ping') } } })
    expect(decided(policy, of('permanent'), { type: 'Ping' })).toEqual({ decision: 'skip', reason: 'only a ping' })
    expect(decided(policy, of('permanent')).decision).toBe('park')
    expect(decided(policy, of('infrastructure'), { type: 'Ping' }).decision).toBe('stop')
    expect(decided(policy, of('permanent'), { type: 'constructor' }).decision).toBe('park')
  })

  it('goes from one retry on to the next, where the last try of one is the first of the other', () => {
    const twice = retry({ attempts: 3, backoff: delays([1, 2]) }).then(
      retry({ attempts: 3, backoff: delays([10, 20]) }).then(block()),
    )
    expect(briefly(definePolicy({ transient: twice }), 'transient', 6)).toEqual([1, 2, 10, 20, 'stop', 'stop'])
  })

  it('has the rules that it is given, and says what to give instead of others', () => {
    const rule = () => undefined
    expect(definePolicy({ rules: [rule] }).rules).toEqual([rule])
    for (const wrong of [{ rules: [5] }, { name: '' }, { types: 5 }])
      expect(() => definePolicy(wrong as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID', hint: expect.any(String) }),
      )
  })

  it('may be written by hand, and is checked as if it were not', () => {
    const own = (action: unknown) => () => definePolicy({ transient: action as Action })
    const tried = { action: 'retry', attempts: 2, backoff: fixed('1s'), next: park }
    const paused = { action: 'pause', failures: 2, backoff: fixed('1s'), before: park }
    for (const right of [
      tried,
      paused,
      { ...tried, attempts: 1_000_000 },
      { ...tried, attempts: Number.POSITIVE_INFINITY },
    ])
      expect(own(right)).not.toThrow()
    for (const wrong of [
      { ...tried, attempts: 0 },
      { ...tried, attempts: 1_000_001 },
      { ...paused, failures: 0 },
      { ...paused, backoff: fixed(0) },
    ])
      expect(own(wrong)).toThrow(refusal)
  })

  it('has up to sixteen actions that follow each other, in either way', () => {
    const tried = (depth: number): Action =>
      depth === 0 ? park : { action: 'retry', attempts: 1, backoff: fixed('1s'), next: tried(depth - 1) }
    const paused = (depth: number): Action =>
      depth === 0 ? park : { action: 'pause', failures: 1, backoff: fixed('1s'), before: paused(depth - 1) }
    for (const nested of [tried, paused]) {
      expect(() => definePolicy({ transient: nested(16) })).not.toThrow()
      expect(() => definePolicy({ transient: nested(17) })).toThrow(refusal)
    }
  })

  it('takes a count of tries that is none for the first', () => {
    const policy = definePolicy({ transient: retry({ attempts: 3, backoff: delays(['1s', '2s']) }) })
    for (const tries of [0, -5, Number.NaN])
      expect(decided(policy, of('transient'), { tries })).toEqual({ decision: 'retry', delayMs: 1_000 })
    expect(decided(policy, of('transient'), { tries: 2.5 })).toEqual({ decision: 'retry', delayMs: 2_000 })
  })

  it('may retry at once, as long as that has an end', () => {
    expect(briefly(definePolicy({ transient: retry({ attempts: 3, backoff: fixed(0) }) }), 'transient', 3)).toEqual([
      0,
      0,
      'park',
    ])
  })

  it('passes over with a reason of up to 1,000 characters', () => {
    const policy = (reason: string) => definePolicy({ permanent: skip(reason) })
    expect(decided(policy('x'.repeat(1_000)), of('permanent'))).toEqual({
      decision: 'skip',
      reason: 'x'.repeat(1_000),
    })
    for (const wrong of ['x'.repeat(1_001), '  ', 5 as unknown as string])
      expect(() => policy(wrong)).toThrow('skip needs a reason')
  })

  it('that retries with one attempt does not retry', () => {
    expect(briefly(definePolicy({ transient: retry({ attempts: 1 }) }), 'transient', 1)).toEqual(['park'])
  })

  it('ends a retry in park if nobody says where', () => {
    expect(briefly(definePolicy({ transient: retry({ attempts: 2, backoff: fixed(1) }) }), 'transient', 2)).toEqual([
      1,
      'park',
    ])
  })

  it('never waits less than the other side asked for, and counts the try', () => {
    const policy = definePolicy({ transient: retry({ attempts: 3, backoff: delays(['1s', '10s']) }) })
    const limited = of('transient', { retryAfterMs: 5_000 })
    expect([1, 2, 3].map((tries) => decided(policy, limited, { tries }))).toEqual([
      { decision: 'retry', delayMs: 5_000 },
      { decision: 'retry', delayMs: 10_000 },
      { decision: 'park' },
    ])
    const stop = decided(policy, of('dependency', { retryAfterMs: 600_000 }), { inARow: 99 })
    expect(stop.decision === 'stop' && stop.backoff.delayMs(1, most)).toBe(600_000)
    expect(stop.decision === 'stop' && stop.backoff.description).toBe('every 30s')
  })

  it('passes over what the handler says is to be passed over', () => {
    for (const policy of [definePolicy(), noRetry(), customPolicy(() => ({ decision: 'park' }))])
      expect(decided(policy, of('permanent', { skip: 'done' }))).toEqual({ decision: 'skip', reason: 'done' })
  })

  it('can not be changed, and leaves nothing to be awaited', async () => {
    const policy = definePolicy({ transient: retry({ attempts: 2 }) })
    expect(Object.isFrozen(policy)).toBe(true)
    expect(Object.isFrozen(policy.classes)).toBe(true)
    expect(policy.classes.transient).not.toHaveProperty('then')
    expect(policy.classes.transient).toMatchObject({ action: 'retry', attempts: 2, next: park })
  })

  it('has a budget if it is given one', () => {
    expect(definePolicy({ budget: { retries: 100, per: '1m' } }).budget).toEqual({ retries: 100, perMs: 60_000 })
  })

  it('judges each lane by itself if it is told so', () => {
    expect(definePolicy({ outage: false }).outage).toBeUndefined()
    expect(definePolicy({ outage: { lanes: 5, backoff: fixed('1m') } }).outage).toMatchObject({ lanes: 5 })
  })
})

describe('a retry that is awaited says so', () => {
  it('when it is returned by an async function', async () => {
    // The compiler says so too.
    const make = async () => retry({ attempts: 3 }) as unknown
    await expect(make()).rejects.toThrow(refusal)
    await expect(make()).rejects.toThrow('awaited')
  })
})

describe('a policy is refused', () => {
  const anyway = (options: unknown) => () => definePolicy(options as PolicyOptions)
  const again = (options: unknown) => () => retry(options as { attempts: number })

  it.for([
    ['an option nobody reads', anyway({ transient: park, permanant: park })],
    ['options that are none', anyway(null)],
    ['an action that is none', anyway({ transient: 'park' })],
    ['an action that does not exist', anyway({ transient: { action: 'ignore' } })],
    ['an action that was not called', anyway({ infrastructure: block })],
    ['no action', anyway({ transient: null })],
    ['a class that does not exist, for a type', anyway({ types: { Ping: { fatal: park } } })],
    ['types that are none', anyway({ types: [] })],
    ['a type that says nothing', anyway({ types: { Ping: park } })],
    ['rules that are none', anyway({ rules: ['permanent'] })],
    ['no list of rules', anyway({ rules: () => 'permanent' })],
    ['one death', anyway({ maxDeaths: 1 })],
    ['half a death', anyway({ maxDeaths: 2.5 })],
    ['an outage of one lane', anyway({ outage: { lanes: 1 } })],
    ['an outage that is on', anyway({ outage: true })],
    ['an outage with no wait', anyway({ outage: { backoff: fixed(0) } })],
    ['a budget of nothing', anyway({ budget: { retries: 0, per: '1s' } })],
    ['a budget without a time', anyway({ budget: { retries: 5 } })],
    ['an empty name', anyway({ name: '' })],
    ['a name that is too long', anyway({ name: 'x'.repeat(49) })],
    ['a retry that does not say how often', again({})],
    ['a retry that says it twice', again({ attempts: 3, unlimited: true })],
    ['a retry that is never', again({ attempts: 0 })],
    ['a retry that is not unlimited', again({ unlimited: false })],
    ['a retry with half an attempt', again({ attempts: 2.5 })],
    ['a retry with endless attempts', again({ attempts: Number.POSITIVE_INFINITY })],
    ['a retry with an option nobody reads', again({ retries: 3 })],
    ['a retry without end and without a wait', again({ unlimited: true, backoff: fixed(0) })],
    ['a retry with a duration for a backoff', again({ attempts: 3, backoff: '1s' })],
    ['a retry followed by nothing', () => retry({ attempts: 2 }).then(undefined as unknown as Action)],
    ['a block without a wait', () => block(fixed(0))],
    ['a pause without a wait', () => pause({ for: 0 })],
    ['a pause after no failures', () => pause({ failures: 0 })],
    ['a pause with no action before it', () => pause({ before: 'park' as unknown as Action })],
    ['a pause with an option nobody reads', () => pause({ wait: '1s' } as object)],
    ['a skip without a reason', () => skip(' ')],
    ['a filter that is none', () => only(definePolicy(), 'transient' as never)],
    ['a filter with a class that does not exist', () => only(definePolicy(), ['fatal' as FailureClass])],
    ['a custom policy without a function', () => customPolicy(undefined as never)],
    ['a custom policy with classes', () => customPolicy(() => ({ decision: 'park' }), { colour: 'red' } as object)],
  ] as const)('with %s', ([, make]) => {
    expect(make).toThrow(HoldfastError)
    expect(make).toThrow(refusal)
  })

  it('with actions that follow each other without end', () => {
    const circle = { action: 'retry', attempts: 2, backoff: fixed(1), next: undefined as unknown as Action }
    circle.next = circle as Action
    expect(anyway({ transient: circle })).toThrow('nested too deeply')
  })

  it('with what to do instead', () => {
    expect(anyway({ infrastructure: block })).toThrow('It is a function: call it.')
    expect(anyway({ transient: 'park' })).toThrow('transient of own is not an action. Use retry')
  })
})

describe('no retry', () => {
  it('parks at once, whatever happens', () => {
    for (const name of failureClasses)
      expect(decided(noRetry(), of(name, { retryAfterMs: 5 }), { inARow: 99 })).toEqual({ decision: 'park' })
    expect(noRetry()).toMatchObject({ name: 'none', outage: undefined })
  })
})

describe('a filtered policy', () => {
  it('retries what is of these classes, and parks the others', () => {
    const policy = only(definePolicy({ permanent: retry({ attempts: 5 }) }), ['transient'])
    expect(decided(policy, of('transient')).decision).toBe('retry')
    expect(decided(policy, of('unknown')).decision).toBe('park')
    expect(decided(policy, of('permanent')).decision).toBe('park')
  })

  it('is about retries: an outage still stops the partition', () => {
    const policy = only(definePolicy(), ['transient'])
    expect(decided(policy, of('infrastructure')).decision).toBe('stop')
    expect(decided(policy, of('dependency'), { inARow: 5 }).decision).toBe('stop')
    expect(decided(policy, of('dependency')).decision).toBe('park')
  })

  it('retries what a function says yes to; a promise and an error are no yes', () => {
    const policy = (agrees: unknown) => only(definePolicy(), agrees as () => boolean)
    const type = (name: string) => (one: Failing) => one.type === name
    expect(decided(policy(type('OrderPlaced')), of('transient')).decision).toBe('retry')
    expect(decided(policy(type('Other')), of('transient')).decision).toBe('park')
    for (const odd of [() => Promise.reject(new Error('no')), () => 1, () => thrown()])
      expect(decided(policy(odd), of('transient')).decision).toBe('park')
  })

  it('is refused with a class that there is not, and says what to give', () => {
    for (const wrong of [['transient', 'fatal'], 'transient', undefined])
      expect(() => only(definePolicy(), wrong as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID', hint: expect.stringContaining('transient, permanent') }),
      )
    expect(() => customPolicy(undefined as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', hint: expect.stringContaining('delayMs') }),
    )
  })

  it('may be filtered again', () => {
    const policy = only(only(bounded(), ['transient', 'unknown']), ({ tries }) => tries < 2)
    expect(briefly(policy, 'transient', 2)).toEqual([2_000, 'park'])
    expect(briefly(policy, 'dependency', 1)).toEqual(['park'])
    expect(policy.name).toBe('bounded')
  })
})

describe('a custom policy', () => {
  it('decides by itself', () => {
    const policy = customPolicy(({ tries }) =>
      tries < 3 ? { decision: 'retry', delayMs: tries * 10 } : { decision: 'skip', reason: 'enough' },
    )
    expect(briefly(policy, 'permanent', 3)).toEqual([10, 20, 'skip'])
    expect(policy.name).toBe('custom')
  })

  it('may stop, and has all that is not about classes', () => {
    const backoff = exponential('1s')
    const policy = customPolicy(() => ({ decision: 'stop', why: 'pause', backoff }), { name: 'mine', maxDeaths: 5 })
    expect(decided(policy, of('transient'))).toEqual({ decision: 'stop', why: 'pause', backoff })
    const blocking = customPolicy(() => ({ decision: 'stop', why: 'block', backoff }))
    expect(decided(blocking, of('transient'))).toEqual({ decision: 'stop', why: 'block', backoff })
    expect(
      decided(
        customPolicy(() => ({ decision: 'retry', delayMs: 0 })),
        of('transient'),
      ),
    ).toEqual({
      decision: 'retry',
      delayMs: 0,
    })
    expect(policy).toMatchObject({ name: 'mine', maxDeaths: 5 })
  })

  it.for<readonly [string, unknown]>([
    ['throws', () => thrown()],
    ['gives nothing', () => undefined],
    ['gives a promise', () => Promise.reject(new Error('too late'))],
    ['gives a decision there is not', () => ({ decision: 'ignore' })],
    ['waits for no number', () => ({ decision: 'retry', delayMs: Number.NaN })],
    ['waits for less than nothing', () => ({ decision: 'retry', delayMs: -1 })],
    ['skips without a reason', () => ({ decision: 'skip' })],
    ['stops for no reason', () => ({ decision: 'stop', backoff: fixed('1s') })],
    ['stops without a backoff', () => ({ decision: 'stop', why: 'block' })],
    ['stops without a wait', () => ({ decision: 'stop', why: 'block', backoff: fixed(0) })],
    ['stops for a reason there is not', () => ({ decision: 'stop', why: 'rest', backoff: fixed('1s') })],
    ['waits for a text', () => ({ decision: 'retry', delayMs: '5' })],
    ['gives a proxy that throws', () => new Proxy({}, { get: () => thrown() })],
  ])('that %s parks', ([, decideBy]) => {
    expect(decided(customPolicy(decideBy as () => Decision), of('transient'))).toEqual({ decision: 'park' })
  })
})

it('decides every failure of every policy', () => {
  const backoff = fc.constantFrom(fixed('1s'), delays([0, 5]), exponential('1s', { jitter: 1 }), {
    description: 'wild',
    delayMs: () => Number.NaN,
  })
  const count = fc.integer({ min: 1, max: 20 })
  const { action } = fc.letrec<{ action: Action }>((tie) => ({
    action: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(park, skip('no matter'), block()),
      fc.record({ action: fc.constant('retry' as const), attempts: count, backoff, next: tie('action') }),
      fc.record({
        action: fc.constant('pause' as const),
        failures: count,
        backoff: fc.constant(fixed(1)),
        before: tie('action'),
      }),
    ),
  }))
  const classes = fc.record(Object.fromEntries(failureClasses.map((name) => [name, action])), { requiredKeys: [] })
  const policies = fc.oneof(
    fc.constantFrom(bounded(), consistencyFirst(), recovering(), differentiated(), categorised(), noRetry()),
    fc
      .tuple(classes, fc.dictionary(fc.constantFrom('A', 'B'), classes))
      .map(([some, types]) => definePolicy({ ...some, types })),
    fc.func(fc.anything()).map((decideBy) => customPolicy(decideBy as () => Decision)),
    fc.func(fc.anything()).map((agrees) => only(bounded(), agrees as () => boolean)),
  )
  const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, 1, 2 ** 31, Number.NaN))
  const failings = fc.record({
    class: fc.constantFrom(...failureClasses),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 3_600_000 }), { nil: undefined }),
    type: fc.constantFrom('A', 'B', 'C', '__proto__'),
    tries: number,
    inARow: number,
  })
  fc.assert(
    fc.property(policies, failings, fc.nat(), (policy, { class: name, retryAfterMs, ...more }, chance) => {
      const failure = of(name, retryAfterMs === undefined ? {} : { retryAfterMs })
      const random = { u32: () => chance }
      const decision = decide(policy, failing(failure, more), random)
      const waitMs =
        decision.decision === 'retry'
          ? decision.delayMs
          : decision.decision === 'stop'
            ? decision.backoff.delayMs(1, random)
            : (retryAfterMs ?? 0)
      expect(['retry', 'park', 'skip', 'stop']).toContain(decision.decision)
      expect(Number.isSafeInteger(waitMs)).toBe(true)
      expect(waitMs).toBeGreaterThanOrEqual(retryAfterMs ?? 0)
    }),
    { numRuns: 1_000 },
  )
})

function thrown(): never {
  throw new Error('gotcha')
}
