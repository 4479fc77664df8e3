import { parseArgs } from 'node:util'
import { append } from './append/index.ts'
import { type Benchmark, type Settings, UsageError } from './benchmark.ts'
import { handlers } from './handlers/index.ts'
import { latency } from './latency/index.ts'
import { projection } from './projection/index.ts'
import { rebuild } from './rebuild/index.ts'
import { redrive } from './redrive/index.ts'

const benchmarks: Readonly<Record<string, Benchmark>> = { projection, append, latency, handlers, redrive, rebuild }

const usage = `npm run -s bench -- <benchmark> [options]

Benchmarks
${Object.entries(benchmarks)
  .map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}`)
  .join('\n')}

Options
  --store <name>  ${each(({ stores }) => stores.join(' or '))}
  --events <n>    the number of events; default: ${each(({ defaults }) => defaults.events.toLocaleString('en'))}
  --keys <n>      the number of keys that they are spread over; default: 10,000
  --rounds <n>    how often each side is measured; default: ${each(({ defaults }) => String(defaults.rounds))}
  --url <url>     a PostgreSQL where databases may be created and dropped; default: DATABASE_URL, or a server that is started for the run
  --dir <path>    where the databases are created and removed again; default: the system's temporary folder
  --profile <dir> writes a CPU profile of every measured process to this folder
  --check         exit with 1 if a target is missed
  --json          print one JSON object on stdout; progress is on stderr in any case`

function each(describe: (benchmark: Benchmark) => string): string {
  return Object.entries(benchmarks)
    .map(([name, benchmark]) => `${name}: ${describe(benchmark)}`)
    .join(', ')
}

/** Returns the exit code: 0 measured, 1 failed or missed a target with --check, 2 usage error. */
async function main(args: string[]): Promise<number> {
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort())
  try {
    const { benchmark, settings, json, check, help } = readArgs(args, interrupted.signal)
    if (help) {
      console.log(usage)
      return 0
    }
    const report = await benchmark.run(settings)
    console.log(json ? JSON.stringify(report.fields) : report.text)
    return check && !report.ok ? 1 : 0
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

function readArgs(args: string[], signal: AbortSignal) {
  const { values, positionals } = parse(args)
  const [name = 'projection', ...rest] = positionals
  const benchmark = Object.hasOwn(benchmarks, name) ? benchmarks[name] : undefined
  if (!benchmark || rest.length > 0)
    throw new UsageError(`There is no benchmark ${JSON.stringify(positionals.join(' '))}.`)
  const { defaults } = benchmark
  const { store = benchmark.stores[0], keys, dir, profile, json, check, help } = values
  const { events = String(defaults.events), rounds = String(defaults.rounds), url = process.env.DATABASE_URL } = values
  if (!benchmark.stores.includes(store))
    throw new UsageError(`${name} doesn't run on ${store}; it runs on ${benchmark.stores.join(', ')}.`)
  const settings: Settings = {
    store,
    events: count(events, '--events'),
    keys: count(keys, '--keys'),
    rounds: count(rounds, '--rounds'),
    dir,
    url,
    profile,
    signal,
    progress: (line) => console.error(line),
  }
  if (positionals.length === 0 && !help) throw new UsageError('A benchmark is missing.')
  return { benchmark, settings, json, check, help }
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        store: { type: 'string' },
        events: { type: 'string' },
        keys: { type: 'string', default: '10000' },
        rounds: { type: 'string' },
        dir: { type: 'string' },
        url: { type: 'string' },
        profile: { type: 'string' },
        json: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

function count(text: string, option: string): number {
  const value = Number(text.replaceAll(/[_,]/g, ''))
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new UsageError(`${option} is ${JSON.stringify(text)}; it must be a whole number from 1.`)
}

process.exitCode = await main(process.argv.slice(2))
