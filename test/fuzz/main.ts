// The long form of fuzz.test.ts:
//   npm run -s fuzz -- --seconds 60 --seed 7 --json
// One case again: --door append.sqlite --case 12 --seed 7
import { parseArgs } from 'node:util'
import { startServer } from '../postgres/server.ts'
import type { Door } from './door.ts'
import { doorsOn } from './doors/index.ts'
import { createGround } from './ground.ts'
import { runFuzz } from './run.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: process.env['HOLDFAST_SEED'] ?? String(Date.now() % 2 ** 31) },
    door: { type: 'string' },
    case: { type: 'string' },
    'no-postgres': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const [seconds, seed] = [Number(values.seconds), Number(values.seed)]
const only = values.case === undefined ? undefined : Number(values.case)
if (!(seconds > 0) || !Number.isSafeInteger(seed) || (only !== undefined && !Number.isSafeInteger(only))) {
  console.error('Give --seconds above 0, --seed as a whole number, and with --door the --case to make again.')
  process.exit(2)
}
console.error(`seed ${seed}`)
const server = values['no-postgres'] ? undefined : await startServer({ settings: { fsync: 'off' }, inMemory: true })
const ground = createGround(server?.url)
const doors = doorsOn(ground.stores).filter(({ name }) => values.door === undefined || name.startsWith(values.door))
const begun = performance.now()
const since = () => (performance.now() - begun) / 1_000
// Each door has its share of the time.
const until = new Map<Door, number>()
const shareOf = (door: Door) => {
  const end = until.get(door) ?? since() + (seconds - since()) / (doors.length - until.size)
  until.set(door, end)
  return end
}
const { doors: reports, findings } = await runFuzz({
  seed,
  ground,
  doors,
  goesOn: (door, cases) => (only === undefined ? since() < shareOf(door) : cases === 0),
  ...(only !== undefined && { from: only }),
  onFound: ({ door, case: number, problem }) => console.error(`${door} case ${number}: ${problem}`),
})
const cases = Object.values(reports).reduce((sum, report) => sum + report.cases, 0)
const result = {
  ok: findings.length === 0,
  seed,
  seconds: Math.round(since()),
  cases,
  perSecond: Math.round(cases / since()),
  doors: reports,
  findings: findings.length,
}
console.log(JSON.stringify(result, null, values.json ? undefined : 2))
await ground[Symbol.asyncDispose]()
await server?.[Symbol.asyncDispose]()
// What a configuration left open would keep it alive.
process.exit(result.ok ? 0 : 1)
