// The main example: a bank with repeated, malformed and poison input. One of its engines is killed with SIGKILL while it works. It runs on
// embedded SQLite, or on the PostgreSQL of DATABASE_URL, where two engines run and one takes over from the other. It prints a table of all
// outcomes, and exits with 1 if a promise was broken.
import { parseArgs } from 'node:util'
import { createEngine, createLog, createOperator, HoldfastError } from 'holdfast'
import { createRandom } from 'holdfast/testing'
import { auditBank, brokenPromises, type Facts } from './audit.ts'
import { balances, bank, countDone } from './bank.ts'
import { killEngines } from './crew.ts'
import { runAndKill } from './kill.ts'
import { openStore, type Place } from './place.ts'
import { replacePlace, ServerError, UsageError } from './replace.ts'
import { createProgress, printReport } from './report.ts'
import { serveCustomers } from './tellers.ts'
import { createWorkload, expectedAccounts, scatter } from './workload.ts'

const usage = `Usage: npm start -- [--seed 1] [--events 100000] [--accounts 5000] [--json]
                    [--file data/bank.db], or with DATABASE_URL [--schema holdfast_bank]`

process.on('SIGINT', () => quit(130))
process.on('SIGTERM', () => quit(143))
// The reader of the output may close the pipe; that is not an error.
process.stdout.on('error', () => quit(1))

try {
  const { json, ...options } = readOptions()
  await using _ = await replacePlace(options.place)
  const facts = await run(options)
  const broken = brokenPromises(facts)
  if (json) console.log(JSON.stringify({ ok: broken.length === 0, broken, ...facts }))
  else printReport(facts, broken)
  process.exitCode = broken.length === 0 ? 0 : 1
} catch (error) {
  killEngines()
  const isExpected = error instanceof UsageError || error instanceof ServerError || error instanceof HoldfastError
  if (!isExpected) throw error
  console.error(error.message)
  process.exitCode = error instanceof UsageError ? 2 : 1
}

async function run({ seed, events, accounts, place }: Omit<Options, 'json'>): Promise<Facts> {
  const begun = performance.now()
  const workload = createWorkload(seed, events, accounts)
  const progress = createProgress(events)
  await using store = await openStore(place)
  const log = createLog({ store, events: bank })
  // This engine is never started: it only reads. The running engines are in separate processes.
  const observer = createEngine({ store, subscriptions: [balances] })
  await observer.prepare()
  const operator = createOperator({ store, subscriptions: [balances], by: 'example' })
  await operator.pause(balances.name, 'until all engines are there')
  const { partitions } = (await observer.status()).subscriptions[0]?.stored ?? { partitions: [] }

  // The engines start when two fifths of the events are in the log. One is killed within that backlog while the tellers continue.
  const backlog = Promise.withResolvers<void>()
  let appended = 0
  const serving = serveCustomers(log, workload, (sum) => {
    progress.appended((appended = sum))
    if (appended >= events * 0.4) backlog.resolve()
  })
  await Promise.race([backlog.promise, serving])
  const running = runAndKill(
    {
      place,
      // SQLite allows one writer at a time, so a second process would not help.
      processes: place.kind === 'sqlite' ? 1 : 2,
      partitions: partitions.length,
      pageEvents: Math.max(5, Math.min(500, Math.floor(events / 200))),
      killAt: Math.ceil(events * (0.05 + createRandom(scatter(seed + 1)).below(250) / 1_000)),
      begin: () => operator.resume(balances.name, 'all engines are there'),
      look: async () => ({ done: await countDone(observer), appended }),
      say: (what) => progress.say(what),
      onProgress: (done, lanesHeld) => progress.projected(done, lanesHeld),
    },
    serving,
  )
  const [door, engine] = await Promise.all([serving, running])

  progress.say('comparing every event and every row')
  const audit = await auditBank(store, log, observer, expectedAccounts(workload))
  progress.end()
  const planned = { events, accounts, repeated: workload.repeatedEvents, malformed: workload.malformedAppends }
  return { seed, place, planned, door, engine, audit, seconds: (performance.now() - begun) / 1_000 }
}

interface Options {
  readonly seed: number
  readonly events: number
  readonly accounts: number
  readonly place: Place
  readonly json: boolean
}

function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: 'string', default: '1' },
        events: { type: 'string', default: '100000' },
        accounts: { type: 'string', default: '5000' },
        file: { type: 'string' },
        schema: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    })
    const accounts = wholeNumber('accounts', values.accounts, 20, 50_000)
    const events = wholeNumber('events', values.events, Math.max(1_000, 4 * accounts), 5_000_000)
    const seed = wholeNumber('seed', values.seed, 0, 2 ** 32 - 1)
    return { seed, events, accounts, place: placeOf(values.file, values.schema), json: values.json }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

/** PostgreSQL if DATABASE_URL is set and no --file is given, otherwise SQLite. */
function placeOf(file: string | undefined, schema: string | undefined): Place {
  if (file !== undefined && schema !== undefined)
    throw new UsageError('--file is for SQLite and --schema for PostgreSQL; give one of them.')
  if (file !== undefined || !process.env.DATABASE_URL) {
    if (schema !== undefined) throw new UsageError('--schema is for PostgreSQL; set DATABASE_URL.')
    return { kind: 'sqlite', file: file ?? 'data/bank.db' }
  }
  const name = schema ?? 'holdfast_bank'
  if (/^(?!pg_)[a-z_][a-z0-9_]{0,47}$/.test(name)) return { kind: 'postgres', schema: name }
  throw new UsageError(`--schema is ${JSON.stringify(name)}; use up to 48 lower-case letters, digits and _.`)
}

function wholeNumber(option: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new UsageError(`--${option} is ${JSON.stringify(text)}; it must be a whole number from ${least} to ${most}.`)
}

function quit(code: number): never {
  killEngines()
  process.exit(code)
}
