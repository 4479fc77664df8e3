import type { HeldLane } from '../dead-letter/letter.ts'
import type { RedriveAct } from './redrive.ts'

/**
 * Which lanes an act applies to:
 *
 *     lane                      redrive   discard, resolve   skip
 *     parked, retrying          yes       yes                no
 *     waits for a breaker       no        yes                no
 *     waits for a version       no        no                 yes
 *
 * A lane that waits for a breaker continues by itself when the breaker closes, so a redrive has nothing to do. If the endpoint is gone for
 * good, discard or resolve the head of the lane. To continue without a missing version, use `skip`.
 */
export function isActedOn(act: RedriveAct, { status, breaker }: Pick<HeldLane, 'status' | 'breaker'>): boolean {
  if (status !== 'waiting') return act !== 'skip'
  return breaker === undefined ? act === 'skip' : act === 'discard' || act === 'resolve'
}
