import { availableParallelism, cpus } from 'node:os'
import { median, type Report, rounded, type Settings } from '../benchmark.ts'

/** What one round found. */
export interface Round {
  readonly enginePerSecond: number
  readonly limitPerSecond: number
  readonly poisonPerSecond: number
  readonly naivePerSecond: number
  readonly naiveEvents: number
  readonly pageEvents: number
  readonly rssMb: number
  readonly rssMbBefore: number
  readonly poisonRssMb: number
  readonly poisonHeld: number
}

export interface Findings {
  readonly bytesPerEvent: number
  readonly poisonOneIn: number
  readonly rounds: readonly Round[]
}

/** At least this for the ratios, at most this for the memory. */
const targets = { ratioToLimit: 0.5, ratioToNaive: 8, poisonRatio: 0.85, rssMb: 250 } as const

export function summarise(settings: Settings, { bytesPerEvent, poisonOneIn, rounds }: Findings): Report {
  const { store, events, keys } = settings
  const engine = median(rounds.map(({ enginePerSecond }) => enginePerSecond))
  const limit = median(rounds.map(({ limitPerSecond }) => limitPerSecond))
  const poison = median(rounds.map(({ poisonPerSecond }) => poisonPerSecond))
  const naive = median(rounds.map(({ naivePerSecond }) => naivePerSecond))
  // Within a round, and then the median: a machine that is slow for a minute is slow for both sides of a ratio.
  const ratio = (of: (round: Round) => number) => rounded(median(rounds.map(of)))
  const measured = {
    ratioToLimit: ratio((round) => round.enginePerSecond / round.limitPerSecond),
    ratioToNaive: ratio((round) => round.enginePerSecond / round.naivePerSecond),
    poisonRatio: ratio((round) => round.poisonPerSecond / round.enginePerSecond),
    // A peak: the median would hide the round that needed most.
    rssMb: rounded(Math.max(...rounds.map(({ rssMb }) => rssMb))),
  }
  const ok =
    measured.ratioToLimit >= targets.ratioToLimit &&
    measured.ratioToNaive >= targets.ratioToNaive &&
    measured.poisonRatio >= targets.poisonRatio &&
    measured.rssMb < targets.rssMb
  const [first] = rounds as [Round]
  const fields = {
    benchmark: 'projection',
    store,
    events,
    keys,
    rounds: rounds.length,
    eventsPerSecond: Math.round(engine),
    limitEventsPerSecond: Math.round(limit),
    naiveEventsPerSecond: Math.round(naive),
    poisonEventsPerSecond: Math.round(poison),
    ...measured,
    targets,
    ok,
    bytesPerEvent: rounded(bytesPerEvent),
    pageEvents: first.pageEvents,
    naiveEvents: first.naiveEvents,
    poisonOneIn,
    poisonHeldEvents: first.poisonHeld,
    rssMbBefore: rounded(first.rssMbBefore),
    poisonRssMb: rounded(Math.max(...rounds.map(({ poisonRssMb }) => poisonRssMb))),
    perRound: rounds.map((round) => ({
      eventsPerSecond: Math.round(round.enginePerSecond),
      limitEventsPerSecond: Math.round(round.limitPerSecond),
      poisonEventsPerSecond: Math.round(round.poisonPerSecond),
      naiveEventsPerSecond: Math.round(round.naivePerSecond),
      rssMb: rounded(round.rssMb),
    })),
    node: process.versions.node,
    cpus: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
  }
  return { ok, fields, text: table(fields) }
}

type Fields = Record<
  'eventsPerSecond' | 'limitEventsPerSecond' | 'naiveEventsPerSecond' | 'poisonEventsPerSecond',
  number
> &
  Record<keyof typeof targets | 'events' | 'keys' | 'rounds' | 'cpus', number> & {
    readonly ok: boolean
    readonly node: string
  }

function table(found: Fields): string {
  const many = (value: number) => Math.round(value).toLocaleString('en').padStart(9)
  const versus = (value: number, met: boolean, target: string) =>
    `${String(value).padStart(8)}   ${met ? 'met   ' : 'MISSED'} (${target})`
  return `
${many(found.events)} events, ${found.keys.toLocaleString('en')} keys, median of ${found.rounds}, Node ${found.node}, ${found.cpus} CPUs

  engine          ${many(found.eventsPerSecond)} events/s
  limit (SQL)     ${many(found.limitEventsPerSecond)} events/s
  naive           ${many(found.naiveEventsPerSecond)} events/s
  with 1 % poison ${many(found.poisonEventsPerSecond)} events/s

  of the limit    ${versus(found.ratioToLimit, found.ratioToLimit >= targets.ratioToLimit, `at least ${targets.ratioToLimit}`)}
  times naive     ${versus(found.ratioToNaive, found.ratioToNaive >= targets.ratioToNaive, `at least ${targets.ratioToNaive}`)}
  under poison    ${versus(found.poisonRatio, found.poisonRatio >= targets.poisonRatio, `at least ${targets.poisonRatio}`)}
  peak RSS, MB    ${versus(found.rssMb, found.rssMb < targets.rssMb, `below ${targets.rssMb}`)}`
}
