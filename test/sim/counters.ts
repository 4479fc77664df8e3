import { acceptedOf, effectsOf, moveOf, type StoreEffect } from '../../src/testing/simulation/checks.ts'
import { lastBuilder } from '../../src/testing/simulation/rebuilder.ts'
import type { Run } from '../../src/testing/simulation/simulation.ts'
import type { ClaimOutcome, CommitOutcome } from '../../src/subscription/subscription-store.ts'
import type { StepsApp } from './steps.ts'

/** What has to come about in a run of many seeds, or it proves nothing. */
const happenedNames = [
  'fenced',
  'heldLanes',
  'healedGaps',
  'unknownCommits',
  'breakerOpenings',
  'crashPoison',
  'takeovers',
  'kills',
  'handovers',
  'redriven',
  'discarded',
  'passedOver',
  'mended',
  'seenTo',
  'cancelled',
  'repeatedEffects',
  'trims',
  'silences',
  'switches',
  'resets',
  'concluded',
  'blockedPartitions',
  'blockedProjections',
] as const

/** What those who follow the course of a run have looked at: a check that never had anything to check proves nothing. */
export const seenNames = [
  'orderedAttempts',
  'attemptsAfterUnknown',
  'comparedLanes',
  'comparedAfterDoubt',
  'frozenLanes',
  'timedRetries',
  'punctualRetries',
  'comparedAttempts',
] as const

export const counterNames = [...happenedNames, ...seenNames] as const

export type Seen = Readonly<Record<(typeof seenNames)[number], number>>
type Happened = Readonly<Record<(typeof happenedNames)[number], number>>
export type Counters = Happened & Seen

export async function countersOf({ history, network, witness }: Run, app: StepsApp): Promise<Happened> {
  const accepted = acceptedOf(history)
  const count = (kind: string) => history.happenings.filter((happening) => happening.kind === kind).length
  const outcomes = effectsOf<CommitOutcome>(history, 'subscriptions.commit')
  const claims = effectsOf<ClaimOutcome>(history, 'subscriptions.claim')
  // Only who waits at a gap looks, until it is filled or known to stay.
  const looks = effectsOf<{ readonly isFilled: boolean }>(history, 'log.look')
  const moves = history.happenings.flatMap(({ kind, about, who }) => {
    const move = kind === 'effect' ? moveOf(about as StoreEffect) : undefined
    return move ? { ...move, isLast: who === lastBuilder } : []
  })
  const letters = (
    await Promise.all(app.names.map((subscription) => witness.letters.list({ subscription, limit: 10_000 })))
  ).flat()
  const parked = accepted.flatMap(({ commit: { lease, held } }) =>
    held.flatMap(({ lane, status }) => (status === 'parked' ? { lane, subscription: lease.subscription } : [])),
  )
  const redrives = await witness.redrives.list({ limit: 1_000 })
  return {
    fenced: outcomes.filter(({ value }) => value.outcome === 'fenced').length,
    heldLanes: accepted.reduce((sum, { commit }) => sum + commit.lanes.filter(({ hold }) => hold).length, 0),
    healedGaps: looks.filter(({ value }) => value.isFilled).length,
    unknownCommits: (network.unheard.get('subscriptions.commit') ?? 0) + (network.unheard.get('perform.commit') ?? 0),
    breakerOpenings: effectsOf<unknown>(history, 'breakers.save').filter(
      ({ about, value }) => value === true && (about[0] as { state: { state: string } }).state.state === 'open',
    ).length,
    crashPoison: accepted.flatMap(({ commit }) => commit.held).filter(({ failure }) => failure?.code === 'EVENT_DEADLY')
      .length,
    takeovers: claims.filter(({ value }) => value.outcome === 'claimed' && value.isInherited).length,
    kills: count('kill'),
    handovers: count('stop'),
    redriven: redrives.reduce((sum, one) => sum + one.letters, 0),
    discarded: letters.filter(({ status, endedBy }) => status === 'discarded' && endedBy !== 'policy').length,
    passedOver: letters.filter(({ status, endedBy }) => status === 'discarded' && endedBy === 'policy').length,
    mended: letters.filter(({ revision, status }) => revision && status === 'resolved').length,
    seenTo: letters.filter(({ status, endedBy }) => status === 'resolved' && endedBy === 'person').length,
    cancelled: redrives.filter(({ status }) => status === 'cancelled').length,
    switches: moves.filter(({ move, isLast }) => move === 'switch' && !isLast).length,
    concluded: moves.filter(({ move, isLast }) => move === 'switch' && isLast).length,
    blockedPartitions: app.order === 'partition' ? parked.filter((one) => one.subscription === 'calls').length : 0,
    blockedProjections: parked.filter(({ subscription, lane }) => subscription === 'gathered' && lane === '').length,
    resets: moves.filter(({ move }) => move === 'reset').length,
    trims: history.happenings.filter(({ about }) => isTrimmed(about as Partial<StoreEffect> | undefined)).length,
    silences: app.arrivals?.silences ?? 0,
    repeatedEffects: app.effects.length - new Set(app.effects.map(({ key, n }) => `${key}/${n}`)).size,
  }
}

/** Somebody asked a source for what it has dropped. */
function isTrimmed(effect: (Partial<StoreEffect> & { readonly error?: unknown }) | undefined): boolean {
  return (
    effect?.what === 'outside.far.read' && (effect.error as { code?: string } | undefined)?.code === 'SOURCE_TRIMMED'
  )
}
