import { median, type Report, rounded, type Settings } from '../benchmark.ts'
import { machine, meets, type Targets, verdict } from '../target.ts'
import type { EngineRun } from './engine.ts'
import { holdKeyOneIn, pageEvents, poisonOneIn, type Way, type WayName, type WayRun } from './way.ts'

export interface Measured extends WayRun, Partial<Omit<EngineRun, keyof WayRun>> {
  readonly perSecond: number
  readonly heldEvents: number
}

/** What one round found. */
export type Round = Readonly<Partial<Record<WayName, Measured>>>

export interface Findings {
  readonly bytesPerEvent: number
  readonly rounds: readonly Round[]
  readonly ways: readonly Way[]
  readonly facts: object
}

const targetsOf: Readonly<Record<string, Targets>> = {
  sqlite: {
    ratioToLimit: { atLeast: 0.5 },
    ratioToNaive: { atLeast: 8 },
    poisonRatio: { atLeast: 0.85 },
    rssMb: { atMost: 250 },
  },
  postgres: {
    ratioToLimit: { atLeast: 0.6 },
    ratioToEmmett: { atLeast: 15 },
    poisonRatio: { atLeast: 0.85 },
    heldRatio: { atLeast: 0.8 },
  },
}

const ratios = {
  ratioToLimit: ['engine', 'limit'],
  ratioToNaive: ['engine', 'naive'],
  ratioToEmmett: ['engine', 'emmett'],
  poisonRatio: ['poison', 'engine'],
  heldRatio: ['held', 'engine'],
} as const satisfies Record<string, readonly [WayName, WayName]>

const titles = {
  engine: 'engine',
  limit: 'limit (SQL)',
  limit10000: 'limit, 10k pages',
  naive: 'naive',
  emmett: 'Emmett',
  poison: '1 % poison',
  held: '10 % keys held',
  ratioToLimit: 'of the limit',
  ratioToNaive: 'times naive',
  ratioToEmmett: 'times Emmett',
  poisonRatio: 'under poison',
  heldRatio: 'with held keys',
  rssMb: 'peak RSS, MB',
} as const satisfies Record<WayName | keyof typeof ratios | 'rssMb', string>

export function summarise(settings: Settings, { bytesPerEvent, rounds, ways, facts }: Findings): Report {
  const { store, events, keys } = settings
  const targets = targetsOf[store] as Targets
  const names = ways.map(({ name }) => name)
  const all = (name: WayName) => rounds.flatMap((round) => round[name] ?? [])
  // A peak: the median would hide the round that needed most.
  const peak = (name: WayName) => rounded(Math.max(...all(name).map(({ rssMb = 0 }) => rssMb)))
  const rates = names.map((name) => [rateField(name), median(all(name).map(({ perSecond }) => perSecond))] as const)
  const measured: Record<string, number> = { ...ratiosOf(rounds), rssMb: peak('engine') }
  const ok = meets(targets, measured)
  const [first] = rounds as [Round]
  const eventsOf = (name: WayName) => ways.find((way) => way.name === name)?.events
  const fields = {
    benchmark: 'projection',
    store,
    events,
    keys,
    rounds: rounds.length,
    ...Object.fromEntries(rates.map(([field, rate]) => [field, Math.round(rate)])),
    ...measured,
    targets,
    ok,
    ...facts,
    bytesPerEvent: rounded(bytesPerEvent),
    pageEvents: first.engine?.pageEvents,
    limitPageEvents: pageEvents,
    naiveEvents: eventsOf('naive'),
    emmettEvents: eventsOf('emmett'),
    poisonOneIn,
    poisonHeldEvents: first.poison?.heldEvents,
    ...(first.held && { holdKeyOneIn, heldEvents: first.held.heldEvents }),
    rssMbBefore: rounded(first.engine?.rssMbBefore ?? 0),
    poisonRssMb: peak('poison'),
    perRound: rounds.map((round) => ({
      ...Object.fromEntries(names.map((name) => [rateField(name), Math.round(round[name]?.perSecond ?? 0)])),
      rssMb: rounded(round.engine?.rssMb ?? 0),
    })),
    ...machine(),
  }
  const text = [
    '',
    `${events.toLocaleString('en')} events, ${keys.toLocaleString('en')} keys, median of ${rounds.length}, Node ${fields.node}, ${fields.cpus} CPUs`,
    '',
    ...rates.map(([, rate], i) => {
      return `  ${titles[names[i] as WayName].padEnd(16)}${Math.round(rate).toLocaleString('en').padStart(9)} events/s`
    }),
    '',
    ...([...Object.keys(ratios), 'rssMb'] as (keyof typeof ratios | 'rssMb')[])
      .filter((name) => name in measured || name in targets)
      .map((name) => verdict(titles[name], measured[name], targets[name])),
  ]
  return { ok, fields, text: text.join('\n') }
}

function rateField(name: WayName): string {
  return name === 'engine' ? 'eventsPerSecond' : `${name}PerSecond`
}

/** Within a round, and then the median: a machine that is slow for a minute is slow for both sides of a ratio. */
function ratiosOf(rounds: readonly Round[]): Record<string, number> {
  return Object.fromEntries(
    Object.entries(ratios).flatMap(([name, [one, other]]) => {
      const each = rounds.flatMap((round) => {
        const [a, b] = [round[one], round[other]]
        return a && b ? [a.perSecond / b.perSecond] : []
      })
      return each.length > 0 ? [[name, rounded(median(each))] as const] : []
    }),
  )
}
