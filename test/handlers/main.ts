// The long form of kills.test.ts:
//   npm run -s handlers -- --store postgres --kills 500 --seed 7 --json
import { parseArgs } from 'node:util'
import { startServer } from '../postgres/server.ts'
import { runKills } from './kills.ts'

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    json: { type: 'boolean', default: false },
  },
})
const [kills, seed] = [Number(values.kills), Number(values.seed)]
const { store } = values
const isCount = (value: number, least: number) => Number.isSafeInteger(value) && value >= least
if ((store !== 'sqlite' && store !== 'postgres') || !isCount(kills, 5) || !isCount(seed, 0)) {
  console.error('Give --store sqlite or postgres, --kills as a whole number from 5, and --seed as a whole number.')
  process.exit(2)
}
console.error(`seed ${seed}`)
const begun = performance.now()
const onKill = (kill: number) => {
  if (kill % 20 === 0)
    console.error(`${kill} of ${kills} kills in ${Math.round((performance.now() - begun) / 1_000)} s`)
}
const result = store === 'sqlite' ? await runKills({ kills, seed, onKill }) : await onServer()
console.log(values.json ? JSON.stringify(result) : result)
process.exitCode = result.ok ? 0 : 1

async function onServer() {
  // Nobody pulls the plug here: a process that dies loses nothing that it gave to the kernel.
  await using server = await startServer({ inMemory: true, settings: { fsync: 'off' } })
  return await runKills({ kills, seed, onKill, url: await server.createDatabase('handlers') })
}
