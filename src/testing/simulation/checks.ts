import { generationName } from '../../rebuild/generation.ts'
import type { SwitchOutcome } from '../../rebuild/rebuild-store.ts'
import type { Commit, CommitOutcome, ClaimOutcome, Lease } from '../../subscription/subscription-store.ts'
import type { Happening, History } from './history.ts'

/** An accepted commit, with its index. */
export interface Accepted {
  readonly commit: Commit
  readonly atMs: number
  readonly who: string
}

/** The effect of a call. */
export interface StoreEffect {
  readonly what: string
  readonly about: readonly unknown[] | undefined
  /** When it was called. A slow call has its effect much later. */
  readonly askedMs: number
  readonly value?: unknown
}

export function effectsOf<Value>(
  history: History,
  what: string,
): { about: readonly unknown[]; value: Value; happening: Happening }[] {
  const found: { about: readonly unknown[]; value: Value; happening: Happening }[] = []
  for (const happening of history.happenings) {
    if (happening.kind !== 'effect') continue
    const { what: called, about = [], value } = happening.about as StoreEffect
    if (called === what && value !== undefined) found.push({ about, value: value as Value, happening })
  }
  return found
}

/** Alone, or at the end of a transaction that ran user statements. */
export function isAccepted(effect: StoreEffect): boolean {
  if (effect.what === 'subscriptions.commit')
    return (effect.value as CommitOutcome | undefined)?.outcome === 'committed'
  return effect.what === 'perform.commit' && !('error' in effect)
}

/** All accepted outcomes, in order. */
export function acceptedOf(history: History): Accepted[] {
  const accepted: Accepted[] = []
  for (const { kind, about, atMs, who } of history.happenings) {
    if (kind !== 'effect' || !isAccepted(about as StoreEffect)) continue
    accepted.push({ commit: (about as StoreEffect).about?.[0] as Commit, atMs, who })
  }
  return accepted
}

/** An act of an operator on a whole subscription. */
export type Move =
  | { readonly move: 'switch'; readonly subscription: string; readonly from: number; readonly to: number }
  | { readonly move: 'drop'; readonly subscription: string; readonly version: number }
  | { readonly move: 'reset'; readonly subscription: string }

/** The act of an effect: at the end of a transaction, or directly if there is none. */
export function moveOf(effect: StoreEffect): Move | undefined {
  const { about: [first, second, third] = [], value } = effect
  if ('error' in effect) return undefined
  switch (effect.what) {
    case 'rebuilds.switch':
    case 'rebuilds.switch.commit': {
      const outcome = (second ?? value) as SwitchOutcome | undefined
      if (first === undefined || outcome?.outcome !== 'switched') return undefined
      const { subscription, version } = first as { subscription: string; version: number }
      return { move: 'switch', subscription, from: outcome.from, to: version }
    }
    case 'rebuilds.drop':
    case 'rebuilds.drop.commit': {
      // A direct call has its audit entry there.
      const outcome = effect.what === 'rebuilds.drop' ? value : third
      return first !== undefined && outcome === 'dropped'
        ? { move: 'drop', subscription: first as string, version: second as number }
        : undefined
    }
    case 'subscriptions.reset':
    case 'subscriptions.reset.commit':
      return first === undefined ? undefined : { move: 'reset', subscription: first as string }
    default:
      return undefined
  }
}

/**
 * Checks the order in which outcomes reached the store: checkpoints continue from where they were (I5), no process writes with an
 * old epoch (I13), and a held lane is written only by the owner that releases it (I6). Checkpoints move back only by a reset; a
 * switch never moves the live one back.
 */
