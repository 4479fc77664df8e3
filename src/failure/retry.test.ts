import { getEventListeners } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { createVirtualRuntime } from '../testing/virtual.ts'
import { delays, exponential, fixed } from './backoff.ts'
import { definePolicy } from './policy.ts'
import { type FailedAttempt, type RetryContext, retryWithBackoff, type RetryWithBackoffOptions } from './retry.ts'
import { failure } from './said.ts'

class Refused extends Error {}

type Outcome = { readonly result: unknown } | { readonly error: unknown }

/** Calls in virtual time that starts at 0, and what came of them. */
function world() {
  const runtime = createVirtualRuntime()
  const calls: { readonly at: number; readonly attempt: number }[] = []
  const settled: { at: number; outcome: Outcome }[] = []
  return {
    runtime,
    settled,
    times: () => calls.map(({ at }) => at),
    calls: () => calls.map(({ attempt }) => attempt),
    start: (work: (context: RetryContext) => unknown, options: RetryWithBackoffOptions = {}) => {
      const fn = (context: RetryContext) => {
        calls.push({ at: runtime.clock.mono(), attempt: context.attempt })
        return work(context)
      }
      const end = (outcome: Outcome) => void settled.push({ at: runtime.clock.mono(), outcome })
      retryWithBackoff(fn, { ...runtime, ...options }).then(
        (result) => end({ result }),
        (error: unknown) => end({ error }),
      )
    },
  }
}

const always = (error: unknown) => () => {
  throw error
}
const network = () => Object.assign(new Error('down'), { code: 'ECONNREFUSED' })
/** Longer than all attempts of the tests. */
const day = 86_400_000

describe('a call that is retried', () => {
  it('returns the result of the first attempt that succeeds, sync or async', async () => {
    for (const work of [() => 'fine', () => Promise.resolve('fine')]) {
      const { start, runtime, settled, calls } = world()
      start((context) => (context.attempt < 3 ? Promise.reject(network()) : work()))
      await runtime.advance(day)
      expect(settled).toMatchObject([{ outcome: { result: 'fine' } }])
      expect(calls()).toEqual([1, 2, 3])
    }
  })

  it('waits exactly as its backoff says, and throws the error of the last attempt itself', async () => {
    const { start, runtime, settled, times } = world()
    start(({ attempt }) => Promise.reject(new Refused(`attempt ${attempt}`)), {
      backoff: exponential('50ms', { cap: '150ms' }),
      attempts: 5,
    })
    await runtime.advance(day)
    expect(times()).toEqual([0, 50, 150, 300, 450])
    expect(settled).toEqual([{ at: 450, outcome: { error: expect.any(Refused) } }])
    expect(settled[0]?.outcome).toHaveProperty('error.message', 'attempt 5')
  })

  it('throws what was thrown, whatever it is', async () => {
    for (const thrown of [undefined, null, 'a text', new Proxy({}, { get: always(new Error('a trap')) })]) {
      const { start, runtime, settled } = world()
      start(always(thrown), { attempts: 2 })
      await runtime.advance(day)
      expect(settled.map(({ outcome }) => 'error' in outcome && outcome.error === thrown)).toEqual([true])
    }
  })

  it('has the attempts and the delays of a policy by default', async () => {
    const { start, runtime, times } = world()
    const { transient } = definePolicy().classes
    if (transient.action !== 'retry') throw new Error('The default has changed.')
    const { random } = createVirtualRuntime()
    const expected = [0]
    for (let retry = 1; retry < transient.attempts; retry++)
      expected.push((expected.at(-1) ?? 0) + transient.backoff.delayMs(retry, random))
    start(always(network()))
    await runtime.advance(day)
    expect(times()).toEqual(expected)
    expect(times()).toHaveLength(4)
  })

  it('is made once with one attempt', async () => {
    const { start, runtime, settled, times } = world()
    start(always(network()), { attempts: 1 })
    await runtime.advance(0)
    expect(times()).toEqual([0])
    expect(settled).toHaveLength(1)
  })

  it('has its turn at once without a delay', async () => {
    const { start, runtime, times } = world()
    start(always(network()), { attempts: 3, backoff: delays(['0s']) })
    await runtime.advance(0)
    expect(times()).toEqual([0, 0, 0])
  })
})

