import { describe, expect, it } from 'vitest'
import { type Circuit, closedCircuit, holdsProbe, readCircuit, stateOf, tallyOf } from './circuit.ts'
import { type Input, step } from './machine.ts'
import { type BreakerOptions, breakerSettings } from './settings.ts'

const minute = 60_000

/** A circuit that is walked through its inputs, each at a time in seconds. */
function walk(options: BreakerOptions = {}, from: Circuit = closedCircuit()) {
  const settings = breakerSettings(options)
  let circuit = from
  let probes = 0
  const at = (seconds: number, input: Input) => {
    const before = circuit
    circuit = step(circuit, input, settings, seconds * 1_000)
    return circuit !== before
  }
  const verdict =
    (input: 'success' | 'failure') => (seconds: number, processId: string, probe?: string, era?: number) =>
      at(seconds, { input, processId, era: era ?? circuit.era, ...(probe !== undefined && { probe }) })
  return {
    settings,
    get circuit() {
      return circuit
    },
    at,
    fail: verdict('failure'),
    succeed: verdict('success'),
    /** The id of the probe, if it was let through. */
    enter: (seconds: number, processId = 'a') => {
      const probe = `probe-${++probes}`
      at(seconds, { input: 'enter', processId, probe })
      return holdsProbe(circuit, probe) ? probe : undefined
    },
  }
}

describe('closed', () => {
  it('opens after so many failures in a row, even if nothing ever succeeded', () => {
    const walked = walk({ opens: { failures: 3 }, cooldown: '60s' })
    for (const second of [1, 2]) walked.fail(second, 'a')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(3, 'a')
    expect(walked.circuit).toEqual({ state: 'open', era: 1, openedAt: 3_000, reopensAt: 63_000, openings: 1 })
  })

  it('begins to count anew after a success', () => {
    const walked = walk({ opens: { failures: 3 } })
    walked.fail(1, 'a')
    walked.fail(2, 'a')
    walked.succeed(3, 'a')
    walked.fail(4, 'a')
    walked.fail(5, 'a')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(6, 'a')
    expect(walked.circuit.state).toBe('open')
  })

  it('counts the failures of all processes together, and any success ends the row', () => {
    const walked = walk({ opens: { failures: 3 } })
    walked.fail(1, 'a')
    walked.fail(2, 'b')
    walked.succeed(3, 'c')
    walked.fail(4, 'a')
    walked.fail(5, 'b')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(6, 'c')
    expect(walked.circuit.state).toBe('open')
  })

  it('takes failures that are more than ten minutes apart for no row', () => {
    const walked = walk({ opens: { failures: 2 } })
    walked.fail(0, 'a')
    walked.fail(600, 'a')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(1_199, 'a')
    expect(walked.circuit.state).toBe('open')
  })

  it('is not changed by a success when nothing went wrong', () => {
    const walked = walk()
    expect(walked.succeed(1, 'a')).toBe(false)
    expect(walked.at(1, { input: 'well', processId: 'a', era: 0 })).toBe(false)
    expect(walked.at(1, { input: 'enter', processId: 'a', probe: 'p' })).toBe(false)
    expect(walked.at(1, { input: 'forget', probe: 'p' })).toBe(false)
  })

  it('does not count more processes than it can keep', () => {
    const walked = walk({ opens: { failures: 1_000 } })
    for (let i = 0; i < 150; i++) walked.fail(i, `process-${i}`)
    const { circuit } = walked
    if (circuit.state !== 'closed') throw new Error('it opened')
    expect(Object.keys(circuit.tallies)).toHaveLength(100)
    expect(circuit.tallies).toHaveProperty('process-149')
  })

  it('does not take a process for something that every object has', () => {
    const walked = walk({ opens: { failures: 2 } })
    walked.fail(1, 'constructor')
    expect(tallyOf(walked.circuit, 'toString', walked.settings, 1_000)).toBeUndefined()
    walked.fail(2, '__proto__')
    expect(walked.circuit.state).toBe('open')
  })
})

