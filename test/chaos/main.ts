// The long form of chaos.test.ts:
//   npm run -s chaos -- --store postgres --engines 3 --cycles 2000 --seed 7 --json
//   npm run -s chaos -- --store postgres --cycles 20000 --record file --json     which may be cut off, and go on later
import { parseArgs } from 'node:util'
import { runChaos } from './run.ts'

const fewestCycles = 15

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'postgres' },
    engines: { type: 'string', default: '3' },
    cycles: { type: 'string', default: '100' },
    version: { type: 'string', default: 'newest' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    json: { type: 'boolean', default: false },
    record: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
})
const [engines, cycles, seed] = [Number(values.engines), Number(values.cycles), Number(values.seed)]
const { version } = values
const isCount = (value: number, least: number, most: number) =>
  Number.isSafeInteger(value) && value >= least && value <= most
if (
  values.store !== 'postgres' ||
  (version !== 'newest' && version !== 'oldest') ||
  !isCount(engines, 2, 4) ||
  !isCount(cycles, fewestCycles, 1e9) ||
  !isCount(seed, 0, 2 ** 32 - 1)
) {
  console.error(
    `Give --store postgres, --engines from 2 to 4, --cycles from ${fewestCycles}, --seed as a whole number, and --version
newest or oldest.`,
  )
  process.exit(2)
}
console.error(`seed ${seed}`)
const begun = performance.now()
let told = 0
const result = await runChaos({
  engines,
  cycles,
  seed,
  version,
  record: values.record,
  onCycle: (tally) => {
    const cycle = tally.of('cycles')
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
    if (values.verbose) console.error(`${seconds} s: ${tally.place}`)
    else if (cycle % 20 === 0) console.error(`${cycle} of ${cycles} cycles in ${seconds} s`)
    for (; told < tally.problems.length; told++) console.error(`problem: ${tally.problems[told]}`)
  },
})
console.log(values.json ? JSON.stringify(result) : result)
process.exitCode = result.ok ? 0 : 1
