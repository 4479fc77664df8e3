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
  /** Of each kind: ours, and the naive append that it is compared with. */
  readonly rounds: number
}

export interface GapResult {
  readonly appends: number
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
  readonly seconds: number
}

type Kind = WritersJob['round']

const writerProcesses = 2
const writersEach = 8
const readers = 3
const keys = 200

/**
 * Writers and readers in processes of their own, while a transaction that has written stays open in another database. The naive
 * append takes turns with ours, so that both meet the same machine, with as many readers.
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

    const totals: Record<Kind, { events: number; rolledBack: number; ms: number }> = {
      ours: { events: 0, rolledBack: 0, ms: 0 },
      naive: { events: 0, rolledBack: 0, ms: 0 },
    }
    for (let round = 0; round < rounds; round++) {
      const kinds: readonly Kind[] = round % 2 === 0 ? ['ours', 'naive'] : ['naive', 'ours']
      for (const kind of kinds) {
        for (const reader of [...tailing, naiveReader]) tell<ReaderJob>(reader, { tail: kind })
        const job: WritersJob = { round: kind, transactions: appends / rounds / writerProcesses, keys }
        const started = performance.now()
        const tallies = await Promise.all(writers.map((writer) => askFor<Tally>(writer, job)))
        totals[kind].ms += performance.now() - started
        for (const { committed, rolledBack } of tallies) {
          totals[kind].events += committed
          totals[kind].rolledBack += rolledBack
        }
      }
    }

    const { rows } = await client.query<{ end: number; count: number }>(
      'SELECT max(position)::integer AS end, count(*)::integer AS count FROM holdfast.holdfast_events',
    )
    const [{ end, count }] = rows as [{ end: number; count: number }]
    if (count !== totals.ours.events) throw new Error(`${totals.ours.events} were appended, and ${count} are there.`)
    const [naiveReport, ...reports] = await Promise.all(
      [naiveReader, ...tailing]
        .filter((r) => r !== undefined)
        .map((reader) => askFor<ReaderReport>(reader, { end } satisfies ReaderJob)),
    )
    const sum = (field: keyof ReaderReport) => reports.reduce((total, report) => total + report[field], 0)
    const perSecond = ({ events, ms }: { events: number; ms: number }) => Math.round((events * 1_000) / ms)
    return {
      appends: totals.ours.events,
      rolledBack: totals.ours.rolledBack,
      skipped: sum('skipped'),
      inverted: sum('inverted'),
      twice: sum('twice'),
      gapsSeen: sum('gapsSeen'),
      naiveReaderSkipped: naiveReport?.skipped ?? 0,
      writersPerSecond: perSecond(totals.ours),
      naivePerSecond: perSecond(totals.naive),
      ratioToNaive: round2(perSecond(totals.ours) / perSecond(totals.naive)),
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
