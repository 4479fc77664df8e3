import { median, type Report, rounded, type Settings } from '../benchmark.ts'
import { machine, meets, type Targets, verdict } from '../target.ts'
import type { Checked } from './check.ts'

export interface Findings {
  /** Milliseconds from an append to its commit, while nothing is rebuilt and while it is. */
  readonly before: readonly number[]
  readonly during: readonly number[]
  readonly rebuildMs: number
  readonly switchMs: number
  readonly kills: number
  readonly live: number
  readonly checked: Checked
}

const targets: Targets = {
  lagRatio: { atMost: 2 },
  kills: { atLeast: 3 },
  differences: { atMost: 0 },
  held: { atMost: 0 },
}

export function summarise(settings: Settings, rounds: readonly Findings[], facts: object): Report {
  const over = (of: (round: Findings) => number) => rounded(median(rounds.map(of)))
  const worst = (of: (round: Findings) => number) => Math.max(...rounds.map(of))
  const measured = {
    lagRatio: over(({ before, during }) => median(during) / median(before)),
    kills: Math.min(...rounds.map(({ kills }) => kills)),
    differences: worst(({ checked }) => checked.differences),
    held: worst(({ checked }) => checked.held),
  }
  const ok = meets(targets, measured)
  const fields = {
    benchmark: 'rebuild',
    store: settings.store,
    events: settings.events,
    rounds: rounds.length,
    liveEvents: over(({ live }) => live),
    eventsPerSecond: over(({ rebuildMs }) => (settings.events / rebuildMs) * 1_000),
    rebuildMs: over(({ rebuildMs }) => rebuildMs),
    switchMs: over(({ switchMs }) => switchMs),
    lagP50BeforeMs: over(({ before }) => median(before)),
    lagP50DuringMs: over(({ during }) => median(during)),
    lagP95BeforeMs: over(({ before }) => highest(before)),
    lagP95DuringMs: over(({ during }) => highest(during)),
    ...measured,
    targets,
    ok,
    firstDifference: rounds.find(({ checked }) => checked.differences > 0)?.checked.first,
    ...facts,
    ...machine(),
  }
  const text = [
    '',
    `${fields.events} events in ${fields.rebuildMs} ms, deaths included; ${fields.liveEvents} live events; the switch took ${fields.switchMs} ms`,
    `lag of live events: median ${fields.lagP50BeforeMs} ms before and ${fields.lagP50DuringMs} ms during, 95 of 100 ${fields.lagP95BeforeMs} and ${fields.lagP95DuringMs}`,
    verdict('lag, ratio', measured.lagRatio, targets['lagRatio']),
    verdict('deaths', measured.kills, targets['kills']),
    verdict('held', measured.held, targets['held']),
    verdict('differences', measured.differences, targets['differences']),
  ]
  return { ok, fields, text: text.join('\n') }
}

function highest(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length * 0.95)] ?? Number.NaN
}
