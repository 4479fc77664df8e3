/**
 * The faults of a simulated world, and how often they happen. Probabilities are per call; times are virtual milliseconds; 0 is
 * never.
 */
export interface Conditions {
  /** The maximum latency of a request or an answer. */
  readonly latencyMs: number
  /** The probability that one of them takes up to `slowMs` instead. */
  readonly slow: number
  readonly slowMs: number
  /** The probability that a request never arrives. */
  readonly lostRequest: number
  /** The probability that a request has its effect, but its answer is lost. */
  readonly lostAnswer: number
  /** The probability that the store refuses a call temporarily, without an effect. */
  readonly busy: number
  /** The probability that a notification of the store is lost. */
  readonly lostHint: number
  /** The average time between two kills of a process, and the maximum time until it is replaced. */
  readonly killEveryMs: number
  readonly goneMs: number
  /** The average time until a process is stopped, and the maximum duration. */
  readonly pauseEveryMs: number
  readonly pauseMs: number
  /** The average time until the store is unavailable, and the maximum duration. */
  readonly outageEveryMs: number
  readonly outageMs: number
  /** The average time until the server crashes and restarts: open transactions are rolled back. */
  readonly crashEveryMs: number
  /** The average time until the called services are down, and the maximum duration. */
  readonly illnessEveryMs: number
  readonly illnessMs: number
  /** The average time until the wall clock of a process is set, and the maximum error. */
  readonly clockEveryMs: number
  readonly clockMs: number
  /** The average time until a process is stopped gracefully and replaced. */
  readonly deployEveryMs: number
  /** The average time until an operator pauses a subscription, or redrives or discards parked events. */
  readonly actEveryMs: number
}

export type FaultName = keyof Conditions

/** Without faults, with a small latency. */
export const calm: Conditions = {
  latencyMs: 2,
  slow: 0,
  slowMs: 0,
  lostRequest: 0,
  lostAnswer: 0,
  busy: 0,
  lostHint: 0,
  killEveryMs: 0,
  goneMs: 0,
  pauseEveryMs: 0,
  pauseMs: 0,
  outageEveryMs: 0,
  outageMs: 0,
  crashEveryMs: 0,
  illnessEveryMs: 0,
  illnessMs: 0,
  clockEveryMs: 0,
  clockMs: 0,
  deployEveryMs: 0,
  actEveryMs: 0,
}