describe('closed, by rate', () => {
  const opens = { rate: 0.5, window: '1m', minimumCalls: 4 } as const

  it('opens when the share of failures is reached, not before there were enough calls', () => {
    const walked = walk({ opens })
    walked.fail(1, 'a')
    walked.fail(2, 'a')
    walked.succeed(3, 'a')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(4, 'a')
    expect(walked.circuit.state).toBe('open')
  })

  it('takes a success that is told for no end of what went wrong, as it is where failures in a row count', () => {
    const walked = walk({ opens })
    walked.fail(1, 'a')
    walked.fail(2, 'b')
    expect(walked.at(3, { input: 'well', processId: 'a', era: 0 })).toBe(false)
    const inARow = walk({ opens: { failures: 3 } })
    inARow.fail(1, 'a')
    expect(inARow.at(3, { input: 'well', processId: 'a', era: 0 })).toBe(true)
  })

  it('stays closed below the share', () => {
    const walked = walk({ opens })
    for (let i = 0; i < 20; i++) {
      walked.succeed(i, 'a')
      walked.succeed(i, 'a')
      walked.fail(i, 'a')
    }
    expect(walked.circuit.state).toBe('closed')
  })

  it('forgets what is older than the window, and keeps no more than a window', () => {
    const walked = walk({ opens })
    for (let second = 0; second < 600; second++) {
      walked.succeed(second, 'a')
      if (second % 20 === 0) walked.fail(second, 'a')
    }
    const { circuit } = walked
    if (circuit.state !== 'closed') throw new Error('it opened')
    const tally = circuit.tallies.a
    expect(tally?.by === 'rate' && tally.buckets.length).toBe(10)
    for (const second of [700, 701, 702]) walked.fail(second, 'a')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(703, 'a')
    expect(walked.circuit.state).toBe('open')
  })

  it('is exact where the share is', () => {
    const walked = walk({ opens: { rate: 0.07, window: '1m', minimumCalls: 100 } })
    for (let i = 0; i < 93; i++) walked.succeed(1, 'a')
    for (let i = 0; i < 6; i++) walked.fail(1, 'a')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(1, 'a')
    expect(walked.circuit.state).toBe('open')
  })

  it('takes the calls of all processes together', () => {
    const walked = walk({ opens })
    walked.fail(1, 'a')
    walked.fail(1, 'b')
    walked.succeed(1, 'c')
    expect(walked.circuit.state).toBe('closed')
    walked.fail(2, 'b')
    expect(walked.circuit.state).toBe('open')
  })

  it('opens for one process that sees nothing but failures, however many see none', () => {
    const walked = walk({ opens })
    for (let i = 0; i < 100; i++) walked.succeed(1, 'b')
    for (let i = 0; i < 4; i++) walked.fail(2, 'a')
    expect(walked.circuit.state).toBe('open')
  })
})

describe('with a quorum', () => {
  const options = { opens: { failures: 2 }, quorum: 2 } as const

  it('is not opened by one process, however often it fails', () => {
    const walked = walk(options)
    for (let i = 0; i < 50; i++) walked.fail(i, 'a')
    expect(walked.circuit.state).toBe('closed')
  })

  it('is not opened by many processes that fail a little', () => {
    const walked = walk(options)
    for (let i = 0; i < 50; i++) walked.fail(i, `process-${i}`)
    expect(walked.circuit.state).toBe('closed')
  })

  it('opens when enough processes have each failed enough', () => {
    const walked = walk(options)
    for (const processId of ['a', 'a', 'b']) walked.fail(1, processId)
    expect(walked.circuit.state).toBe('closed')
    walked.fail(2, 'b')
    expect(walked.circuit.state).toBe('open')
  })

  it('does not take back the vote of a process that goes on failing', () => {
    const walked = walk(options)
    for (const processId of ['a', 'a', 'a', 'b']) walked.fail(1, processId)
    expect(walked.circuit.state).toBe('closed')
    walked.fail(2, 'b')
    expect(walked.circuit.state).toBe('open')
  })

  it('counts no vote of a process that had a success since, but those of the others', () => {
    const walked = walk(options)
    walked.fail(1, 'a')
    walked.fail(1, 'a')
    walked.at(2, { input: 'well', processId: 'a', era: 0 })
    walked.fail(3, 'b')
    walked.fail(3, 'b')
    expect(walked.circuit.state).toBe('closed')
    walked.succeed(4, 'c')
    walked.fail(5, 'a')
    walked.fail(5, 'a')
    expect(walked.circuit.state).toBe('open')
  })

  it('counts no vote whose time is over', () => {
    const walked = walk(options)
    walked.at(0, { input: 'tally', processId: 'a', era: 0, tally: { by: 'vote', until: 10 * minute } })
    walked.fail(599, 'b')
    walked.fail(600, 'b')
    expect(walked.circuit.state).toBe('closed')
    walked.at(601, { input: 'tally', processId: 'a', era: 0, tally: { by: 'vote', until: 20 * minute } })
    expect(walked.circuit.state).toBe('open')
  })

  it('keeps a vote that is told again', () => {
    const walked = walk({ ...options, quorum: 3 })
    const told = { input: 'tally', processId: 'a', era: 0, tally: { by: 'vote', until: minute } } as const
    walked.at(0, told)
    walked.at(0, told)
    walked.at(0, { ...told, processId: 'b' })
    expect(walked.circuit.state).toBe('closed')
  })
})

