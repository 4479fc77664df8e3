// npm run -s sim -- --seeds 20000 --json            so many seeds, in as many processes as there are cores
// npm run -s sim -- --seeds 1000000 --record file    hours of them, which may be cut off and go on later; what had failed is run again then
// npm run -s sim -- --seed 7 --trace                 one of them, with everything that happened
// npm run -s sim -- --seed 7 --shrink --keep name    what it takes to fail as it does, kept in test/sim/found
import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { shrink } from '../../src/testing/simulation/shrink.ts'
import { LongRun } from '../long-run.ts'
import { counterNames } from './counters.ts'
import { simulateSwarm } from './run.ts'
import { simplerSwarms, swarmOf } from './swarm.ts'
import { add, noTally, reconsider, runSeed, type Tally, traceOf } from './tally.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    trace: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    keep: { type: 'string' },
    record: { type: 'string' },
    bail: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    worker: { type: 'boolean', default: false },
  },
})
const numbers = [values.seeds, values.from, values.seed ?? '1', values.jobs].map(Number)
if (numbers.some((number) => !Number.isSafeInteger(number) || number < 1)) {
  console.error('Give --seeds, --from, --seed and --jobs as whole numbers from 1.')
  process.exit(2)
}
const [seeds = 1, from = 1, , jobs = 1] = numbers
/** So few that a run with a fault ends soon, and so many that they are warm. */
const chunk = 100
/** After so many it is kept how far a run has come. */
const block = 5_000
/** Everything of a seed is garbage when it is over, and all cores have seeds to see to. */
const gc = ['--single-threaded-gc', '--min-semi-space-size=32', '--max-semi-space-size=64']
/** Files of SQLite are kept there: nobody pulls a plug here. */
const inMemory = existsSync('/dev/shm') ? { TMPDIR: '/dev/shm' } : {}
/** From so many seeds on, a run in which something never came about proves nothing. */
const enoughSeeds = 1_000

if (values.worker) work()
else if (values.seed !== undefined) await one(Number(values.seed))
else await all()

function work(): void {
  // A seventh of the time goes into stacks that nobody reads.
  Error.stackTraceLimit = 0
  process.on(
    'message',
    ({ first, count }: { readonly first: number; readonly count: number }) => void run(first, count),
  )

  async function run(first: number, count: number): Promise<void> {
    let tally = noTally
    for (let seed = first; seed < first + count; seed++) tally = add(tally, await runSeed(seed))
    process.send?.(tally)
  }
}

async function one(seed: number): Promise<void> {
  const swarm = swarmOf(seed)
  const outcome = await simulateSwarm(swarm)
  if (values.trace) for (const line of traceOf(outcome)) console.log(line)
  const isFailed = outcome.violations.length > 0
  for (const violation of outcome.violations) console.error(violation)
  const fails = async (candidate: typeof swarm) => (await simulateSwarm(candidate)).violations.length > 0
  const found = isFailed && values.shrink ? await shrink(swarm, simplerSwarms, fails) : swarm
  if (values.keep !== undefined) {
    const file = fileURLToPath(new URL(`found/${values.keep}.json`, import.meta.url))
    writeFileSync(file, `${JSON.stringify(found, undefined, 2)}\n`)
  }
  const { hash } = outcome.run.history
  if (!values.trace) console.log(JSON.stringify({ seed, hash, violations: outcome.violations, swarm: found }))
  process.exitCode = isFailed ? 1 : 0
}

async function all(): Promise<void> {
  const run = new LongRun(values.record, { seeds, from }, noTally)
  if (run.progress.failed.length > 0) run.keep(await reconsider(run.progress))
  const isOver = () => run.progress.seeds >= seeds || (values.bail && run.progress.failed.length > 0)
  const workers = Array.from({ length: Math.min(jobs, Math.ceil(seeds / chunk)) }, () =>
    fork(fileURLToPath(import.meta.url), ['--worker'], {
      execArgv: [...process.execArgv, ...gc],
      env: { ...process.env, ...inMemory },
    }),
  )
  while (!isOver()) {
    const first = from + run.progress.seeds
    const tallies = await Promise.all(shared(first, Math.min(first + block, from + seeds), workers))
    run.keep(tallies.reduce(add, run.progress))
    console.error(`${run.progress.seeds} of ${seeds} seeds`)
  }
  for (const worker of workers) worker.kill()
  const tally = run.progress
  const { seconds, revisions } = run
  const { failed, counters, virtualMs, ...rest } = tally
  const missing = seeds < enoughSeeds ? [] : counterNames.filter((name) => counters[name] === 0)
  const result = {
    ok: failed.length === 0 && missing.length === 0,
    ...rest,
    violations: failed.length,
    failed: failed.toSorted((a, b) => a.seed - b.seed).slice(0, 10),
    missing,
    counters,
    virtualHours: Math.round(virtualMs / 36_000) / 100,
    seedsPerHour: Math.round((tally.seeds * 3_600) / seconds),
    seconds,
    revisions,
  }
  console.log(values.json ? JSON.stringify(result) : result)
  process.exitCode = result.ok ? 0 : 1
}

/** Each takes the next few when it is done with the last. */
function shared(first: number, until: number, workers: readonly ChildProcess[]): Promise<Tally>[] {
  let next = first
  return workers.map(async (worker) => {
    let tally = noTally
    while (next < until) {
      const at = next
      next = Math.min(next + chunk, until)
      const found = await ask(worker, { first: at, count: next - at })
      for (const { seed, violations } of found.failed)
        console.error(`seed ${seed}: ${violations.slice(0, 3).join('\n  ')}`)
      tally = add(tally, found)
      if (values.bail && found.failed.length > 0) next = until
    }
    return tally
  })
}

function ask(child: ChildProcess, request: object): Promise<Tally> {
  return new Promise((resolve, reject) => {
    const isGone = (code: number | null) => reject(new Error(`A process of the simulator ended with ${code}.`))
    child.once('exit', isGone)
    child.once('message', (answer) => {
      child.off('exit', isGone)
      resolve(answer as Tally)
    })
    child.send(request)
  })
}
