/** What can go wrong in a simulated world, and how often. Chances are per call; times are virtual milliseconds; 0 is never. */
export interface Conditions {
  /** How long a request or an answer is under way at the most. */
  readonly latencyMs: number
  /** The chance that one of them takes up to `slowMs` instead. */
  readonly slow: number
  readonly slowMs: number
  /** The chance that a request never arrives. */
  readonly lostRequest: number
  /** The chance that a request has its effect, and nobody hears of it. */
  readonly lostAnswer: number
  /** The chance that the store refuses a call for the moment, without an effect. */
  readonly busy: number
  /** The chance that what the store says unasked is lost. */
  readonly lostHint: number
  /** How long a process lives between two kills, on average, and how long it is gone at the most. */
  readonly killEveryMs: number
  readonly goneMs: number
  /** How long a process runs until it is stopped, on average, and for how long at the most. */
  readonly pauseEveryMs: number
  readonly pauseMs: number
  /** How long the store is there until it goes away, on average, and for how long at the most. */
  readonly outageEveryMs: number
  readonly outageMs: number
  /** How long the server runs until it crashes and comes back, on average: open transactions are undone. */
  readonly crashEveryMs: number
  /** How long the services that handlers call are well, on average, and how long they are ill at the most. */
  readonly illnessEveryMs: number
  readonly illnessMs: number
  /** How often the wall clock of a process is set, on average, and how far off at the most. */
  readonly clockEveryMs: number
  readonly clockMs: number
  /** How often a process is stopped as one should, and another one takes its place, on average. */
  readonly deployEveryMs: number
  /** How often a person pauses a subscription, or lets go or discards what is parked, on average. */
  readonly actEveryMs: number
}

export type FaultName = keyof Conditions

/** Everything works, and takes a moment. */
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
