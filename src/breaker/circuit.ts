import { StoreError } from '../errors.ts'
import type { BreakerSettings, BreakerState } from './breaker.ts'
import { type Tallies, type Tally, tallyIn, windowMs } from './tally.ts'

/**
 * All that a breaker is. One lies in the store and is shared (the `record` of a `BreakerRecord`); another one is in the memory of each
 * process, for what that process sees by itself.
 *
 * The era grows with every opening and every act of a person, and never falls. A call belongs to the era in which it was let
 * through, and what it has to say counts in that one alone. So a call that was slow to fail can't open again what was closed
 * since, nor spoil a probe.
 */
export type Circuit =
  | {
      readonly state: 'closed'
      readonly era: number
      readonly tallies: Tallies
      readonly reset?: { readonly by: string; readonly at: number }
    }
  | {
      readonly state: 'open'
      readonly era: number
      readonly openedAt: number
      readonly reopensAt: number
      readonly openings: number
    }
  | {
      readonly state: 'half-open'
      readonly era: number
      readonly since: number
      readonly openings: number
      readonly successes: number
      readonly probes: readonly Probe[]
    }
  | {
      readonly state: 'isolated'
      readonly era: number
      readonly since: number
      readonly by: string
      readonly reason: string
    }

export interface Probe {
  readonly id: string
  readonly processId: string
  /** When its process is taken for dead. */
  readonly until: number
}

export type OpenCircuit = Extract<Circuit, { state: 'open' }>
export type HalfOpenCircuit = Extract<Circuit, { state: 'half-open' }>

const defaultProbeLeaseMs = 60_000

export function closedCircuit(era = 0): Circuit {
  return { state: 'closed', era, tallies: {} }
}

export function probeLeaseMs({ probeLeaseMs: ms = defaultProbeLeaseMs }: BreakerSettings): number {
  return ms
}

/** Whether it would let a probe through now; of a closed one, which lets everybody through, nobody asks. */
export function admitsProbe(circuit: Circuit, settings: BreakerSettings, now: number): boolean {
  if (circuit.state === 'open') return isDue(circuit, now)
  return circuit.state === 'half-open' && probesUnderWay(circuit, settings, now).length < settings.probes
}

export function isDue({ openedAt, reopensAt }: OpenCircuit, now: number): boolean {
  return isOver(reopensAt, reopensAt - openedAt, now)
}

export function probesUnderWay({ probes }: HalfOpenCircuit, settings: BreakerSettings, now: number): Probe[] {
  return probes.filter(({ until }) => !isOver(until, probeLeaseMs(settings), now))
}

export function holdsProbe(circuit: Circuit, id: string): boolean {
  return circuit.state === 'half-open' && circuit.probes.some((probe) => probe.id === id)
}

/** What a process tells the others about its own circuit; undefined when it has seen nothing go wrong. */
export function tallyOf(own: Circuit, processId: string, settings: BreakerSettings, now: number): Tally | undefined {
  switch (own.state) {
    case 'closed':
      return tallyIn(own.tallies, processId)
    // It stands by its vote until it has had the time to find out how things are now.
    case 'open':
      return { by: 'vote', until: Math.max(own.reopensAt, now) + windowMs(settings) }
    // It is about to know better.
    case 'half-open':
    case 'isolated':
      return undefined
  }
}

/** What of it is for people. */
export function stateOf(circuit: Circuit): BreakerState {
  switch (circuit.state) {
    case 'closed':
      return { state: 'closed', ...(circuit.reset && { reset: circuit.reset }) }
    case 'open': {
      const { state, openedAt, reopensAt, openings } = circuit
      return { state, openedAt, reopensAt, openings }
    }
    case 'half-open': {
      const { state, since, successes, openings } = circuit
      return { state, since, successes, openings }
    }
    case 'isolated': {
      const { state, since, by, reason } = circuit
      return { state, since, by, reason }
    }
  }
}

/** A record that we don't understand may be one of a newer release: it is left alone, until a person resets it. */
export function readCircuit(name: string, record: string): Circuit {
  try {
    const circuit = JSON.parse(record) as Circuit | null
    const isKnown = ['closed', 'open', 'half-open', 'isolated'].includes(circuit?.state ?? '')
    if (circuit && isKnown && Number.isSafeInteger(circuit.era)) return circuit
  } catch (cause) {
    throw unreadable(name, cause)
  }
  throw unreadable(name, undefined)
}

function unreadable(name: string, cause: unknown): StoreError {
  return new StoreError('STORE_CORRUPT', `What the store has of the breaker ${JSON.stringify(name)} can't be read.`, {
    hint: 'Update this program if a newer one wrote it; otherwise reset the breaker.',
    cause,
  })
}

/**
 * Whether a time is past. Also if it is further away than it can have been when it was set: then the clock of the store was put
 * back, and nobody should have to wait for it to come round again.
 */
function isOver(time: number, lengthMs: number, now: number): boolean {
  return now >= time || time - now > 2 * lengthMs
}
