import { parseArgs } from 'node:util'
import { startServer } from '../postgres/server.ts'
import { runSequence } from './run.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    sequences: { type: 'string', default: '200' },
    steps: { type: 'string', default: '200' },
    seed: { type: 'string', default: process.env.HOLDFAST_SEED ?? String(Date.now() % 2 ** 31) },
    version: { type: 'string', default: 'newest' },
  },
})

const seed = Number(values.seed)
const version = values.version === 'oldest' ? 'oldest' : 'newest'
await using server = await startServer({ version, settings: { fsync: 'off' }, inMemory: true })
const url = await server.createDatabase('like')
console.error(`From seed ${seed} on.`)
const outcomes: Record<string, number> = {}
const differing: number[] = []
let calls = 0
for (let i = 0; i < Number(values.sequences); i++) {
  const sequence = await runSequence(url, `like_${i}`, seed + i, Number(values.steps))
  calls += sequence.calls
  for (const [kind, times] of sequence.outcomes) outcomes[kind] = (outcomes[kind] ?? 0) + times
  if (sequence.difference === undefined) continue
  differing.push(seed + i)
  console.error(`Seed ${seed + i} differs.\n${sequence.difference}`)
}
const sorted = Object.fromEntries(Object.entries(outcomes).toSorted(([a], [b]) => (a < b ? -1 : 1)))
const result = {
  postgres: server.version,
  seed,
  sequences: Number(values.sequences),
  calls,
  differing,
  outcomes: sorted,
}
console.log(JSON.stringify(result, null, values.json ? undefined : 2))
if (differing.length > 0) process.exitCode = 1
