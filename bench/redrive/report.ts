import type { Redrive } from 'holdfast'
import { median, type Report, rounded, type Settings } from '../benchmark.ts'
import { machine, meets, type Targets, verdict } from '../target.ts'
import type { Checked } from './check.ts'

export interface Findings {
  readonly redrive: Redrive
  readonly elapsedMs: number
  readonly askedMs: number
  readonly kills: number
  readonly live: number
  readonly held: number
  readonly checked: Checked
}

const targets: Targets = {
  lettersPerSecond: { atLeast: 5_000 },
  kills: { atLeast: 3 },
  left: { atMost: 0 },
  failed: { atMost: 0 },
  differences: { atMost: 0 },
}

/** The goal; the target is what must be. */
const goalPerSecond = 20_000

export function summarise(settings: Settings, rounds: readonly Findings[], facts: object): Report {
  const over = (of: (round: Findings) => number) => rounded(median(rounds.map(of)))
  const worst = (of: (round: Findings) => number) => Math.max(...rounds.map(of))
  const measured = {
    lettersPerSecond: over(({ redrive, elapsedMs }) => (redrive.letters / elapsedMs) * 1_000),
    kills: Math.min(...rounds.map(({ kills }) => kills)),
    left: worst(({ checked }) => checked.counts.held),
    failed: worst(({ redrive }) => redrive.byState.failed + redrive.byState.left),
    // A row is the fold of its events in order, each once; so what is out of order or twice is in here.
    differences: worst(({ checked }) => checked.differences),
  }
  const ok = meets(targets, measured)
  const fields = {
    benchmark: 'redrive',
    store: settings.store,
    events: settings.events,
    rounds: rounds.length,
    lanes: over(({ redrive }) => redrive.lanes),
    letters: over(({ redrive }) => redrive.letters),
    liveEvents: over(({ live }) => live),
    askedMs: over(({ askedMs }) => askedMs),
    ...measured,
    goalPerSecond,
    targets,
    ok,
    firstDifference: rounds.find(({ checked }) => checked.differences > 0)?.checked.first,
    ...facts,
    ...machine(),
  }
  const text = [
    '',
    `${fields.letters} letters in ${fields.lanes} lanes, ${fields.liveEvents} live events, ${fields.kills} deaths`,
    verdict('letters/s', measured.lettersPerSecond, targets['lettersPerSecond']),
    verdict('left', measured.left, targets['left']),
    verdict('failed', measured.failed, targets['failed']),
    verdict('differences', measured.differences, targets['differences']),
  ]
  return { ok, fields, text: text.join('\n') }
}
