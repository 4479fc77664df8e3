// Who tests the tests? Plants one bug after the other, and shows who finds it:
//   npm run -s planted -- --json
//   npm run -s planted -- --only checkpoint-first,no-epoch --by suite
import { parseArgs } from 'node:util'
import { startServer } from '../postgres/server.ts'
import { hunt } from './hunt.ts'
import { bugs } from './bugs/index.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    by: { type: 'string', default: 'both' },
    seeds: { type: 'string', default: '200' },
  },
})
const names = values.only?.split(',')
const chosen = bugs.filter(({ name }) => names?.includes(name) ?? true)
const { by } = values
const seeds = Number(values.seeds)
if (
  (by !== 'suite' && by !== 'sim' && by !== 'both') ||
  chosen.length < (names?.length ?? 1) ||
  !(Number.isSafeInteger(seeds) && seeds > 0)
) {
  console.error('Give --by suite, sim or both, --only with names of bugs, and --seeds as a whole number.')
  process.exit(2)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
// Nobody pulls the plug here: a process that dies loses nothing that it gave to the kernel.
await using server = by === 'sim' ? undefined : await startServer({ inMemory: true, settings: { fsync: 'off' } })
const servers = server ? [{ name: `PostgreSQL ${server.version}`, url: server.url }] : []
const result = await hunt({ bugs: chosen, by, seeds, servers, tell: (line) => console.error(line) })
console.log(JSON.stringify(result, null, values.json ? undefined : 2))
process.exitCode = result.missed > 0 || !result.control.isGreen ? 1 : 0
