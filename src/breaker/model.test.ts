import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BreakerSettings } from './breaker.ts'
import { type Circuit, closedCircuit, holdsProbe, readCircuit } from './circuit.ts'
import { type Input, step } from './machine.ts'
import { breakerSettings } from './settings.ts'

// Any inputs in any order, with results that come late, twice, or never, against what must hold whatever happens.

const processes = fc.constantFrom('a', 'b', 'c')
const options = fc.record({
  opens: fc.oneof(
    fc.record({ failures: fc.integer({ min: 1, max: 4 }) }),
    fc.record({
      rate: fc.constantFrom(0.25, 0.5, 1),
      window: fc.constantFrom(1_000, 20_000),
      minimumCalls: fc.integer({ min: 1, max: 5 }),
    }),
  ),
  cooldown: fc.constantFrom('5s' as const, { initial: 2_000, factor: 3, cap: 20_000 }),
  probes: fc.integer({ min: 1, max: 3 }),
  successes: fc.integer({ min: 1, max: 3 }),
  quorum: fc.integer({ min: 1, max: 3 }),
  probeLease: fc.constant(10_000),
})

type Act =
  | { readonly act: 'enter' | 'call' | 'well'; readonly processId: string }
  | { readonly act: 'end'; readonly call: number; readonly as: 'success' | 'failure' | 'forget' }
  | { readonly act: 'vote'; readonly processId: string; readonly ms: number }
  | { readonly act: 'isolate' | 'reset' }
  | { readonly act: 'wait'; readonly ms: number }

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ act: fc.constantFrom('enter', 'call', 'well'), processId: processes }) },
    {
      weight: 8,
      arbitrary: fc.record({
        act: fc.constant('end'),
        call: fc.nat({ max: 9 }),
        as: fc.constantFrom('success', 'failure', 'failure', 'forget'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ act: fc.constant('vote'), processId: processes, ms: fc.nat({ max: 30_000 }) }),
    },
    { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('isolate', 'reset') }) },
    {
      weight: 4,
      arbitrary: fc.record({ act: fc.constant('wait'), ms: fc.constantFrom(1, 500, 2_000, 6_000, 25_000) }),
    },
  ),
  { maxLength: 120, size: 'max' },
)

interface Call {
  readonly era: number
  readonly processId: string
  readonly probe?: string
}

interface Step {
  readonly before: Circuit
  readonly input: Input
  readonly after: Circuit
  readonly settings: BreakerSettings
  readonly now: number
  /** Successes of probes since it became half-open, this one among them. */
  readonly successes: number
}

/** What must hold of every step, by name; each only where it has something to say. */
const rules: Readonly<Record<string, (step: Step) => boolean>> = {
  'the era never falls': ({ before, after }) => after.era >= before.era,
  'a store gives it back as it was': ({ after }) => isDeepStrictEqual(readCircuit('x', JSON.stringify(after)), after),
  'what comes late changes nothing': ({ before, input, after }) =>
    !('era' in input) || input.era === before.era || after === before,
  'open lets nobody through before its time': ({ before, input, after, now }) =>
    input.input !== 'enter' || before.state !== 'open' || holdsProbe(after, input.probe) === now >= before.reopensAt,
  'isolated and closed give no probes': ({ before, input, after }) =>
    input.input !== 'enter' || !['isolated', 'closed'].includes(before.state) || after === before,
  'half-open has no more probes under way than it may': ({ after, settings, now }) =>
    after.state !== 'half-open' || after.probes.filter(({ until }) => now < until).length <= settings.probes,
  'half-open comes only of a probe': ({ before, input, after }) =>
    after.state !== 'half-open' ||
    before.state === 'half-open' ||
    (before.state === 'open' && input.input === 'enter' && after.probes.length === 1),
  'closes only for enough successes, or by a person': ({ before, input, after, settings, successes }) =>
    after.state !== 'closed' ||
    before.state === 'closed' ||
    input.input === 'reset' ||
    (before.state === 'half-open' && input.input === 'success' && successes === settings.successes),
  'a failure in half-open opens it again': ({ before, input, after }) =>
    before.state !== 'half-open' ||
    input.input !== 'failure' ||
    input.era !== before.era ||
    (after.state === 'open' && after.openings === before.openings + 1),
  'isolated is left only by a person': ({ before, input, after }) =>
    before.state !== 'isolated' || input.input === 'isolate' || input.input === 'reset' || after === before,
  'each opening is an era of its own, with the cooldown that is its turn': ({ before, after, settings, now }) => {
    if (after.state !== 'open' || before.state === 'open') return true
    const { ms, factor, mostMs } = settings.cooldown
    const openings = before.state === 'half-open' ? before.openings + 1 : 1
    const cooldownMs = Math.min(ms * factor ** (openings - 1), mostMs)
    return after.era === before.era + 1 && after.openings === openings && after.reopensAt === now + cooldownMs
  },
  'with a quorum it takes the votes of others': ({ before, input, after, settings, now }) => {
    if (after.state !== 'open' || before.state !== 'closed' || settings.quorum === 1 || !('era' in input)) return true
    const others = Object.entries(before.tallies).filter(
      ([processId, tally]) => processId !== input.processId && tally.by === 'vote' && now < tally.until,
    )
    return others.length >= settings.quorum - 1
  },
}

