// npm run -s sim -- --seeds 20000 --json
// npm run -s sim -- --seed 7 --trace
import { parseArgs } from 'node:util'
import { lineOf } from '../../src/testing/simulation/history.ts'
import { counterNames, simulateSwarm } from './run.ts'
import { swarmOf } from './swarm.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const begun = performance.now()
const first = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.seeds) : 1
const counters = Object.fromEntries(counterNames.map((name) => [name, 0])) as Record<
  (typeof counterNames)[number],
  number
>
const failed: { seed: number; violations: readonly string[] }[] = []
let [calls, steps, virtualMs] = [0, 0, 0]
for (let seed = first; seed < first + count; seed++) {
  if (values.seed === undefined && seed % 100 === 0) console.error(`at ${seed}`)
  const outcome = await simulateSwarm(swarmOf(seed))
  if (values.trace) for (const happening of outcome.run.history.happenings) console.log(lineOf(happening))
  for (const name of counterNames) counters[name] += outcome.counters[name]
  calls += outcome.calls
  steps += outcome.run.steps
  virtualMs += outcome.run.virtualMs
  if (outcome.violations.length > 0) {
    failed.push({ seed, violations: outcome.violations })
    console.error(`seed ${seed}: ${outcome.violations.slice(0, 3).join('\n  ')}`)
  }
  if (values.seed !== undefined) console.error(JSON.stringify(swarmOf(seed)), outcome.run.history.hash)
}
const seconds = (performance.now() - begun) / 1_000
console.log(
  JSON.stringify({
    seeds: count,
    violations: failed.length,
    failed: failed.slice(0, 20),
    counters,
    calls,
    steps,
    virtualMs: Math.round(virtualMs),
    seconds,
  }),
)
process.exitCode = failed.length > 0 ? 1 : 0
