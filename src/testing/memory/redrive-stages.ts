import { nextStage, type Stage } from '../../redrive/stages.ts'
import type { KeptRedrive, State, Subscribed } from './state.ts'

/** With the name of its subscription. */
export function findKept({ subscriptions }: State, id: string): readonly [string, KeptRedrive] | undefined {
  for (const [name, { redrives }] of subscriptions) {
    const kept = redrives.find(({ redrive }) => redrive.id === id)
    if (kept) return [name, kept]
  }
  return undefined
}

/** Whether a redrive has work for the owner of a partition, even if it only has to be ended. */
export function isRedriven({ redrives }: Subscribed, partition: number): boolean {
  return redrives.some((kept) => kept.redrive.status === 'running' && (pendingOf(kept, partition) || isStageOver(kept)))
}

function pendingOf({ redrive, lanes }: KeptRedrive, partition: number | undefined): boolean {
  return lanes.some(
    (one) =>
      one.state === 'pending' &&
      one.ordinal <= redrive.admitted &&
      (partition === undefined || one.partition === partition),
  )
}

/** All lanes that may start have ended. */
function isStageOver(kept: KeptRedrive): boolean {
  return !pendingOf(kept, undefined) && !kept.lanes.some(({ state }) => state === 'running')
}

function stageOf(kept: KeptRedrive): Stage {
  const { lanes, admitted, stages, maxFailures } = kept.redrive
  const countOf = (state: string) => kept.lanes.filter((one) => one.state === state).length
  const [failed, deferred] = [countOf('failed'), countOf('deferred')]
  return { lanes, admitted, stages, maxFailures, failed, deferred, isOver: isStageOver(kept) }
}

/** Running redrives that enter another stage, or end. */
export function overIn({ redrives }: Subscribed): readonly KeptRedrive[] {
  return redrives.filter((kept) => kept.redrive.status === 'running' && nextStage(stageOf(kept)).next !== 'wait')
}

/** Starts the next stage of a redrive, or ends it. */
export function advance(kept: KeptRedrive, now: number): void {
  const next = nextStage(stageOf(kept))
  if (next.next === 'end') end(kept, next.status, next.reason, now)
  else if (next.next === 'admit') kept.redrive = { ...kept.redrive, admitted: next.admitted }
}

export function end(
  kept: KeptRedrive,
  status: KeptRedrive['redrive']['status'],
  endedReason: string | undefined,
  endedAt: number,
): void {
  kept.redrive = { ...kept.redrive, status, endedReason, endedAt }
  kept.lanes = kept.lanes.map((one) => (one.state === 'pending' ? { ...one, state: 'left' } : one))
}

/** Ends running redrives of lanes that are renamed or deleted. */
export function endRedrives(subscribed: Subscribed, reason: string, now: number): void {
  for (const kept of subscribed.redrives) {
    if (kept.redrive.status === 'running') end(kept, 'cancelled', reason, now)
    kept.lanes = kept.lanes.map((one) => (one.state === 'running' ? { ...one, state: 'left' } : one))
  }
  for (const [name, lane] of subscribed.lanes) {
    if (lane.hold?.redrive === undefined) continue
    const { redrive: _redrive, ...hold } = lane.hold
    subscribed.lanes.set(name, { ...lane, hold })
  }
}