/** The circuits that come of these acts, step by step. */
function* walk(settings: BreakerSettings, sequence: readonly Act[]): Generator<Step> {
  let now = 1_000_000
  let circuit: Circuit = closedCircuit()
  let successes = 0
  const calls: (Call | undefined)[] = []

  for (const [index, act] of sequence.entries()) {
    if (act.act === 'wait') now += act.ms
    if (act.act === 'call' && circuit.state === 'closed') calls.push({ era: circuit.era, processId: act.processId })
    const input = inputOf(act, `probe-${index}`)
    if (!input) continue
    const before = circuit
    circuit = step(before, input, settings, now)
    if (input.input === 'enter' && holdsProbe(circuit, input.probe)) {
      calls.push({ era: circuit.era, processId: input.processId, probe: input.probe })
      if (before.state === 'open') successes = 0
    }
    if (before.state === 'half-open' && input.input === 'success' && input.era === before.era) successes++
    yield { before, input, after: circuit, settings, now, successes }
  }

  function inputOf(act: Act, probe: string): Input | undefined {
    switch (act.act) {
      case 'enter':
        return { input: 'enter', processId: act.processId, probe }
      case 'well':
        return { input: 'well', processId: act.processId, era: circuit.era }
      case 'vote': {
        const tally = { by: 'vote', until: now + act.ms } as const
        return { input: 'tally', processId: act.processId, era: circuit.era, tally }
      }
      case 'end':
        return endOf(act.call, act.as)
      case 'isolate':
        return { input: 'isolate', by: 'ada', reason: 'because' }
      case 'reset':
        return { input: 'reset', by: 'ada' }
      case 'call':
      case 'wait':
        return undefined
    }
  }

  function endOf(number: number, as: 'success' | 'failure' | 'forget'): Input | undefined {
    // One of the last five that went out, so that most are of their time; half of them are kept, and end again later.
    const at = calls.length - 1 - (number >> 1)
    const call = calls[at]
    if (!call) return undefined
    if (number % 2 === 0) calls[at] = undefined
    const { probe, processId, era } = call
    if (as === 'forget') return probe === undefined ? undefined : { input: 'forget', probe }
    return { input: as, processId, era, ...(probe !== undefined && { probe }) }
  }
}

describe('whatever happens', () => {
  it('keeps to every rule', () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(options, acts, (given, sequence) => {
        for (const taken of walk(breakerSettings(given), sequence)) {
          seen.add(`${taken.before.state} → ${taken.after.state}`)
          const broken = Object.entries(rules).filter(([, holds]) => !holds(taken))
          expect(broken.map(([rule]) => rule)).toEqual([])
        }
      }),
      { numRuns: 500 },
    )
    // Every way there is was gone, or the rules had nothing to say.
    expect(seen).toEqual(
      new Set([
        ...['closed', 'open', 'half-open', 'isolated'].flatMap((from) => [`${from} → closed`, `${from} → isolated`]),
        'closed → open',
        'open → open',
        'open → half-open',
        'half-open → half-open',
        'half-open → open',
      ]),
    )
  })

  it('opens with exactly the failure that makes the row long enough, whoever failed', () => {
    const results = fc.array(fc.record({ processId: processes, ok: fc.boolean() }), { maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), results, (failures, observed) => {
        const settings = breakerSettings({ opens: { failures } })
        let row = 0
        let circuit: Circuit = closedCircuit()
        for (const [index, { processId, ok }] of observed.entries()) {
          if (circuit.state !== 'closed') break
          row = ok ? 0 : row + 1
          circuit = step(circuit, { input: ok ? 'success' : 'failure', processId, era: 0 }, settings, index * 1_000)
          expect(circuit.state === 'open').toBe(row >= failures)
        }
      }),
    )
  })

  it('opens by rate with the failure that makes the share of one process, or of all, large enough', () => {
    const results = fc.array(fc.record({ processId: processes, ok: fc.boolean() }), { maxLength: 40 })
    fc.assert(
      fc.property(
        fc.constantFrom(0.3, 0.5, 0.8),
        fc.integer({ min: 1, max: 8 }),
        results,
        (rate, minimumCalls, observed) => {
          const settings = breakerSettings({ opens: { rate, window: '1h', minimumCalls } })
          let circuit: Circuit = closedCircuit()
          for (const [index, { processId, ok }] of observed.entries()) {
            if (circuit.state !== 'closed') break
            circuit = step(circuit, { input: ok ? 'success' : 'failure', processId, era: 0 }, settings, index * 1_000)
            const past = observed.slice(0, index + 1)
            const isTooMuch = (seen: typeof past) =>
              seen.length >= minimumCalls && seen.filter((one) => !one.ok).length / seen.length >= rate
            const mine = past.filter((one) => one.processId === processId)
            expect(circuit.state === 'open').toBe(!ok && (isTooMuch(past) || isTooMuch(mine)))
          }
        },
      ),
    )
  })
})
