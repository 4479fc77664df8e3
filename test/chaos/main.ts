// The long form of chaos.test.ts:
//   npm run -s chaos -- --store postgres --engines 3 --cycles 2000 --seed 7 --json
//   npm run -s chaos -- --store postgres --cycles 20000 --record file --json     which may be cut off, and go on later
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { runChaos } from './run.ts'

const fewestCycles = 15

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'postgres' },
    engines: { type: 'string', default: '3' },
    cycles: { type: 'string', default: '100' },
    sides: { type: 'string', default: String(availableParallelism()) },
    version: { type: 'string', default: 'newest' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    json: { type: 'boolean', default: false },
    record: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
})
const [engines = 0, cycles = 0, sides = 0, seed = 0] = [values.engines, values.cycles, values.sides, values.seed].map(
  Number,
)
const { version } = values
const isCount = (value: number, least: number, most: number) =>
  Number.isSafeInteger(value) && value >= least && value <= most
if (
  values.store !== 'postgres' ||
  (version !== 'newest' && version !== 'oldest') ||
  !isCount(engines, 2, 4) ||
  !isCount(cycles, fewestCycles, 1e9) ||
  !isCount(sides, 1, 100) ||
  !isCount(seed, 0, 2 ** 32 - 1)
) {
  console.error(
    `Give --store postgres, --engines from 2 to 4, --cycles from ${fewestCycles}, --sides from 1, --seed as a whole number, and --version
newest or oldest.`,
  )
  process.exit(2)
}
console.error(`seed ${seed}`)
const begun = performance.now()
const told = new Set<string>()
const result = await runChaos({
  engines,
  cycles,
  seed,
  version,
  sides,
  record: values.record,
  onCycle: (tally, cycle) => {
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
    if (values.verbose) console.error(`${seconds} s: ${tally.place}`)
    else if (cycle % 20 === 0) console.error(`${cycle} of ${cycles} cycles in ${seconds} s`)
    for (const problem of tally.problems) {
      if (!told.has(problem)) console.error(`problem: ${problem}`)
      told.add(problem)
    }
  },
})
console.log(values.json ? JSON.stringify(result) : result)
process.exitCode = result.ok ? 0 : 1
