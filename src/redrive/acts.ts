import type { HeldLane } from '../dead-letter/letter.ts'
import type { RedriveAct } from './redrive.ts'

/**
 * Which lanes an act is about:
 *
 *     lane                      redrive   discard, resolve   skip
 *     parked, retrying          yes       yes                no
 *     waits for a breaker       no        yes                no
 *     waits for a version       no        no                 yes
 *
 * A redrive of one that waits for a breaker could only ask the breaker again, which it does by itself. To leave out its head is the way out
 * where the endpoint is gone for good. A version that is missing is left out by `skip`.
 */
export function isActedOn(act: RedriveAct, { status, breaker }: Pick<HeldLane, 'status' | 'breaker'>): boolean {
  if (status !== 'waiting') return act !== 'skip'
  return breaker === undefined ? act === 'skip' : act === 'discard' || act === 'resolve'
}
