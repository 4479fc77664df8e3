import type { KeptRedrive, State, Subscribed } from './state.ts'

/** With the name of its subscription. */
export function findKept({ subscriptions }: State, id: string): readonly [string, KeptRedrive] | undefined {
  for (const [name, { redrives }] of subscriptions) {
    const kept = redrives.find(({ redrive }) => redrive.id === id)
    if (kept) return [name, kept]
  }
  return undefined
}

/** Whether a redrive has something for the owner of a partition to do, if only to end it. */
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

/** All lanes that may be begun have their end. */
function isStageOver(kept: KeptRedrive): boolean {
  return !pendingOf(kept, undefined) && !kept.lanes.some(({ state }) => state === 'running')
}

function failedOf({ lanes }: KeptRedrive): number {
  return lanes.filter(({ state }) => state === 'failed').length
}

/** Running ones of which a stage is over, or of which too many failed. */
export function overIn({ redrives }: Subscribed): readonly KeptRedrive[] {
  return redrives.filter((kept) => {
    const { status, maxFailures } = kept.redrive
    if (status !== 'running') return false
    return (maxFailures !== undefined && failedOf(kept) > maxFailures) || isStageOver(kept)
  })
}

/** Begins the next stage of one, or ends it. */
export function advance(kept: KeptRedrive, now: number): void {
  const { maxFailures, admitted, lanes, stages } = kept.redrive
  const failed = failedOf(kept)
  if (maxFailures !== undefined && failed > maxFailures)
    end(kept, 'stopped', `${failed} lanes failed, and it may have ${maxFailures}`, now)
  else if (admitted >= lanes) end(kept, 'done', undefined, now)
  else {
    const next = stages.find((stage) => stage > admitted) ?? lanes
    kept.redrive = { ...kept.redrive, admitted: Math.min(next, lanes) }
  }
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

/** What is under way with lanes that go elsewhere, or are no more. */
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
