// The main job: a bank on embedded SQLite with repeated, malformed and poison input, whose engine is killed with -9 in the
// middle of its work. It ends with a table of what became of everything, and with exit code 1 if a promise was broken.
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { createEngine, createLog } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { createRandom } from 'holdfast/testing'
import { auditBank, brokenPromises, type Facts } from './audit.ts'
import { balances, bank } from './bank.ts'
import { killEngine, runAndKill } from './kill.ts'
import { createProgress, printReport } from './report.ts'
import { serveCustomers } from './tellers.ts'
import { createWorkload, expectedAccounts, scatter } from './workload.ts'

class UsageError extends Error {}

/** "BANK", in the header of the file: a later run may replace what an earlier one made, and nothing else. */
const applicationId = 0x42414e4b

process.on('SIGINT', () => quit(130))
process.on('SIGTERM', () => quit(143))
// When whoever reads our output has gone, there is nobody left to tell.
process.stdout.on('error', () => quit(1))

try {
  const { json, ...options } = readOptions()
  replaceFile(options.file)
  const facts = await run(options)
  const broken = brokenPromises(facts)
  if (json) console.log(JSON.stringify({ ok: broken.length === 0, broken, ...facts }))
  else printReport(facts, broken)
  process.exitCode = broken.length === 0 ? 0 : 1
} catch (error) {
  killEngine()
  if (!(error instanceof UsageError)) throw error
  console.error(error.message)
  process.exitCode = 2
}

async function run({ seed, events, accounts, file }: Omit<Options, 'json'>): Promise<Facts> {
  const begun = performance.now()
  const workload = createWorkload(seed, events, accounts)
  const progress = createProgress(events)
  await using store = await createSqliteStore({ file })
  const log = createLog({ store, events: bank })
  // This one is never started: it only looks. The one that works is in a process of its own.
  const observer = createEngine({ store, subscriptions: [balances] })

  // The engine comes when two fifths are in the log, and is killed somewhere in that backlog, while the tellers go on.
  const backlog = Promise.withResolvers<void>()
  const serving = serveCustomers(log, workload, (appended) => {
    progress.appended(appended)
    if (appended >= events * 0.4) backlog.resolve()
  })
  await Promise.race([backlog.promise, serving])
  const running = runAndKill(
    {
      file,
      pageEvents: Math.max(5, Math.min(500, Math.floor(events / 200))),
      killAt: Math.ceil(events * (0.05 + createRandom(scatter(seed + 1)).below(250) / 1_000)),
      look: async () => {
        const stored = (await observer.status()).subscriptions[0]?.stored
        const position = stored?.partitions[0]?.checkpoint.position ?? 0
        progress.say(`the engine was killed with -9 at ${position}`)
        return { position, head: position + (stored?.lag.events ?? 0) }
      },
      onMessage: (message) => {
        if (message.kind === 'claimed')
          progress.say(`the engine works as process ${message.pid}, from ${message.position}`)
        if (message.kind === 'committed') progress.projected(message.position, message.lanesHeld)
      },
    },
    serving,
  )
  const [door, engine] = await Promise.all([serving, running])

  progress.say('comparing every event and every row')
  const audit = await auditBank(store, log, observer, expectedAccounts(workload))
  progress.end()
  const planned = { events, accounts, repeated: workload.repeatedEvents, malformed: workload.malformedAppends }
  return { seed, file, planned, door, engine, audit, seconds: (performance.now() - begun) / 1_000 }
}

interface Options {
  readonly seed: number
  readonly events: number
  readonly accounts: number
  readonly file: string
  readonly json: boolean
}

function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: 'string', default: '1' },
        events: { type: 'string', default: '100000' },
        accounts: { type: 'string', default: '5000' },
        file: { type: 'string', default: 'data/bank.db' },
        json: { type: 'boolean', default: false },
      },
    })
    const accounts = wholeNumber('accounts', values.accounts, 20, 50_000)
    const events = wholeNumber('events', values.events, Math.max(1_000, 4 * accounts), 5_000_000)
    return { ...values, accounts, events, seed: wholeNumber('seed', values.seed, 0, 2 ** 32 - 1) }
  } catch (error) {
    if (error instanceof UsageError) throw error
    const usage = 'npm start -- [--seed 1] [--events 100000] [--accounts 5000] [--file data/bank.db] [--json]'
    throw new UsageError(`${(error as Error).message}\n\nUsage: ${usage}`)
  }
}

function wholeNumber(option: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new UsageError(`--${option} is ${JSON.stringify(text)}; it must be a whole number from ${least} to ${most}.`)
}

/** Removes what an earlier run made, and puts an empty database with our mark in its place. */
function replaceFile(file: string): void {
  if (existsSync(file)) checkIsOurs(file)
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  mkdirSync(dirname(file), { recursive: true })
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA application_id = ${applicationId}`)
  db.close()
}

function checkIsOurs(file: string): void {
  const refuse = (why: string) => new UsageError(`${file} ${why}. Nothing was changed; give another --file.`)
  if (!statSync(file).isFile()) throw refuse('is not a file')
  let found: unknown
  try {
    const db = new DatabaseSync(file)
    found = db.prepare('PRAGMA application_id').get()?.application_id
    // In this mode SQLite gives the lock only to somebody who is alone with the file.
    if (found === applicationId) db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT')
    db.close()
  } catch (error) {
    throw refuse(`can't be replaced: ${(error as Error).message}`)
  }
  if (found !== applicationId) throw refuse('was not made by this program')
}

function quit(code: number): never {
  killEngine()
  process.exit(code)
}
