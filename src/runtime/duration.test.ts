import { describe, expect, expectTypeOf, it } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { type Duration, fromMs, toMs } from './duration.ts'

describe('a duration', () => {
  it.for([
    ['250ms', 250],
    ['15s', 15_000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['1.5s', 1_500],
    ['0ms', 0],
    [0, 0],
    [12.5, 12.5],
  ] as const)('%o is %d ms', ([duration, ms]) => {
    expect(toMs(duration, 'timeout')).toBe(ms)
  })

  it.for([
    '',
    's',
    '5',
    '-5s',
    '5 s',
    ' 5s',
    '5s\n',
    '5S',
    '5sec',
    '.5s',
    '1e3s',
    '0x5s',
    '5s5s',
    `${'9'.repeat(400)}d`,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    5n,
    Symbol('5s'),
    {},
    ['5s'],
  ])('is not %o', (value) => {
    expect(() => toMs(value as Duration, 'timeout')).toThrow(HoldfastError)
    expect(() => toMs(value as Duration, 'timeout')).toThrow(/^timeout is .* not a duration/)
  })

  it('shows the forms that it takes, with examples', () => {
    expect(() => toMs('15 seconds' as Duration, 'timeout')).toThrow(
      `timeout is "15 seconds", which is not a duration. Give a number with a unit (ms, s, m, h or d) and no space, such as '250ms', '1.5s', '5m', '24h' or '7d'; or a number of milliseconds, such as 1500.`,
    )
  })

  it('names what it was given', () => {
    expect(() => toMs('soon' as Duration, 'lease')).toThrow('lease is "soon"')
    expect(() => toMs(Number.NaN, 'lease')).toThrow('lease is NaN')
  })

  it('has its units in its type', () => {
    expectTypeOf<'15s'>().toExtend<Duration>()
    expectTypeOf<'1.5h'>().toExtend<Duration>()
    expectTypeOf<'15 seconds'>().not.toExtend<Duration>()
    expectTypeOf<string>().not.toExtend<Duration>()
  })
})

it.for([
  [0, '0s'],
  [1, '1ms'],
  [250, '250ms'],
  [1_000, '1s'],
  [1_100, '1.1s'],
  [1_234, '1234ms'],
  [90_000, '1.5m'],
  [120_000, '2m'],
  [3_600_000, '1h'],
  [366 * 86_400_000, '366d'],
] as const)('%d ms is %s for people', ([ms, text]) => {
  expect(fromMs(ms)).toBe(text)
  expect(toMs(text, 'it')).toBe(ms)
})
