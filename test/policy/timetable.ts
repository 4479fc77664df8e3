import { decide, type FailureClass, type Policy, type Random } from 'holdfast'

/** The event was tried at these times, in milliseconds since the first; and then this happened. */
export interface RedriveSchedule {
  readonly tries: readonly number[]
  readonly end: 'park' | 'skip' | 'block' | 'pause' | 'and so on'
}

/** Never shortens a wait. */
export const noChance: Random = { u32: () => 2 ** 32 - 1 }

/** Lets an event fail, in virtual time, always in the same way, until something else than a retry happens; or for so many tries. */
export function timetable(
  policy: Policy,
  failureClass: FailureClass,
  { most = 12, inARow = 1, random = noChance } = {},
): RedriveSchedule {
  const failure = { class: failureClass, rule: 'test', evidence: null }
  const tries: number[] = []
  let now = 0
  while (tries.length < most) {
    tries.push(now)
    const decision = decide(policy, { failure, type: 'Happened', tries: tries.length, inARow }, random)
    if (decision.decision !== 'retry')
      return { tries, end: decision.decision === 'stop' ? decision.why : decision.decision }
    now += decision.delayMs
  }
  return { tries, end: 'and so on' }
}
