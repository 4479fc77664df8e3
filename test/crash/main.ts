// The long form of kill.test.ts:
//   node --conditions=@holdfast/source test/crash/main.ts --kills 2000 --seed 7 --json
import { parseArgs } from 'node:util'
import { runKills } from './kills.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
    json: { type: 'boolean', default: false },
  },
})
const [kills, seed] = [Number(values.kills), Number(values.seed)]
if (!Number.isSafeInteger(kills) || kills < 20 || !Number.isSafeInteger(seed)) {
  console.error('Give --kills as a whole number from 20, and --seed as a whole number.')
  process.exit(2)
}
console.error(`seed ${seed}`)
const result = await runKills(seed, kills, (kill) => {
  if (kill % 50 === 0) console.error(`${kill} of ${kills} kills`)
})
if (values.json) console.log(JSON.stringify({ ok: result.problems.length === 0, ...result }))
else console.log(result)
process.exitCode = result.problems.length === 0 ? 0 : 1
