import type { Commit, CommitOutcome, ClaimOutcome, Lease } from '../../subscription/subscription-store.ts'
import type { Happening, History } from './history.ts'

/** One that went through, in its place among the others. */
export interface Accepted {
  readonly commit: Commit
  readonly atMs: number
  readonly who: string
}

/** What a call did. */
export interface StoreEffect {
  readonly what: string
  readonly about: readonly unknown[] | undefined
  readonly value?: unknown
}

export function effectsOf<Value>(
  history: History,
  what: string,
): { about: readonly unknown[]; value: Value; happening: Happening }[] {
  return history.happenings.flatMap((happening) => {
    if (happening.kind !== 'effect') return []
    const { what: called, about = [], value } = happening.about as StoreEffect
    return called === what && value !== undefined ? [{ about, value: value as Value, happening }] : []
  })
}

/** By itself, or at the end of a transaction that ran the user's statements. */
export function isAccepted(effect: StoreEffect): boolean {
  if (effect.what === 'subscriptions.commit')
    return (effect.value as CommitOutcome | undefined)?.outcome === 'committed'
  return effect.what === 'perform.commit' && !('error' in effect)
}

/** All outcomes that the store took, in the order in which it did. */
export function acceptedOf(history: History): Accepted[] {
  return history.happenings.flatMap(({ kind, about, atMs, who }) => {
    if (kind !== 'effect' || !isAccepted(about as StoreEffect)) return []
    return [{ commit: (about as StoreEffect).about?.[0] as Commit, atMs, who }]
  })
}

/**
 * What must be true of the order in which outcomes reached the store, whatever they are about: checkpoints go on from where they were (I5),
 * nobody writes with an old epoch (I13), and a lane that is held is written only by whoever lets it go (I6).
 */
export function checkCommits(history: History): string[] {
  const problems: string[] = []
  const epochs = new Map<string, number>()
  const positions = new Map<string, number>()
  const held = new Map<string, Set<string>>()
  for (const { about, atMs, who } of inOrder(history, ['effect'])) {
    const { what, about: asked = [], value } = about as StoreEffect
    if (what === 'subscriptions.claim') claimed(value as ClaimOutcome | undefined)
    if (isAccepted(about as StoreEffect)) committed(asked[0] as Commit, `${atMs.toFixed(0)} ms, ${who}`)
  }
  return problems

  function claimed(value: ClaimOutcome | undefined): void {
    if (value?.outcome !== 'claimed') return
    const name = nameOf(value.lease)
    if (value.lease.epoch <= (epochs.get(name) ?? -1))
      problems.push(`I13 ${name}: the epoch ${value.lease.epoch} was given twice`)
    epochs.set(name, value.lease.epoch)
    const reached = positions.get(name)
    if (reached !== undefined && value.state.checkpoint.position !== reached)
      problems.push(`I5 ${name}: claimed at ${value.state.checkpoint.position}, and it is at ${reached}`)
  }

  function committed({ lease, from, to, rows, lanes, held: letters, letters: changes }: Commit, where: string): void {
    const name = nameOf(lease)
    const at = positions.get(name)
    if (lease.epoch !== epochs.get(name))
      problems.push(`I13 ${name}: ${where} wrote with the epoch ${lease.epoch}, and it is ${epochs.get(name)}`)
    if ((at !== undefined && from !== at) || to.position < from)
      problems.push(`I5 ${name}: ${where} went from ${from} to ${to.position}, and it was at ${at}`)
    positions.set(name, to.position)
    const lanesHeld = held.get(name) ?? new Set()
    held.set(name, lanesHeld)
    const touched = new Set(lanes.map(({ lane }) => lane))
    for (const { key } of rows) {
      if (lanesHeld.has(key) && !touched.has(key)) problems.push(`I6 ${name}: ${where} wrote ${key} while it was held`)
    }
    for (const { lane, status } of letters) {
      if (status === 'queued' && !lanesHeld.has(lane) && !touched.has(lane))
        problems.push(`I6 ${name}: ${where} queued an event of ${lane}, which is not held`)
    }
    if (changes.length > 0 && lanes.length === 0) problems.push(`I7 ${name}: ${where} changed letters and no lane`)
    for (const { lane, hold } of lanes) {
      if (hold) lanesHeld.add(lane)
      else lanesHeld.delete(lane)
    }
  }
}

/**
 * What waited for a lock has its effect together with whatever let the lock go, and is told a little later. So among what happened at one moment
 * the epochs tell what was first.
 */
export function inOrder(history: History, kinds: readonly string[]): Happening[] {
  const chosen = history.happenings.filter(({ kind }) => kinds.includes(kind))
  return chosen.toSorted((a, b) => a.atMs - b.atMs || (epochOf(a) ?? 0) - (epochOf(b) ?? 0))
}

function epochOf({ kind, about }: Happening): number | undefined {
  if (kind !== 'effect') return undefined
  const { what, value, about: asked = [] } = about as StoreEffect
  const isClaimed = what === 'subscriptions.claim' && (value as ClaimOutcome | undefined)?.outcome === 'claimed'
  if (isClaimed) return (value as Extract<ClaimOutcome, { outcome: 'claimed' }>).lease.epoch
  return isAccepted(about as StoreEffect) ? (asked[0] as Commit).lease.epoch : undefined
}

function nameOf({ subscription, partition }: Lease): string {
  return `${subscription}/${partition}`
}
