import type { BreakerSettings } from './breaker.ts'
import {
  admitsProbe,
  type Circuit,
  closedCircuit,
  type HalfOpenCircuit,
  probeLeaseMs,
  probesUnderWay,
} from './circuit.ts'
import {
  countFailure,
  countSuccess,
  freshTallies,
  type Tallies,
  type Tally,
  tallyIn,
  trips,
  windowMs,
} from './tally.ts'

/**
 *     success, failure   the result of a call; `era` is the one in which the call was allowed
 *     tally              all failures that a process has seen; idempotent
 *     well               a process had a success and has no failures to report
 *     enter              a process requests a probe; it has the probe if the resulting circuit contains it
 *     forget             a probe is returned without a result
 *     isolate, reset     acts of an operator
 */
export type Input =
  | { readonly input: 'success' | 'failure'; readonly processId: string; readonly era: number; readonly probe?: string }
  | { readonly input: 'tally'; readonly processId: string; readonly era: number; readonly tally: Tally }
  | { readonly input: 'well'; readonly processId: string; readonly era: number }
  | { readonly input: 'enter'; readonly processId: string; readonly probe: string }
  | { readonly input: 'forget'; readonly probe: string }
  | { readonly input: 'isolate'; readonly by: string; readonly reason: string }
  | { readonly input: 'reset'; readonly by: string }

/**
 *                  enough failures                 cooldown over: enter
 *      ┌────────┐ ────────────────► ┌────────┐ ────────────────► ┌───────────┐
 *      │ closed │                   │  open  │                   │ half-open │
 *      └────────┘                   └────────┘ ◄──────────────── └───────────┘
 *          ▲                                     a failure: longer     │
 *          └───────────────────────────────────────────────────────────┘
 *                              enough successes in a row
 *
 *      any ── isolate ──► isolated                 any ── reset ──► closed
 *
 * Time alone changes nothing: an open circuit becomes half-open at the next `enter`. If nothing changes, the same object is
 * returned, so that nothing has to be written.
 */
export function step(circuit: Circuit, input: Input, settings: BreakerSettings, now: number): Circuit {
  switch (input.input) {
    case 'isolate':
      return { state: 'isolated', era: circuit.era + 1, since: now, by: input.by, reason: input.reason }
    case 'reset':
      return { state: 'closed', era: circuit.era + 1, tallies: {}, reset: { by: input.by, at: now } }
    case 'enter':
      return admitsProbe(circuit, settings, now) ? admit(circuit, input, settings, now) : circuit
    case 'forget':
      return circuit.state === 'half-open' ? withoutProbe(circuit, input.probe) : circuit
    case 'success':
    case 'failure':
    case 'tally':
    case 'well':
      // The call is from an earlier era: its result is outdated.
      return input.era === circuit.era ? observe(circuit, input, settings, now) : circuit
  }
}

type Observation = Extract<Input, { era: number }>
type Entering = Extract<Input, { input: 'enter' }>

function observe(circuit: Circuit, input: Observation, settings: BreakerSettings, now: number): Circuit {
  if (circuit.state === 'closed') return observeClosed(circuit, input, settings, now)
  if (circuit.state !== 'half-open' || !('probe' in input)) return circuit
  if (input.input === 'failure') return open(circuit.era, circuit.openings + 1, settings, now)
  const successes = circuit.successes + 1
  // The next opening starts with the initial cooldown.
  if (successes >= settings.successes) return closedCircuit(circuit.era)
  return { ...withoutProbe(circuit, input.probe), successes }
}

function observeClosed(
  circuit: Extract<Circuit, { state: 'closed' }>,
  input: Observation,
  settings: BreakerSettings,
  now: number,
): Circuit {
  const { tallies, era } = circuit
  const { processId } = input
  switch (input.input) {
    case 'failure': {
      const before = tallyIn(freshTallies(tallies, settings, now), processId)
      const tally = countFailure(before, settings, now)
      const isVote = before?.by === 'vote' || trips([tally], settings)
      return withTally(isVote ? { by: 'vote', until: now + windowMs(settings) } : tally)
    }
    case 'tally':
      return withTally(input.tally)
    case 'success': {
      const tally = countSuccess(tallyIn(tallies, processId), settings, now)
      return tally ? { ...circuit, tallies: { ...tallies, [processId]: tally } } : withoutTallies()
    }
    case 'well':
      return settings.opens.by === 'count' || tallyIn(tallies, processId)?.by === 'vote' ? withoutTallies() : circuit
  }

  function withTally(tally: Tally): Circuit {
    const all = freshTallies({ ...tallies, [processId]: tally }, settings, now)
    return opensFor(all, settings) ? open(era, 1, settings, now) : { ...circuit, tallies: all }
  }

  /** A success in any process ends the common row of failures, but does not remove the vote of another process. */
  function withoutTallies(): Circuit {
    const { [processId]: _, ...others } = tallies
    if (settings.quorum > 1) return tallyIn(tallies, processId) ? { ...circuit, tallies: others } : circuit
    return Object.keys(tallies).length > 0 ? { ...circuit, tallies: {} } : circuit
  }
}

/**
 * Whether it opens for all. A process votes when its own failures would open the breaker; `quorum` recent votes are needed.
 *
 * With a quorum of 1, the failures of all processes are also added up: otherwise many processes that each fail a few times, or
 * die early, would never open it.
 *
 * With a larger quorum, the failures of one process are not enough: its own network may be broken. The process must still be
 * protected, even if it is the only one. So each process keeps its own circuit beside the shared one, with a quorum of 1, and
 * obeys both (see `gate.ts`). The rule is not "the quorum, or all running processes if there are fewer": only failing processes
 * are known, since successes are not reported, and one failing process among many healthy ones would count as all.
 */
function opensFor(tallies: Tallies, settings: BreakerSettings): boolean {
  const all = Object.values(tallies)
  const votes = all.filter(({ by }) => by === 'vote').length
  return votes >= settings.quorum || (settings.quorum === 1 && trips(all, settings))
}

function open(era: number, openings: number, { cooldown }: BreakerSettings, now: number): Circuit {
  const ms = Math.min(cooldown.ms * cooldown.factor ** (openings - 1), cooldown.mostMs)
  return { state: 'open', era: era + 1, openedAt: now, reopensAt: now + ms, openings }
}

function admit(circuit: Circuit, { probe: id, processId }: Entering, settings: BreakerSettings, now: number): Circuit {
  const probe = { id, processId, until: now + probeLeaseMs(settings) }
  if (circuit.state === 'half-open') return { ...circuit, probes: [...probesUnderWay(circuit, settings, now), probe] }
  if (circuit.state !== 'open') return circuit
  const { era, openings } = circuit
  return { state: 'half-open', era, since: now, openings, successes: 0, probes: [probe] }
}

function withoutProbe(circuit: HalfOpenCircuit, id: string | undefined): HalfOpenCircuit {
  const probes = circuit.probes.filter((probe) => probe.id !== id)
  return probes.length === circuit.probes.length ? circuit : { ...circuit, probes }
}
