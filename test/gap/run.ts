import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { createPostgresStore } from '../../src/postgres/index.ts'
import type { ReaderJob, ReaderReport } from './reader.ts'
import type { Tally } from './workload.ts'
import type { WritersJob } from './writers.ts'

export interface GapOptions {
  /** Of an empty database. */
  readonly url: string
  /** Of another one on the same server. */
  readonly otherUrl: string
  readonly appends: number
  /** How often the naive append takes its turn; never, where nothing is to be compared. */
  readonly rounds: number
}

export interface GapResult {
  readonly appends: number
  readonly events: number
  /** Events of transactions that were rolled back on purpose. */
  readonly rolledBack: number
  /** Of all readers together: events that are in the log and were never read. */
  readonly skipped: number
  readonly inverted: number
  readonly twice: number
  /** How often a reader that asked for a gap was told of one. */
  readonly gapsSeen: number
  /** What a reader that goes on from the last position it saw has lost, in the same run. */
  readonly naiveReaderSkipped: number
  readonly writersPerSecond: number
  readonly naivePerSecond: number
  readonly ratioToNaive: number
  /** The same naive append as a prepared statement, which a user can have on connections of their own, and ours does not. */
  readonly preparedPerSecond: number
  readonly ratioToPrepared: number
  readonly seconds: number
}

type Way = WritersJob['way']

const writerProcesses = 2
const writersEach = 8
const readers = 3
const keys = 200
/** What can't be compared comes at the end: appends of several events, as a part of all. */
const partOfSeveral = 0.1
const mostEvents = 4

/**
 * Writers and readers in processes of their own, while a transaction that has written stays open in another database. The naive
 * append takes turns with ours, so that both meet the same machine and the same readers.
 */
export async function runGap({ url, otherUrl, appends, rounds }: GapOptions): Promise<GapResult> {
  const begun = performance.now()
  for (const schema of ['holdfast', 'naive']) await (await createPostgresStore({ connection: url, schema })).close()
  const client = await connect(url)
  const other = await connect(otherUrl)
  const processes: ChildProcess[] = []
  try {
    await client.query('CREATE TABLE elsewhere (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text)')
    await other.query('CREATE TABLE busy (n integer)')
    await other.query('BEGIN')
    await other.query('INSERT INTO busy VALUES (1)')

    const writers = await Promise.all(repeat(writerProcesses, () => begin('writers.ts', String(writersEach))))
    const tailing = await Promise.all(repeat(readers, () => begin('reader.ts', 'horizon')))
    const naiveReader = await begin('reader.ts', 'naive')

    const totals: Record<Way, { events: number; rolledBack: number; ms: number }> = {
      ours: { events: 0, rolledBack: 0, ms: 0 },
      naive: { events: 0, rolledBack: 0, ms: 0 },
      prepared: { events: 0, rolledBack: 0, ms: 0 },
    }
    const write = async (way: Way, transactions: number, most: number) => {
      for (const reader of [...tailing, naiveReader]) tell<ReaderJob>(reader, { tail: way === 'ours' ? way : 'naive' })
      const job: WritersJob = { way, transactions: transactions / writerProcesses, keys, mostEvents: most }
      const tallies = await Promise.all(writers.map((writer) => askFor<Tally>(writer, job)))
      return tallies.reduce((sum, { committed, rolledBack }) => ({
        committed: sum.committed + committed,
        rolledBack: sum.rolledBack + rolledBack,
      }))
    }
    const inTurns = (appends * (1 - partOfSeveral)) / Math.max(rounds, 1)
    for (let round = 0; round < Math.max(rounds, 1); round++) {
      const all: readonly Way[] = ['ours', 'naive', 'prepared']
      // Each of them is first as often as the others.
      const ways = rounds === 0 ? (['ours'] as const) : [...all.slice(round % 3), ...all.slice(0, round % 3)]
      for (const way of ways) {
        const started = performance.now()
        const { committed, rolledBack } = await write(way, inTurns, 1)
        totals[way].ms += performance.now() - started
        totals[way].events += committed
        totals[way].rolledBack += rolledBack
      }
    }
    const several = await write('ours', appends * partOfSeveral, mostEvents)

    const { rows } = await client.query<{ end: number; count: number }>(
      'SELECT max(position)::integer AS end, count(*)::integer AS count FROM holdfast.holdfast_events',
    )
    const [{ end, count }] = rows as [{ end: number; count: number }]
    const events = totals.ours.events + several.committed
    if (count !== events) throw new Error(`${events} events were appended, and ${count} are there.`)
    const [naiveReport, ...reports] = await Promise.all(
      [naiveReader, ...tailing].map((reader) => askFor<ReaderReport>(reader, { end } satisfies ReaderJob)),
    )
    const sum = (field: keyof ReaderReport) => reports.reduce((total, report) => total + report[field], 0)
    const perSecond = ({ events: done, ms }: (typeof totals)[Way]) => Math.round((done * 1_000) / Math.max(ms, 1))
    return {
      appends,
      events,
      rolledBack: totals.ours.rolledBack + several.rolledBack,
      skipped: sum('skipped'),
      inverted: sum('inverted'),
      twice: sum('twice'),
      gapsSeen: sum('gapsSeen'),
      naiveReaderSkipped: naiveReport?.skipped ?? 0,
      writersPerSecond: perSecond(totals.ours),
      naivePerSecond: perSecond(totals.naive),
      ratioToNaive: round2(perSecond(totals.ours) / perSecond(totals.naive)),
      preparedPerSecond: perSecond(totals.prepared),
      ratioToPrepared: round2(perSecond(totals.ours) / perSecond(totals.prepared)),
      seconds: round2((performance.now() - begun) / 1_000),
    }
  } finally {
    for (const child of processes) child.kill('SIGKILL')
    await Promise.all([client.end(), other.end()])
  }

  async function begin(script: string, argument: string): Promise<ChildProcess> {
    const child = fork(fileURLToPath(new URL(script, import.meta.url)), [url, argument], { execArgv: [] })
    processes.push(child)
    await answerOf(child)
    return child
  }
}

function repeat<T>(times: number, make: () => T): T[] {
  return Array.from({ length: times }, make)
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  return client
}

function tell<Job extends object>(child: ChildProcess, job: Job): void {
  child.send(job)
}

function askFor<Answer>(child: ChildProcess, job: object): Promise<Answer> {
  const answer = answerOf<Answer>(child)
  child.send(job)
  return answer
}

function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const isGone = (code: number | null) => reject(new Error(`A process of this run ended with ${code}.`))
    child.once('exit', isGone)
    child.once('message', (answer) => {
      child.off('exit', isGone)
      resolve(answer as Answer)
    })
  })
}