export function checkCommits(history: History): string[] {
  const problems: string[] = []
  const epochs = new Map<string, number>()
  const positions = new Map<string, number | 'start'>()
  const held = new Map<string, Set<string>>()
  /** By partition and position, the lanes of held letters; only if every commit is recorded. */
  const letters = new Map<string, Map<number, string>>()
  const untold = new Set<string>()
  const retired = new Set<string>()
  for (const { about, atMs, who } of inOrder(history, ['effect'])) {
    const { what, about: asked = [], value } = about as StoreEffect
    const move = moveOf(about as StoreEffect)
    if (move) moved(move)
    if (what === 'subscriptions.claim') claimed(value as ClaimOutcome | undefined)
    // In one call with user SQL, so its position is not recorded.
    if (what === 'subscriptions.perform') {
      positions.delete(nameOf(asked[0] as Lease))
      untold.add(nameOf(asked[0] as Lease))
    }
    if (isAccepted(about as StoreEffect)) committed(asked[0] as Commit, `${atMs.toFixed(0)} ms, ${who}`)
  }
  return problems

  function claimed(value: ClaimOutcome | undefined): void {
    if (value?.outcome !== 'claimed') return
    const name = nameOf(value.lease)
    if (value.lease.epoch <= (epochs.get(name) ?? -1))
      problems.push(`I13 ${name}: the epoch ${value.lease.epoch} was assigned twice`)
    epochs.set(name, value.lease.epoch)
    const { position, start } = value.state.checkpoint
    const reached = positions.get(name) === 'start' ? start : positions.get(name)
    if (reached !== undefined && position !== reached)
      problems.push(`I5 ${name}: claimed at ${position}, but it is at ${reached}`)
    positions.set(name, position)
  }

  function moved(move: Move): void {
    const { subscription } = move
    // Of the live version, or of any: the builder of a version may exist before all others.
    const names = [...epochs.keys()].filter(
      (name) => /^[/~]/.test(name.slice(subscription.length)) && name.startsWith(subscription),
    )
    for (const partition of new Set(names.map((name) => name.slice(name.lastIndexOf('/') + 1)))) {
      const live = `${subscription}/${partition}`
      const of = (version: number) => `${generationName(subscription, version)}/${partition}`
      if (move.move === 'switch') changePlaces(live, of(move.to), of(move.from))
      else if (move.move === 'drop') {
        leave(of(move.version), undefined)
        // Building it again creates another one.
        retired.delete(of(move.version))
      } else {
        leave(live, 'start')
        for (const name of epochs.keys())
          if (name.startsWith(`${subscription}~`) && name.endsWith(`/${partition}`) && !retired.has(name))
            leave(name, undefined)
      }
    }
  }

  function changePlaces(live: string, next: string, old: string): void {
    const [was, is] = [live, next].map((name) => positions.get(name))
    const [lanes, nextLanes] = [live, next].map((name) => held.get(name))
    for (const name of [live, next]) leave(name, undefined)
    const epoch = Math.max(epochs.get(live) ?? -1, epochs.get(next) ?? -1)
    for (const name of [live, old]) epochs.set(name, epoch)
    const isNumber = typeof was === 'number' && typeof is === 'number'
    if (isNumber) positions.set(live, Math.max(was, is))
    if (was !== undefined) positions.set(old, was)
    if (nextLanes) held.set(live, nextLanes)
    if (lanes) held.set(old, lanes)
    retired.add(old)
    retired.delete(next)
  }

  /** Previous owners may not write any more. */
  function leave(name: string, position: 'start' | undefined): void {
    epochs.set(name, Math.floor(epochs.get(name) ?? -1) + 0.5)
    held.delete(name)
    letters.delete(name)
    if (position === undefined) positions.delete(name)
    else positions.set(name, position)
  }

  function committed(commit: Commit, where: string): void {
    const { lease, from, to, rows, lanes, held: added, letters: changes } = commit
    const name = nameOf(lease)
    const at = positions.get(name)
    if (lease.epoch !== epochs.get(name))
      problems.push(`I13 ${name}: ${where} wrote with the epoch ${lease.epoch}, but it is ${epochs.get(name)}`)
    if ((typeof at === 'number' && from !== at) || to.position < from)
      problems.push(`I5 ${name}: ${where} went from ${from} to ${to.position}, but it was at ${at}`)
    positions.set(name, to.position)
    const lanesHeld = held.get(name) ?? new Set()
    held.set(name, lanesHeld)
    const touched = new Set(lanes.map(({ lane }) => lane))
    for (const { key } of rows) {
      if (lanesHeld.has(key) && !touched.has(key)) problems.push(`I6 ${name}: ${where} wrote ${key} while it was held`)
    }
    for (const { lane, status } of added) {
      if (status === 'queued' && !lanesHeld.has(lane) && !touched.has(lane))
        problems.push(`I6 ${name}: ${where} queued an event of ${lane}, which is not held`)
    }
    if (changes.length > 0 && lanes.length === 0) problems.push(`I7 ${name}: ${where} changed letters and no lane`)
    for (const { lane, hold } of lanes) {
      if (hold) lanesHeld.add(lane)
      else lanesHeld.delete(lane)
    }
    if (!untold.has(name)) released(commit, where)
  }

  /** A released lane has no letter left: later events would overtake it. */
  function released({ lease, lanes, held: added, letters: changes }: Commit, where: string): void {
    const name = nameOf(lease)
    const own = letters.get(name) ?? new Map<number, string>()
    letters.set(name, own)
    for (const { lane, status, event } of added)
      if (status !== 'discarded' && status !== 'resolved') own.set(event.position, lane)
    for (const { change, position } of changes)
      if (change === 'resolved' || change === 'discarded') own.delete(position)
    const flowing = new Set(lanes.flatMap(({ lane, hold }) => (hold ? [] : [lane])))
    if (flowing.size === 0) return
    for (const [position, lane] of own) {
      if (flowing.has(lane))
        problems.push(`I6 ${name}: ${where} released ${lane}, but its letter at ${position} is held`)
    }
  }
}

/**
 * An effect that waited for a lock happens together with the release of the lock, and is recorded a little later. So the epochs
 * define the order of effects at the same time.
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
