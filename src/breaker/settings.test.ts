import { describe, expect, it } from 'vitest'
import { type BreakerOptions, breakerSettings } from './settings.ts'

describe('the settings of a breaker', () => {
  it('are safe when nothing is said', () => {
    expect(breakerSettings()).toEqual({
      opens: { by: 'count', failures: 5 },
      cooldown: { ms: 30_000, factor: 2, mostMs: 600_000 },
      probes: 1,
      successes: 1,
      quorum: 1,
      probeLeaseMs: 60_000,
    })
  })

  it('are what is said', () => {
    const options: BreakerOptions = {
      opens: { rate: 0.5, window: '1m', minimumCalls: 20 },
      cooldown: { initial: '1s', factor: 1.5, cap: '1h' },
      probes: 3,
      successes: 2,
      quorum: 4,
      probeLease: '5m',
    }
    expect(breakerSettings(options)).toEqual({
      opens: { by: 'rate', rate: 0.5, windowMs: 60_000, minimumCalls: 20 },
      cooldown: { ms: 1_000, factor: 1.5, mostMs: 3_600_000 },
      probes: 3,
      successes: 2,
      quorum: 4,
      probeLeaseMs: 300_000,
    })
  })

  it('have a cooldown that is always the same when it is one duration', () => {
    expect(breakerSettings({ cooldown: '60s' }).cooldown).toEqual({ ms: 60_000, factor: 1, mostMs: 60_000 })
  })

  it('have a cap that fits a long cooldown', () => {
    expect(breakerSettings({ cooldown: { initial: '1h' } }).cooldown.mostMs).toBe(3_600_000)
  })

  it.for([
    [{ opens: { failures: 0 } }, 'opens.failures'],
    [{ opens: { failures: 2.5 } }, 'opens.failures'],
    [{ opens: { failures: 5, rate: 0.5 } }, 'opens by count'],
    [{ opens: {} }, 'opens.rate'],
    [{ opens: 5 }, 'opens'],
    [{ opens: { rate: 0, window: '1m', minimumCalls: 1 } }, 'opens.rate'],
    [{ opens: { rate: 1.1, window: '1m', minimumCalls: 1 } }, 'opens.rate'],
    [{ opens: { rate: Number.NaN, window: '1m', minimumCalls: 1 } }, 'opens.rate'],
    [{ opens: { rate: 0.5, minimumCalls: 1 } }, 'opens.window'],
    [{ opens: { rate: 0.5, window: 0, minimumCalls: 1 } }, 'opens.window'],
    [{ opens: { rate: 0.5, window: '1m' } }, 'opens.minimumCalls'],
    [{ cooldown: 'soon' }, 'cooldown'],
    [{ cooldown: 0 }, 'cooldown'],
    [{ cooldown: null }, 'cooldown'],
    [{ cooldown: '400d' }, 'cooldown'],
    [{ cooldown: { factor: 0.5 } }, 'cooldown.factor'],
    [{ cooldown: { factor: '2' } }, 'cooldown.factor is "2"'],
    [{ cooldown: { factor: Number.POSITIVE_INFINITY } }, 'cooldown.factor is Infinity'],
    [{ opens: { rate: '0.5', window: '1m', minimumCalls: 1 } }, 'opens.rate is "0.5"'],
    [{ cooldown: { initial: '1m', cap: '1s' } }, 'cooldown.cap'],
    [{ cooldown: { start: '1m' } }, 'start'],
    [{ probes: 0 }, 'probes'],
    [{ successes: '2' }, 'successes'],
    [{ quorum: Number.POSITIVE_INFINITY }, 'quorum'],
    [{ probeLease: -1 }, 'probeLease'],
    [{ cooldwon: '1m' }, 'cooldwon'],
  ] as const)('refuse %j', ([options, what]) => {
    expect(() => breakerSettings(options as BreakerOptions)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(what) }),
    )
  })

  it('take what is at their limits', () => {
    expect(breakerSettings({ cooldown: { factor: 1 } }).cooldown.factor).toBe(1)
    expect(breakerSettings({ cooldown: '365d' }).cooldown.ms).toBe(365 * 86_400_000)
    expect(breakerSettings({ opens: { rate: 1, window: '1m', minimumCalls: 1 } }).opens).toMatchObject({ rate: 1 })
  })

  it('say what is possible instead', () => {
    expect(() => breakerSettings({ probes: 0 })).toThrow(
      expect.objectContaining({
        message: expect.stringContaining('probes is 0.'),
        hint: 'Give a whole number of 1 or more.',
      }),
    )
  })
})