describe('open', () => {
  const opened: Circuit = { state: 'open', era: 1, openedAt: 0, reopensAt: 30_000, openings: 1 }

  it('lets nobody through before its time, and then one', () => {
    const walked = walk({}, opened)
    expect(walked.enter(29.999)).toBeUndefined()
    expect(walked.circuit).toBe(opened)
    expect(walked.enter(30)).toBeDefined()
    expect(walked.circuit).toMatchObject({ state: 'half-open', era: 1, since: 30_000, openings: 1, successes: 0 })
    expect(walked.enter(30)).toBeUndefined()
  })

  it.for(['success', 'failure'] as const)('is not changed by the late %s of a call from before', (input) => {
    for (const from of [
      opened,
      step(opened, { input: 'enter', processId: 'a', probe: 'p' }, breakerSettings(), 30_000),
    ]) {
      const walked = walk({ opens: { failures: 1 } }, from)
      expect(walked.at(40, { input, processId: 'a', era: 0 })).toBe(false)
    }
  })

  it('is not changed by tallies that come late', () => {
    const walked = walk({}, opened)
    expect(walked.at(1, { input: 'tally', processId: 'a', era: 0, tally: { by: 'vote', until: minute } })).toBe(false)
    expect(walked.at(1, { input: 'tally', processId: 'a', era: 1, tally: { by: 'vote', until: minute } })).toBe(false)
    expect(walked.at(1, { input: 'well', processId: 'a', era: 1 })).toBe(false)
  })

  it('does not wait for a clock that was put back to come round again', () => {
    const walked = walk({}, { ...opened, openedAt: 7_200_000, reopensAt: 7_230_000 })
    expect(walked.enter(7_199)).toBeUndefined()
    expect(walked.enter(0)).toBeDefined()
  })
})