describe('the class of a failure', () => {
  const attemptsOf = async (error: unknown, options: RetryWithBackoffOptions = {}) => {
    const { start, runtime, calls } = world()
    start(always(error), { attempts: 3, ...options })
    await runtime.advance(day)
    return calls().length
  }

  it('is retried if it is transient, infrastructure, dependency or unknown', async () => {
    for (const error of [
      network(),
      Object.assign(new Error(), { code: 'ENOSPC' }),
      failure.dependency('the rates'),
      new Error('something'),
    ])
      expect(await attemptsOf(error)).toBe(3)
  })

  it('is never retried if it is permanent: by the built-in rules, and as the code said', async () => {
    for (const error of [
      new TypeError('a bug'),
      Object.assign(new Error(), { status: 404 }),
      failure.permanent('wrong data'),
      failure.skip('nothing to do'),
      new Error('outer', { cause: failure.permanent('inner') }),
    ])
      expect(await attemptsOf(error)).toBe(1)
  })

  it('is asked of the own rules first, one or a list', async () => {
    const own = (error: unknown) => (error instanceof Refused ? ('permanent' as const) : undefined)
    expect(await attemptsOf(new Refused(), { classify: own })).toBe(1)
    expect(await attemptsOf(new Refused(), { classify: [() => undefined, own] })).toBe(1)
    expect(await attemptsOf(new TypeError(), { classify: () => 'transient' })).toBe(3)
    // What the code said itself comes before the rules, as in a policy.
    expect(await attemptsOf(failure.permanent('no'), { classify: () => 'transient' })).toBe(1)
    // An event that is skipped is not retried, whatever its class.
    const skips = () => ({ class: 'transient', rule: 'own', evidence: null, skip: 'not needed' }) as const
    expect(await attemptsOf(new Error('never mind'), { classify: skips })).toBe(1)
    const broken = () => {
      throw new Error('a broken rule')
    }
    expect(await attemptsOf(network(), { classify: broken })).toBe(3)
  })
})

describe('Retry-After', () => {
  const busy = (after: string) => Object.assign(new Error(), { status: 429, headers: { 'retry-after': after } })
  const timesOf = async (error: unknown, backoff = fixed('5s')) => {
    const { start, runtime, times } = world()
    start(always(error), { attempts: 2, backoff })
    await runtime.advance(day)
    return times()
  }

  it('is the least time to wait; the backoff may be longer', async () => {
    expect(await timesOf(busy('7'))).toEqual([0, 7_000])
    expect(await timesOf(busy('3'))).toEqual([0, 5_000])
    expect(await timesOf(failure.transient('soon', { retryAfter: '9s' }))).toEqual([0, 9_000])
    expect(await timesOf(failure.dependency('rates', 'down', { retryAfter: '9s' }))).toEqual([0, 9_000])
  })

  it('as a date is compared with the clock', async () => {
    expect(await timesOf(busy('Thu, 01 Jan 2026 00:01:00 GMT'))).toEqual([0, 60_000])
  })
})

describe('an abort', () => {
  const reason = new Refused('enough')

  it('before the call rejects with the reason, and nothing is called', async () => {
    const { start, runtime, settled, calls } = world()
    start(() => 'fine', { signal: AbortSignal.abort(reason) })
    await runtime.advance(0)
    expect(settled).toEqual([{ at: 0, outcome: { error: reason } }])
    expect(calls()).toEqual([])
  })

  it('ends a wait at once, and with it the retries', async () => {
    const { start, runtime, settled, times } = world()
    const controller = new AbortController()
    start(always(network()), { signal: controller.signal, backoff: fixed('1h') })
    await runtime.advance(1_000)
    controller.abort(reason)
    await runtime.advance(0)
    expect(settled).toEqual([{ at: 1_000, outcome: { error: reason } }])
    await runtime.advance(day)
    expect(times()).toEqual([0])
  })

  it('ends an attempt that hangs, and what that one throws later is of no consequence', async () => {
    const { start, runtime, settled, calls } = world()
    const controller = new AbortController()
    const hanging = Promise.withResolvers<never>()
    start(() => hanging.promise, { signal: controller.signal })
    await runtime.advance(10)
    controller.abort(reason)
    await runtime.advance(0)
    expect(settled).toEqual([{ at: 10, outcome: { error: reason } }])
    hanging.reject(network())
    await runtime.advance(day)
    expect(settled).toHaveLength(1)
    expect(calls()).toEqual([1])
  })

  it('is stronger than the error or the result of an attempt that sees it', async () => {
    for (const end of [always(new TypeError('a bug')), () => 'a result']) {
      const { start, runtime, settled } = world()
      const controller = new AbortController()
      const work = () => {
        controller.abort(reason)
        return end()
      }
      start(work, { signal: controller.signal })
      await runtime.advance(0)
      expect(settled).toEqual([{ at: 0, outcome: { error: reason } }])
    }
  })

  it('reaches the work by its signal, which it always has', async () => {
    const { start, runtime } = world()
    const seen: AbortSignal[] = []
    const { signal } = new AbortController()
    start((context) => seen.push(context.signal), { signal })
    start((context) => seen.push(context.signal))
    await runtime.advance(0)
    expect(seen[0]).toBe(signal)
    expect(seen[1]).toMatchObject({ aborted: false })
  })

  it('of one signal for 1,000 calls leaves no listener, and no warning', async () => {
    const warnings: unknown[] = []
    const warned = (warning: unknown) => void warnings.push(warning)
    process.on('warning', warned)
    try {
      const { start, runtime, settled } = world()
      const { signal } = new AbortController()
      for (let i = 0; i < 1_000; i++)
        start(({ attempt }) => (attempt === 1 ? Promise.reject(network()) : i), { signal, backoff: fixed('1s') })
      await runtime.advance(500)
      expect(getEventListeners(signal, 'abort')).toHaveLength(1_000)
      await runtime.advance(500)
      expect(settled).toHaveLength(1_000)
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      expect(warnings).toEqual([])
    } finally {
      process.off('warning', warned)
    }
  })

  it('ends a call without a limit', async () => {
    const { start, runtime, settled, calls } = world()
    const controller = new AbortController()
    start(always(network()), { signal: controller.signal, attempts: Infinity, backoff: fixed('1s') })
    await runtime.advance(99_500)
    expect(calls()).toHaveLength(100)
    expect(settled).toEqual([])
    controller.abort(reason)
    await runtime.advance(day)
    expect(calls()).toHaveLength(100)
    expect(settled).toEqual([{ at: 99_500, outcome: { error: reason } }])
  })
})

