import type { ClaimOutcome, Commit } from '../../subscription/subscription-store.ts'
import { isAccepted, type StoreEffect } from './checks.ts'
import type { Happening, History } from './history.ts'

const mostLines = 60
const asTheyAre = new Set([
  'start',
  'stop',
  'kill',
  'pause',
  'clock',
  'down',
  'up',
  'crash',
  'heal',
  'halt',
  'redrive',
  'discard',
  'rebuild',
  'switch',
  'drop',
  'reset',
])

/** A readable trace: starts and deaths of processes, lost messages, effects outside, and accepted commits. */
export function narrate(history: History): string {
  const lines = history.happenings.flatMap((happening) => {
    const told = tell(happening)
    if (told === undefined) return []
    const text = `  ${(happening.atMs / 1_000).toFixed(3).padStart(8)} s  ${happening.who}: ${told}`
    return [{ text, weight: weightOf(told) }]
  })
  // If the trace is too long, lines without an effect are left out first, then early ones. Effects outside are kept.
  let spare = lines.length - mostLines
  const left = new Set<number>()
  for (const weight of [0, 1, 2]) {
    for (const [i, line] of lines.entries()) {
      if (spare <= 0) break
      if (line.weight !== weight) continue
      left.add(i)
      spare--
    }
  }
  const kept = lines.filter((_, i) => !left.has(i)).map(({ text }) => text)
  return (left.size === 0 ? kept : [...kept, `  (${left.size} less relevant lines)`]).join('\n')
}

/** 2: an effect outside, or an event was held or released. 0: no effect. */
function weightOf(told: string): 0 | 1 | 2 {
  if (/^calls |^lost: outside|, holds |, lets /.test(told)) return 2
  return /^claims |^commits \S+ (\d+) → \1$|^redrive \S+ nothing$/.test(told) ? 0 : 1
}

function tell({ kind, text, about }: Happening): string | undefined {
  if (asTheyAre.has(kind)) return text === '' ? kind : `${kind} ${text}`
  if (kind === 'lost' && !isIdle(text)) return `lost: ${text}`
  if (kind !== 'effect') return undefined
  const effect = about as StoreEffect
  if (isAccepted(effect)) return toldCommit(effect.about?.[0] as Commit)
  if (effect.what === 'subscriptions.claim' && (effect.value as ClaimOutcome | undefined)?.outcome === 'claimed') {
    const { lease } = effect.value as Extract<ClaimOutcome, { outcome: 'claimed' }>
    return `claims ${lease.subscription}/${lease.partition} with epoch ${lease.epoch}`
  }
  if (effect.what === 'subscriptions.commit' && 'value' in effect)
    return `is refused: ${(effect.value as { outcome: string }).outcome}`
  return effect.what.startsWith('outside.') ? `calls ${effect.what.slice('outside.'.length)}` : undefined
}

/** A lost read has no consequence. */
function isIdle(text: string): boolean {
  return !/^(subscriptions\.commit|perform|outside|log\.append|log\.commit)/.test(text)
}

function toldCommit({ lease, from, to, held, lanes }: Commit): string {
  const name = `${lease.subscription}/${lease.partition}`
  const holds = held.length > 0 ? `, holds ${held.map(({ event }) => event.id).join(', ')}` : ''
  const released = lanes.filter(({ hold }) => !hold).map(({ lane }) => lane)
  return `commits ${name} ${from} → ${to.position}${holds}${released.length > 0 ? `, releases ${released.join(', ')}` : ''}`
}
