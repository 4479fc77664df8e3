import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { createPostgresStore } from '../../src/postgres/index.ts'

// A process that tails the log until it is told how far to go, and then compares what it saw with what is there.

export interface ReaderReport {
  readonly seen: number
  readonly skipped: number
  readonly twice: number
  readonly inverted: number
  readonly gapsSeen: number
}

/** Which table is written to now, or where to stop. */
export type ReaderJob = { readonly tail: 'ours' | 'naive' } | { readonly end: number }

interface Seen {
  readonly position: number
  readonly key: string
  readonly version: number
}

const limits = { events: 1_000, bytes: 4_194_304 }
// Nobody reads more often than this.
const restMs = 5
// How often somebody asks for the gap, as a person would who looks at the status.
const askMs = 250
const [url = '', way = 'horizon'] = process.argv.slice(2)
const isNaive = way === 'naive'
// The same readers in both turns, so that the appends are all that differs; only that nobody wakes them for the naive ones.
const stores = {
  ours: await createPostgresStore({ connection: url }),
  naive: await createPostgresStore({ connection: url, schema: 'naive' }),
}
const client = new Client({ connectionString: url, application_name: 'gap reader' })
await client.connect()

const seen: Seen[] = []
let tail = 'ours' as 'ours' | 'naive'
let end: number | undefined
let gapsSeen = 0
let wake: () => void = () => undefined

stores.ours.log.onAppend(() => wake())
process.on('message', (job: ReaderJob) => {
  if ('end' in job) end = job.end
  else tail = job.tail
  wake()
})
process.send?.('ready')
const looking = isNaive ? undefined : lookForGaps()

let after = 0
let afterElsewhere = 0
while (end === undefined || after < end) {
  const woken = new Promise<void>((resolve) => {
    wake = resolve
  })
  const before = after + afterElsewhere
  if (end === undefined && tail === 'naive')
    afterElsewhere = await (isNaive ? readNaively : readOn)('naive', afterElsewhere, [])
  else after = await (isNaive ? readNaively : readOn)('ours', after, seen)
  if (after + afterElsewhere > before + limits.events / 2) continue
  await setTimeout(restMs)
  if (!isNaive && tail === 'ours' && after + afterElsewhere === before) await Promise.race([woken, setTimeout(100)])
}
await looking
process.send?.(await compare())
process.disconnect()
await client.end()
await Promise.all([stores.ours.close(), stores.naive.close()])

async function readOn(which: 'ours' | 'naive', from: number, into: Seen[]): Promise<number> {
  const { events, through } = await stores[which].log.readAll(from, limits)
  for (const { position, key, version = 0 } of events) into.push({ position, key, version })
  return through
}

/** What everybody writes first. */
async function readNaively(which: 'ours' | 'naive', from: number, into: Seen[]): Promise<number> {
  // Not prepared: a plan that is kept from when the table was small would make the readers the slowest part of the run.
  const { rows } = await client.query<{ position: string; key: string; version: string }>({
    text: `SELECT position, key, version, id, type, time, data, metadata FROM ${which === 'ours' ? 'holdfast' : 'naive'}.holdfast_events
      WHERE position > $1 ORDER BY position LIMIT 1000`,
    values: [from],
  })
  for (const { position, key, version } of rows) {
    into.push({ position: Number(position), key, version: Number(version) })
  }
  return Number(rows.at(-1)?.position ?? from)
}

async function lookForGaps(): Promise<void> {
  while (end === undefined) {
    if ((await stores[tail].log.gap()) && tail === 'ours') gapsSeen++
    await setTimeout(askMs)
  }
}

async function compare(): Promise<ReaderReport> {
  const { rows } = await client.query<{ position: string }>('SELECT position FROM holdfast.holdfast_events')
  const positions = new Set(seen.map(({ position }) => position))
  const versions = new Map<string, number>()
  let inverted = 0
  let last = 0
  for (const { position, key, version } of seen) {
    if (position <= last || version <= (versions.get(key) ?? 0)) inverted++
    last = position
    versions.set(key, version)
  }
  return {
    seen: seen.length,
    skipped: rows.filter(({ position }) => !positions.has(Number(position))).length,
    twice: seen.length - positions.size,
    inverted,
    gapsSeen,
  }
}