describe('onRetry', () => {
  it('sees every failed attempt that is retried, before the wait', async () => {
    const { start, runtime } = world()
    const seen: (FailedAttempt & { at: number })[] = []
    const error = network()
    start(always(error), {
      attempts: 3,
      backoff: delays(['1s', '3s']),
      onRetry: (failed) => seen.push({ ...failed, at: runtime.clock.mono() }),
    })
    await runtime.advance(day)
    expect(seen).toEqual([
      { attempt: 1, error, class: 'transient', waitMs: 1_000, at: 0 },
      { attempt: 2, error, class: 'transient', waitMs: 3_000, at: 1_000 },
    ])
  })

  it('changes nothing if it throws, or returns a promise that rejects', async () => {
    for (const end of [always(new Error('mine')), () => Promise.reject(new Error('mine'))]) {
      const { start, runtime, settled, times } = world()
      let reports = 0
      const onRetry = (): unknown => {
        reports++
        return end()
      }
      start(({ attempt }) => (attempt < 2 ? Promise.reject(network()) : 'fine'), { backoff: fixed('1s'), onRetry })
      await runtime.advance(day)
      expect(reports).toBe(1)
      expect(times()).toEqual([0, 1_000])
      expect(settled).toEqual([{ at: 1_000, outcome: { result: 'fine' } }])
    }
  })
})

describe('the options', () => {
  const { signal } = new AbortController()

  it.for([
    ['an unknown name', { atempts: 3 }, 'retryWithBackoff has no option "atempts".'],
    ['a number', 3, 'retryWithBackoff takes its options as an object.'],
    ['no attempts', { attempts: 0 }, 'attempts of retryWithBackoff is 0.'],
    ['a part of an attempt', { attempts: 1.5 }, 'attempts of retryWithBackoff is 1.5.'],
    ['a text of attempts', { attempts: '3' }, 'attempts of retryWithBackoff is 3.'],
    ['NaN', { attempts: Number.NaN, signal }, 'attempts of retryWithBackoff is NaN.'],
    ['no limit and no signal', { attempts: Infinity }, 'retryWithBackoff has no limit and no signal.'],
    [
      'no limit and no delay',
      { attempts: Infinity, signal, backoff: fixed(0) },
      'The backoff of retryWithBackoff has no delay.',
    ],
    ['a duration as backoff', { backoff: '1s' }, 'The backoff of retryWithBackoff is not a backoff.'],
    ['a class as rule', { classify: 'permanent' }, 'classify of retryWithBackoff must be a function'],
    ['a list of others', { classify: [() => undefined, 3] }, 'classify of retryWithBackoff must be a function'],
    ['a controller as signal', { signal: new AbortController() }, 'signal of retryWithBackoff must be an AbortSignal.'],
    ['a text as callback', { onRetry: 'log' }, 'onRetry of retryWithBackoff must be a function.'],
  ] as const)('refuse %s, with a hint, and call nothing', async ([, options, message]) => {
    const fn = vi.fn<() => void>()
    const error: unknown = await retryWithBackoff(fn, options as object).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code: 'OPTION_INVALID', hint: expect.stringMatching(/./) })
    expect((error as Error).message).toContain(message)
    expect(fn).not.toHaveBeenCalled()
  })

  it('refuse work that is not a function', async () => {
    const promise = Promise.resolve() as unknown as () => void
    await expect(retryWithBackoff(promise)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      hint: expect.stringContaining('=>'),
    })
  })

  it('may be undefined', async () => {
    const options = { backoff: undefined, attempts: undefined, classify: undefined, signal: undefined } as object
    expect(await retryWithBackoff(() => 1, options)).toBe(1)
  })

  it('come from the system by default', async () => {
    expect(
      await retryWithBackoff(({ attempt }) => (attempt < 3 ? always(network())() : attempt), {
        backoff: fixed('1ms'),
      }),
    ).toBe(3)
  })
})
