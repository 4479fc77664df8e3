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
// Nobody reads more often than this; those of our log read when they are woken, the naive ones poll.
const restMs = 5
const [url = '', way = 'horizon'] = process.argv.slice(2)
const isNaive = way === 'naive'
const store = await createPostgresStore({ connection: url })
const { log } = store
const client = new Client({ connectionString: url, application_name: 'gap reader' })
await client.connect()

const seen: Seen[] = []
let tail = 'ours' as 'ours' | 'naive'
let end: number | undefined
let gapsSeen = 0
let wake: () => void = () => undefined

log.onAppend(() => wake())
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
  if (end === undefined && tail === 'naive') afterElsewhere = await readNaively('naive', afterElsewhere, [])
  else if (isNaive) after = await readNaively('holdfast', after, seen)
  else after = await readOn(after)
  if (after + afterElsewhere > before + limits.events / 2) continue
  await setTimeout(restMs)
  if (!isNaive && tail === 'ours' && after + afterElsewhere === before) await Promise.race([woken, setTimeout(100)])
}
await looking
process.send?.(await compare())
process.disconnect()
await client.end()
await store.close()

async function readOn(from: number): Promise<number> {
  const { events, through } = await log.readAll(from, limits)
  for (const { position, key, version = 0 } of events) seen.push({ position, key, version })
  return through
}

/** What everybody writes first. */
async function readNaively(schema: string, from: number, into: Seen[]): Promise<number> {
  const { rows } = await client.query<{ position: string; key: string; version: string }>({
    name: schema,
    text: `SELECT position, key, version, id, type, time, data, metadata FROM ${schema}.holdfast_events
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
    if (tail === 'ours' && (await log.gap())) gapsSeen++
    await setTimeout(100)
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
