import { StoreError } from '../errors.ts'
import type { BreakerSettings, BreakerState } from './breaker.ts'
import { type Tallies, type Tally, tallyIn, windowMs } from './tally.ts'

/**
 * The complete state of a breaker. The shared circuit is in the store (the `record` of a `BreakerRecord`); each process has
 * another one in memory for what it sees itself.
 *
 * The era grows with every opening and every act of an operator. A result counts only in the era in which its call was allowed,
 * so a slow call that fails late can't reopen a breaker that was closed since, nor affect a probe.
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
  /** When its process is considered dead. */
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

/** Whether it would allow a probe now. Not called for a closed circuit. */
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

/** What a process reports about its own circuit; undefined if it has seen no failures. */
export function tallyOf(own: Circuit, processId: string, settings: BreakerSettings, now: number): Tally | undefined {
  switch (own.state) {
    case 'closed':
      return tallyIn(own.tallies, processId)
    // The vote stays until the process had time to probe.
    case 'open':
      return { by: 'vote', until: Math.max(own.reopensAt, now) + windowMs(settings) }
    // A probe is running; its result is more recent.
    case 'half-open':
    case 'isolated':
      return undefined
  }
}

/** The public part of the state. */
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

/** A record that can't be parsed may be from a newer release: it is left unchanged until an operator resets it. */
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
  return new StoreError('STORE_CORRUPT', `The stored state of the breaker ${JSON.stringify(name)} can't be read.`, {
    hint: 'If a newer release wrote it, update this program; otherwise reset the breaker.',
    cause,
  })
}

/**
 * Whether a time is past. Also true if it is further away than it was when it was set: then the clock of the store was set back,
 * and calls must not wait for it.
 */
function isOver(time: number, lengthMs: number, now: number): boolean {
  return now >= time || time - now > 2 * lengthMs
}
