import { describe, expect, it } from 'vitest'
import { describeFailure } from '../failure/failure.ts'
import { incidentState, toIncident } from './incident.ts'

describe('an incident', () => {
  it.for([
    ['resolved when nothing is held', 0, 5, 4, 'resolved'],
    ['open while none ever ended', 1, 5, undefined, 'open'],
    ['open while what was held before the last end is held', 1, 5, 6, 'open'],
    ['open when both happened at one moment', 1, 5, 5, 'open'],
    ['regressed when the first that is held came after the last end', 1, 5, 4, 'regressed'],
    ['open when nobody knows since when', 1, undefined, 4, 'open'],
  ] as const)('is %s', ([, held, heldSince, lastEnded, state]) => {
    expect(incidentState(held, heldSince, lastEnded)).toBe(state)
  })

  const row = { fingerprint: 'f', letters: 4, held: 2, lanes: 1, firstSeen: 10, lastSeen: 30 }
  const times = { lastEnded: 15, heldSince: 20 }

  it('looks like the newest of its letters', () => {
    const failure = describeFailure(new RangeError('too much'), 'permanent', 'fold')
    const newest = [
      { position: 9, class: 'permanent' },
      { position: 7, class: 'transient' },
    ] as const
    expect(toIncident('balances', { ...row, ...times }, newest, failure)).toEqual({
      subscription: 'balances',
      ...row,
      state: 'regressed',
      class: 'permanent',
      errorType: 'RangeError',
      message: 'too much',
      samples: [9, 7],
    })
  })

  it('says what it knows when all of them were purged', () => {
    expect(toIncident('balances', { ...row, held: 0, lastEnded: null, heldSince: null }, [], undefined)).toEqual({
      subscription: 'balances',
      ...row,
      held: 0,
      state: 'resolved',
      class: 'unknown',
      errorType: '',
      message: '',
      samples: [],
    })
    expect(toIncident('balances', { ...row, lastEnded: null, heldSince: 20 }, [], undefined).state).toBe('open')
    expect(toIncident('balances', { ...row, lastEnded: 15, heldSince: null }, [], undefined).state).toBe('open')
  })
})