describe('half-open', () => {
  const due: Circuit = { state: 'open', era: 1, openedAt: 0, reopensAt: 0, openings: 1 }

  it('lets so many through at once, and another one for each that came back', () => {
    const walked = walk({ probes: 2, successes: 9 }, due)
    const first = walked.enter(1)
    expect(walked.enter(1)).toBeDefined()
    expect(walked.enter(1)).toBeUndefined()
    walked.succeed(2, 'a', first)
    expect(walked.enter(2)).toBeDefined()
    expect(walked.enter(2)).toBeUndefined()
  })

  it('closes after so many successes in a row', () => {
    const walked = walk({ successes: 2 }, due)
    walked.succeed(1, 'a', walked.enter(1))
    expect(walked.circuit).toMatchObject({ state: 'half-open', successes: 1, probes: [] })
    walked.succeed(2, 'a', walked.enter(2))
    expect(walked.circuit).toEqual({ state: 'closed', era: 1, tallies: {} })
  })

  it('opens again with the first failure, for longer each time, up to the cap; and for the first time again once it has closed', () => {
    const walked = walk({ opens: { failures: 1 }, cooldown: { initial: '10s', factor: 3, cap: '1m' }, successes: 2 })
    let now = 0
    walked.fail(now, 'a')
    for (const [openings, seconds] of [10, 30, 60, 60].entries()) {
      expect(walked.circuit).toMatchObject({ openings: openings + 1, reopensAt: (now + seconds) * 1_000 })
      now += seconds
      if (openings === 1) walked.succeed(now, 'a', walked.enter(now))
      walked.fail(now, 'a', walked.enter(now))
    }
    now += 60
    walked.succeed(now, 'a', walked.enter(now))
    walked.succeed(now, 'a', walked.enter(now))
    walked.fail(now, 'a')
    expect(walked.circuit).toMatchObject({ state: 'open', openings: 1, reopensAt: (now + 10) * 1_000 })
  })

  it('gives up a probe whose process died, after its lease', () => {
    const walked = walk({ probeLease: '20s' }, due)
    expect(walked.enter(1)).toBeDefined()
    expect(walked.enter(20.999)).toBeUndefined()
    expect(walked.enter(21, 'b')).toBeDefined()
    expect(walked.enter(22, 'b')).toBeUndefined()
  })

  it('still listens to a probe that took longer than its lease', () => {
    const walked = walk({ probeLease: '20s' }, due)
    const slow = walked.enter(1)
    walked.enter(30, 'b')
    walked.succeed(31, 'a', slow)
    expect(walked.circuit.state).toBe('closed')
  })

  it('takes a probe back without a verdict', () => {
    const walked = walk({ successes: 2 }, due)
    walked.succeed(1, 'a', walked.enter(1))
    const probe = walked.enter(2) ?? ''
    walked.at(3, { input: 'forget', probe })
    expect(walked.circuit).toMatchObject({ state: 'half-open', successes: 1, probes: [] })
    expect(walked.enter(3)).toBeDefined()
  })

  it('believes only probes', () => {
    const walked = walk({}, due)
    walked.enter(1)
    expect(walked.succeed(2, 'a')).toBe(false)
    expect(walked.fail(2, 'a')).toBe(false)
  })

  it('ignores a probe of the time before it opened again', () => {
    const walked = walk({ probes: 2, cooldown: '1s' }, due)
    const [first, second] = [walked.enter(1), walked.enter(1)]
    walked.fail(2, 'a', first)
    walked.enter(5)
    expect(walked.succeed(6, 'a', second, 1)).toBe(false)
    expect(walked.circuit.state).toBe('half-open')
  })
})

describe('a person', () => {
  const circuits: Circuit[] = [
    { state: 'closed', era: 4, tallies: { a: { by: 'count', failures: 2, at: 0 } } },
    { state: 'open', era: 4, openedAt: 0, reopensAt: 30_000, openings: 2 },
    { state: 'half-open', era: 4, since: 0, openings: 2, successes: 1, probes: [] },
    { state: 'isolated', era: 4, since: 0, by: 'ada', reason: 'maintenance' },
  ]

  it.for(circuits)('isolates what is $state, and nothing but a person ends it', (from) => {
    const walked = walk({}, from)
    walked.at(1, { input: 'isolate', by: 'bob', reason: 'they asked us to' })
    const isolated = { state: 'isolated', era: 5, since: 1_000, by: 'bob', reason: 'they asked us to' }
    expect(walked.circuit).toEqual(isolated)
    expect(walked.enter(1_000_000)).toBeUndefined()
    walked.succeed(1_000_001, 'a')
    walked.fail(1_000_002, 'a')
    expect(walked.circuit).toEqual(isolated)
  })

  it.for(circuits)('resets what is $state, and calls from before say nothing any more', (from) => {
    const walked = walk({ opens: { failures: 1 } }, from)
    walked.at(1, { input: 'reset', by: 'bob' })
    expect(walked.circuit).toEqual({ state: 'closed', era: 5, tallies: {}, reset: { by: 'bob', at: 1_000 } })
    expect(walked.fail(2, 'a', undefined, 4)).toBe(false)
  })

  it.for(circuits)('sees of one that is $state what is for people, and a store gives it back as it was', (circuit) => {
    const state = stateOf(circuit)
    expect(circuit).toMatchObject(state)
    expect(Object.keys(state)).not.toContain('era')
    expect(readCircuit('x', JSON.stringify(circuit))).toEqual(circuit)
  })
})

it.for(['', 'null', '{}', '{"state":"ajar","era":1}', '{"state":"open"}', '[1]'])('can not read %j', (record) => {
  expect(() => readCircuit('x', record)).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }))
})
