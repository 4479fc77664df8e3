import { totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { startServer } from '../../test/postgres/server.ts'
import { rounded, UsageError } from '../benchmark.ts'
import { connect } from '../server.ts'
import { Crew } from './crew.ts'
import { type Cost, measure, type Window } from './measure.ts'

const usage = `npm run -s cost -- [options]

What a process costs a PostgreSQL server while nothing happens: statements a second, connections, CPU and memory, with 3, 200 and 1,000
subscriptions and with 1, 3 and 50 processes. Starts a server and real processes of its own.

Options
  --only <cells>      such as 3x1,200x3: subscriptions x processes. Default: all nine, which takes about ten minutes
  --seconds <n>       how long each cell is watched. Default: 10
  --start <n>         how many seconds the processes of a cell may take to start. Default: 120
  --settle <n>        how many seconds they may take to share out the partitions. Default: 90
  --json              one JSON object in one line on stdout; progress is on stderr in any case`

/** Which part of this machine's memory the processes of a cell may take. */
const mostMemory = 0.75

const allCells = [3, 200, 1_000].flatMap((subscriptions) =>
  [1, 3, 50].map((processes) => ({ subscriptions, processes })),
)

interface Cell {
  readonly subscriptions: number
  readonly processes: number
}

interface Settings extends Window {
  readonly startSeconds: number
}

/** A cell that this machine is too small for. */
interface Missing extends Cell {
  readonly why: string
}

/** What a number of subscriptions takes in the database, whatever the number of processes. */
interface Footprint {
  readonly subscriptions: number
  readonly tables: number
  readonly emptyMb: number
}

/** The exit code: 0 measured, 1 failed, 2 not understood. */
async function main(args: string[]): Promise<number> {
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort())
  try {
    const { cells, settings, json, help } = readArgs(args)
    if (help) {
      console.log(usage)
      return 0
    }
    const { costs, missing, footprints, version } = await run(cells, settings, interrupted.signal)
    const [base] = costs as [Cost, ...Cost[]]
    const report = { postgres: version, windowSeconds: settings.seconds, ...base, cells: costs, missing, footprints }
    console.log(json ? JSON.stringify(report) : table(costs, footprints))
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`${error.message}\n\n${usage}`)
      return 2
    }
    if (interrupted.signal.aborted) return 130
    console.error(error)
    return 1
  }
}

async function run(cells: readonly Cell[], { startSeconds, ...window }: Settings, signal: AbortSignal) {
  await using server = await startServer({
    settings: {
      // 50 processes with all of their connections.
      max_connections: '1000',
      shared_preload_libraries: 'pg_stat_statements',
      // More than there are different statements: one that is thrown out takes its count with it.
      'pg_stat_statements.max': '50000',
    },
  })
  await using client = await connect(server.url)
  await client.query('CREATE EXTENSION pg_stat_statements')
  const costs: Cost[] = []
  const footprints: Footprint[] = []
  const missing: Missing[] = []
  for (const subscriptions of new Set(cells.map((cell) => cell.subscriptions))) {
    const database = `cost_${subscriptions}`
    const url = await server.createDatabase(database)
    await using crew = new Crew({ url, subscriptions }, signal)
    await crew.prepare()
    footprints.push({ subscriptions, ...(await footprint(url)) })
    const sizes = cells.filter((cell) => cell.subscriptions === subscriptions).map(({ processes }) => processes)
    for (const processes of sizes.toSorted((a, b) => a - b)) {
      const needsMb = processes * (costs.findLast((cost) => cost.subscriptions === subscriptions)?.rssMb ?? 0)
      const why =
        needsMb * 1_048_576 > totalmem() * mostMemory
          ? `they would take ${Math.round(needsMb)} MB of memory`
          : (await crew.grow(processes, startSeconds))
            ? undefined
            : `the processes did not start within ${startSeconds} s on this machine`
      if (why !== undefined) {
        missing.push({ subscriptions, processes, why })
        console.error(`${subscriptions} subscriptions, ${processes} processes: not measured, ${why}`)
        break
      }
      const cost = { subscriptions, processes, ...(await measure(crew, client, database, window)) }
      costs.push(cost)
      console.error(line(cost))
    }
  }
  return { costs, missing, footprints, version: server.version }
}

async function footprint(url: string): Promise<Omit<Footprint, 'subscriptions'>> {
  await using client = await connect(url)
  const { rows } = await client.query<{ tables: number; bytes: number }>(
    `SELECT count(*)::int AS tables, sum(pg_total_relation_size(oid))::float8 AS bytes
     FROM pg_class WHERE relkind = 'r' AND relnamespace = 'holdfast'::regnamespace`,
  )
  const { tables, bytes } = rows[0] as { tables: number; bytes: number }
  return { tables, emptyMb: rounded(bytes / 1_048_576) }
}

function line({ subscriptions, processes, ...cost }: Cost): string {
  return (
    `${subscriptions} subscriptions, ${processes} processes; each process: ${cost.queriesPerSecond} queries/s, ` +
    `${cost.transactionsPerSecond} transactions/s, ${cost.connections} connections (${cost.mostConnections} at most), ` +
    `${rounded(cost.cpu * 100)} % of a core, ${cost.rssMb} MB${cost.isSettled ? '' : ' (partitions still changed hands)'}`
  )
}

function table(costs: readonly Cost[], footprints: readonly Footprint[]): string {
  return [
    ...costs.map(line),
    ...footprints.map(
      ({ subscriptions, tables, emptyMb }) =>
        `${subscriptions} subscriptions: ${tables} tables, ${emptyMb} MB when empty`,
    ),
  ].join('\n')
}

function readArgs(args: string[]) {
  const { only, seconds, start, settle, json, help } = parse(args)
  const cells = only === undefined ? allCells : only.split(',').map(readCell)
  const settings: Settings = {
    seconds: count(seconds, '--seconds'),
    startSeconds: count(start, '--start'),
    settleSeconds: count(settle, '--settle'),
  }
  return { cells, settings, json, help }
}

function parse(args: string[]) {
  try {
    const { values } = parseArgs({
      args,
      options: {
        only: { type: 'string' },
        seconds: { type: 'string', default: '10' },
        start: { type: 'string', default: '120' },
        settle: { type: 'string', default: '90' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

function readCell(text: string): Cell {
  const [, subscriptions, processes] = /^(\d+)x(\d+)$/.exec(text.trim()) ?? []
  if (subscriptions === undefined || processes === undefined)
    throw new UsageError(
      `--only has ${JSON.stringify(text)}; a cell is written as subscriptions x processes, such as 3x1.`,
    )
  return { subscriptions: count(subscriptions, '--only'), processes: count(processes, '--only') }
}

function count(text: string, option: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new UsageError(`${option} is ${JSON.stringify(text)}; it must be a whole number from 1.`)
}

process.exitCode = await main(process.argv.slice(2))
